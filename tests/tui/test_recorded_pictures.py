"""The pictures come from a recorded run, by a command, the same on every machine."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from taped import ended, event, moving, write_run

import themes
from engine.disk.jsonlines import load_line
from engine.past.tape import read_tape
from tui import picture, recorded

LARGEST = 200_000


@pytest.fixture(autouse=True)
def _colours(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    yield
    monkeypatch.undo()
    time.tzset()


def seen(path: Path) -> str:
    svg = path.read_text("utf-8").replace("&#160;", " ")
    return " ".join(re.findall(r">([^<]+)</text>", svg))


def test_the_recorded_run_is_small_and_says_nothing_of_its_machine() -> None:
    files = list(recorded.FOLDER.iterdir())
    assert {path.name for path in files} == {"run.json", "history.jsonl", "events.jsonl"}
    assert sum(path.stat().st_size for path in files) < LARGEST
    content = "".join(path.read_text("utf-8") for path in files)
    assert not re.search(r"127\.0\.0\.1|/root|/work|/tmp|/home", content)
    tape = read_tape(recorded.FOLDER)
    assert tape.odd == {}
    assert {session.host for session in tape.sessions} == {recorded.HOST}
    assert tape.last.exit_code == 0


def test_the_moment_of_the_picture_tells_the_story() -> None:
    snapshot = recorded.moment(picture.AT_S)
    running = next(view for view in snapshot.datasets if view.name == "B6_ultrachat")
    assert (running.state, running.prompts) == ("running", 15_000)
    verdicts = {line.verdict for line in running.errors if line.family == "rate_limit"}
    assert verdicts == {"RESOLVED"}
    assert any(each.family == "rate_limit" for each in snapshot.errors_by_family)
    assert snapshot.events.marks
    for view in snapshot.datasets:
        assert view.prompts == view.ok + view.failed + view.invalid + view.in_flight + view.left


def test_one_for_each_theme_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "SIZES", ((80, 24), (100, 30)))
    monkeypatch.setattr(picture, "SCREENS", {"overview": ()})
    picture.main(["--all", str(tmp_path)])
    made = {path.name: path for path in tmp_path.iterdir()}
    assert set(made) == {
        f"overview-{theme}-{size}.svg" for theme in themes.names() for size in ("80x24", "100x30")
    }
    for path in made.values():
        assert "B6_ultrachat · 15,000 prompts" in seen(path)


def test_the_same_command_makes_the_same_picture(tmp_path: Path) -> None:
    pictures = [tmp_path / name for name in ("one.svg", "two.svg")]
    for path in pictures:
        picture.main([str(path), "--size", "100x30", "--press", "e"])
    one, two = (re.sub(r"terminal-\d+", "terminal", path.read_text("utf-8")) for path in pictures)
    assert one == two
    assert "rate_limit" in seen(pictures[0])


def test_a_run_is_recorded_without_what_is_the_machines(tmp_path: Path) -> None:
    orders = [
        event(12, "command", "paused the run", command="pause", origin="control"),
        event(12, "state", "run running → paused", state="paused"),
        event(31, "state", "run paused → running", state="running"),
    ]
    run = {"manifest": {"run": {"name": "x"}, "endpoint": {"base_url": "http://127.0.0.1:1/v1"}}}
    *points, last = moving(9)
    source = write_run(tmp_path / "run", [*points, ended(last)], events=orders, run=run)
    size = recorded.record(source, tmp_path / "small", every=2)
    assert size == sum(path.stat().st_size for path in (tmp_path / "small").iterdir())
    again, before = read_tape(tmp_path / "small"), read_tape(source)
    assert len(again.sessions[0]) == 5
    assert again.marks == before.marks
    assert again.states == before.states
    assert again.last.exit_code == 0
    written = load_line((tmp_path / "small" / "run.json").read_bytes())
    assert written["manifest"]["endpoint"]["base_url"] == recorded.ENDPOINT
