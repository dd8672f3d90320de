"""The screen as a picture, in the states that matter; see tests/tui/__snapshots__.

After a change of the screen: `pytest tests/tui/test_screen_pictures.py --snapshot-update`, and look
at every picture before it is committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from detailed_run import detailed
from scripted_run import SCENES, ScriptedRun
from textual.pilot import Pilot

from engine.disk.jsonlines import dump_line
from engine.disk.ledger import ROWS
from engine.disk.rundir import RUN
from engine.tokens.vocabulary import load_vocabulary
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


def in_detail(**more: Any) -> EaglegenApp:
    snapshot = detailed()
    return EaglegenApp(ScriptedRun(snapshot), clock=StillClock(snapshot.heartbeat_at), **more)


PAGES = {
    "dataset": ["enter"],
    "dataset-lower": ["enter", "G"],
    "failures": ["e"],
    "exclude": ["e", "x"],
    "journal": ["o"],
    "command": ["colon", "p", "tab"],
    "filter": ["slash", "b", "7", "enter"],
    "theme": ["t", "j"],
}


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])
@pytest.mark.parametrize("page", PAGES)
def test_other_screens(snap_compare: SnapCompare, page: str, size: tuple[int, int]) -> None:
    assert snap_compare(in_detail(), terminal_size=size, press=PAGES[page])


@pytest.mark.parametrize("page", ["dataset", "failures"])
def test_in_ascii(snap_compare: SnapCompare, page: str) -> None:
    assert snap_compare(in_detail(ascii=True), terminal_size=SMALL, press=PAGES[page])


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "160x48"])
def test_a_row(snap_compare: SnapCompare, size: tuple[int, int], tmp_path: Path) -> None:
    vocabulary = load_vocabulary("kimi-k2.5")
    snapshot = replace(detailed(), output=str(tmp_path))
    row = {
        "id": snapshot.datasets[3].last_rows[0].id,
        "index": 149,
        "turn": 0,
        "messages": [{"role": "user", "content": "Why is the sky blue?"}],
        "reasoning": "Short answer: scattering.",
        "content": "Because of Rayleigh scattering.\nShort waves scatter most.",
        "prompt_ids": vocabulary.encode(
            "<|im_user|>user<|im_middle|>Why is the sky blue?<|im_end|>"
            "<|im_assistant|>assistant<|im_middle|><think>"
        ),
        "completion_ids": vocabulary.encode(
            "Short answer: scattering.</think>Because of Rayleigh scattering.\n"
            "Short waves scatter most.<|im_end|>"
        ),
        "exactness": "matched",
        "flags": [],
        "finish_reason": "stop",
        "native_finish_reason": "stop",
        "model": "moonshotai/kimi-k2.5-0127",
        "provider": "Novita",
        "usage": {"prompt_tokens": 14, "completion_tokens": 19, "cost": 0.0121},
        "attempts": 1,
        "started_at": "2026-11-30T13:22:50.000Z",
        "latency_s": 31.0,
    }
    folder = tmp_path / snapshot.datasets[3].name
    folder.mkdir()
    (folder / ROWS).write_bytes(dump_line(row))
    (tmp_path / RUN).write_bytes(b'{"manifest":{"endpoint":{"tokenizer":"kimi-k2.5"}}}')
    app = EaglegenApp(ScriptedRun(snapshot), clock=StillClock(snapshot.heartbeat_at))

    async def read(pilot: Pilot[None]) -> None:
        await pilot.press("enter", "enter")
        for _ in range(3):
            await pilot.pause()
            await pilot.app.workers.wait_for_complete()

    assert snap_compare(app, terminal_size=size, run_before=read)


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
