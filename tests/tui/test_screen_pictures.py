"""The screen as a picture, in the states that matter; see tests/tui/__snapshots__.

After a change of the screen: `pytest tests/tui/test_screen_pictures.py --snapshot-update`, and look
at every picture before it is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from scripted_run import SCENES, ScriptedRun

from tui import picture
from tui.app import EaglegenApp
from tui.picture import StillClock

SnapCompare = Callable[..., bool]
SMALL, LARGE = (80, 24), (160, 48)


@pytest.fixture(autouse=True)
def _times_of_day_in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(scene: str, theme: str = "dark") -> EaglegenApp:
    snapshot = SCENES[scene]()
    return EaglegenApp(ScriptedRun(snapshot), theme=theme, clock=StillClock(snapshot.heartbeat_at))


@pytest.mark.parametrize(
    "scene",
    [
        "starting",
        "story",
        "burst",
        "paused_dataset",
        "paused_run",
        "disk_full",
        "structural",
        "draining",
        "budget",
        "done",
        "failed_some",
    ],
)
def test_at_80x24(snap_compare: SnapCompare, scene: str) -> None:
    assert snap_compare(at(scene), terminal_size=SMALL)


@pytest.mark.parametrize("scene", ["story", "burst", "structural", "skipped", "busy"])
def test_at_160x48(snap_compare: SnapCompare, scene: str) -> None:
    assert snap_compare(at(scene), terminal_size=LARGE)


@pytest.mark.parametrize("theme", ["light", "mono"])
def test_in_another_theme(snap_compare: SnapCompare, theme: str) -> None:
    assert snap_compare(at("burst", theme), terminal_size=SMALL)


@pytest.mark.parametrize("keys", ["s", "q", "question_mark", "equals_sign"])
def test_dialogs_leave_the_numbers_in_sight(snap_compare: SnapCompare, keys: str) -> None:
    assert snap_compare(at("story"), terminal_size=SMALL, press=[keys])


def test_the_readme_picture_is_made_by_a_command(tmp_path: Path) -> None:
    out = tmp_path / "screen.svg"
    picture.main([str(out), "--size", "120x40", "--theme", "light"])
    text = out.read_text(encoding="utf-8").replace("&#160;", " ")
    assert text.startswith("<svg")
    assert "B6_ultrachat · 15,000 prompts" in text


def test_an_engine_that_has_fallen_silent(snap_compare: SnapCompare) -> None:
    snapshot = SCENES["story"]()
    app = EaglegenApp(ScriptedRun(snapshot), clock=StillClock(snapshot.heartbeat_at + 73))
    assert snap_compare(app, terminal_size=SMALL)
