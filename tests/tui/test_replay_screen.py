"""`replay`: the same screens on a tape, with keys for the playhead and none that steers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from e2e_desk import Desk
from e2e_provider import playing, slow
from life_terminal import MAIN, Terminal, environment
from taped import START, break_lines, ended, event, moving, write_run
from textual.pilot import Pilot
from virtual_clock import VirtualClock

from engine.disk.rundir import HISTORY
from engine.past.replay import Player
from engine.past.tape import read_tape
from engine.settings import Settings
from tui.draw.paint import plain
from tui.parting import Parting
from tui.replay import MARK, ReplayApp
from tui.screens.overview import OverviewScreen
from tui.widgets.canvas import Canvas

CEILING = 390.0


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    *points, last = moving(40)
    orders = [event(100, "command", "paused B6_ultrachat", command="pause")]
    return write_run(tmp_path / "run", [*points, ended(last)], events=orders)


def on_screen(folder: Path, clock: VirtualClock) -> ReplayApp:
    tape = read_tape(folder)
    player = Player(tape, clock, speed=10, mark=MARK)
    return ReplayApp(tape, settings=Settings.model_construct(), player=player)


def text(pilot: Pilot[None]) -> str:
    canvases = pilot.app.screen.query(Canvas)
    return "\n".join(plain(line) for canvas in canvases for line in canvas.lines)


async def test_the_playhead_obeys_its_keys(folder: Path, clock: VirtualClock) -> None:
    app = on_screen(folder, clock)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert "REPLAY kimi-k25-eagle3" in text(pilot)
        await pilot.press("space", "right", "right")
        assert (app.player.paused, app.player.position) == (True, 120.0)
        await pilot.press("plus", "left")
        assert (app.player.speed, app.player.position) == (20.0, 60.0)
        await pilot.press("minus", "end")
        assert app.player.at_end
        assert "DONE, exit 0: every dataset is complete" in text(pilot)
        await pilot.press("home", "space")
        assert (app.player.position, app.player.paused) == (0.0, False)
        clock.advance(15)
        app.poll()
        await pilot.pause()
        shown = text(pilot)
        assert "2m 30s of 6m 30s" in shown
        assert "paused B6_ultrachat" in shown
        assert "RUNNING" in shown
        assert "heartbeat <2s" in shown


async def test_no_key_of_a_live_run_is_there(folder: Path, clock: VirtualClock) -> None:
    app = on_screen(folder, clock)
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause()
        screen = pilot.app.screen
        assert isinstance(screen, OverviewScreen)
        shorts = {key.short for key in screen.live_keys()}
        assert {"pause", "speed", "1 min", "quit"} <= shorts
        assert not {"pause run", "skip", "throttle", "number", "freeze"} & shorts
        for key in ("p", "P", "s", "u", "f", "equals_sign"):
            await pilot.press(key)
        assert len(app.screen_stack) == 1
        assert not app.player.paused


async def test_a_dialog_keeps_its_letters(folder: Path, clock: VirtualClock) -> None:
    app = on_screen(folder, clock)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("slash", *"b6", "space", "q", "home", "escape")
        assert (app.player.paused, app.player.position) == (False, 0.0)
        await pilot.press("colon", *"drain", "enter")
        for _ in range(3):
            await pilot.pause()
        assert "this is a replay: nothing is sent" in text(pilot)


async def test_other_screens_move_too(folder: Path, clock: VirtualClock) -> None:
    app = on_screen(folder, clock)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("space", "4", "enter", "right")
        await pilot.pause()
        assert app.player.position == 60
        assert "B6_ultrachat · 15,000 prompts" in text(pilot)
        await pilot.press("escape", "q")
        await pilot.pause()
    assert app.left.parting is Parting.AWAY
    assert not app.left.summary


async def test_a_gap_between_sessions_is_named(tmp_path: Path, clock: VirtualClock) -> None:
    run = write_run(tmp_path, moving(4), moving(4, START + 5000, pid=5))
    app = on_screen(run, clock)
    async with app.run_test(size=(140, 40)) as pilot:
        await pilot.pause()
        clock.advance(6.1)  # the greeting is no news any more
        app.poll()
        assert "session 2 of 2" in text(pilot)
        assert "the next session, 1h 22m later: process 5" in text(pilot)


async def test_what_was_left_out_is_said(folder: Path, clock: VirtualClock) -> None:
    break_lines(folder / HISTORY, b"{", b"7")
    app = on_screen(folder, clock)
    async with app.run_test(size=(160, 40)) as pilot:
        await pilot.pause()
        assert "2 unreadable lines left out (history.jsonl)" in text(pilot)


# the real command line on a real terminal


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with playing(latency=slow(0.01)) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(40, endpoint={"api": "openai", "tokenizer": "none"})
        yield desk


@contextmanager
def terminal_of(desk: Desk, *arguments: str, cells: int = 120) -> Iterator[Terminal]:
    program = [sys.executable, "-c", MAIN, "replay", "out", *arguments]
    terminal = Terminal(program, desk.folder, environment(desk), size=(cells, 40))
    try:
        yield terminal
    finally:
        terminal.close()


def test_an_ended_run_plays_and_is_left(desk: Desk) -> None:
    assert desk.go("--headless").code == 0
    before = {path: path.stat().st_mtime_ns for path in desk.files.folder.rglob("*")}
    with terminal_of(desk, "--speed", "100") as terminal:
        terminal.until("REPLAY e2e", "DONE, exit 0: every dataset is complete")
        terminal.press("\x1b[H")
        terminal.until("40 prompts")
        terminal.press("Q")
        assert terminal.end() == 0
    assert b"\x1b[?1049l" in terminal.sent
    assert b"e2e done. 40 rows" in terminal.sent
    assert {path: path.stat().st_mtime_ns for path in desk.files.folder.rglob("*")} == before


def test_ctrl_c_leaves_a_replay(desk: Desk) -> None:
    write_run(desk.files.folder, moving(30))
    with terminal_of(desk) as terminal:
        terminal.until("REPLAY", "RUNNING")
        terminal.press("\x03")
        assert terminal.end() == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, b"is no run directory"),
        (b"", b"nothing has been recorded of this run yet"),
        (b'{"torn', b"holds no line of a run's history: 1 unreadable"),
    ],
)
def test_what_cannot_be_played_ends_with_2(
    tmp_path: Path, content: bytes | None, said: bytes
) -> None:
    with Desk(tmp_path) as desk:
        if content is not None:
            write_run(desk.files.folder, [])
            (desk.files.folder / HISTORY).write_bytes(content)
        with terminal_of(desk, cells=200) as terminal:
            assert terminal.end() == 2
        assert said in terminal.sent
        assert b"Traceback" not in terminal.sent


def test_without_a_terminal_it_ends_with_2(tmp_path: Path) -> None:
    with Desk(tmp_path) as desk:
        write_run(desk.files.folder, moving(2))
        result = desk.run("replay", "out")
        assert result.code == 2
        assert "replay needs a terminal" in result.err


def test_a_run_of_before_these_fields_plays(tmp_path: Path, clock: VirtualClock) -> None:
    """history.jsonl held only status.json's object and the time."""
    from engine.clock import iso
    from engine.disk.jsonlines import dump_line
    from engine.view.frame import status

    folder = write_run(tmp_path, [])
    points = [replace(point, rows_per_s=1.0) for point in moving(6)]
    old = [{**status(point), "at": iso(point.heartbeat_at)} for point in points]
    (folder / HISTORY).write_bytes(b"".join(map(dump_line, old)))
    player = Player(read_tape(folder), clock, speed=1)
    player.move(50)
    shown = player.snapshot()
    assert [view.ok for view in shown.datasets] == [view.ok for view in points[5].datasets]
    assert shown.rate.values
    assert shown.providers == ()
