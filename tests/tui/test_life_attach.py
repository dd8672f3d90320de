"""`attach`: the full screen on another process's run; leaving it leaves the run alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk
from e2e_provider import playing, slow
from life_terminal import Terminal, command, wait_for
from money_engine import working

from engine.runner import EngineThread
from engine.simulator import Simulator

PROMPTS = 2000


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing(latency=slow(0.1)) as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, endpoint={"api": "openai"}, limits={"concurrency": 4})
        yield desk


@pytest.fixture
def run(desk: Desk) -> Iterator[EngineThread]:
    with working(desk) as run:
        wait_for(lambda: run.snapshot().datasets[0].rows)
        yield run


@pytest.fixture
def attach(desk: Desk) -> Iterator[Callable[..., Terminal]]:
    terminals: list[Terminal] = []

    def start(*options: str) -> Terminal:
        terminals.append(command(desk, "attach", "out", *options))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def orders(desk: Desk) -> list[str]:
    return [entry["command"] for entry in desk.files.events("command")]


def test_a_viewer_steers_leaves_and_comes_back(
    desk: Desk, run: EngineThread, attach: Callable[..., Terminal]
) -> None:
    terminal = attach()
    terminal.until("RUNNING", "since the start", "failed attempts")
    terminal.press("P")
    terminal.until("PAUSED", "paused the run")
    terminal.press("q")
    terminal.until("leave this screen: the run goes on", "drain", "stop at once")
    assert not terminal.shows("background")
    terminal.press("q")
    assert terminal.end() == 0
    assert b"the run goes on; eaglegen-tui attach out" in terminal.sent
    assert b"\x1b[?1049l" in terminal.sent
    assert not run.ended
    assert orders(desk) == ["pause"]
    assert desk.run("attach", "out").err.startswith("eaglegen-tui: attach needs a terminal")
    again = attach("--read-only")
    again.until("PAUSED", "read-only: no key sends anything; since you looked")
    again.press("P")
    again.until("attached read-only: no command is sent")
    again.press("q")
    assert again.end() == 0
    assert orders(desk) == ["pause"]
    assert not run.ended


def test_an_order_from_a_script_is_told_on_every_screen(
    desk: Desk, attach: Callable[..., Terminal]
) -> None:
    own = command(desk, "run", "manifest.toml")
    try:
        own.until("RUNNING")
        other = attach()
        other.until("RUNNING")
        assert desk.run("control", "out", "throttle", "3").code == 0
        told = "control or another viewer: ceiling now 3 in flight"
        own.until(told)
        other.until(told)
        own.press("-")
        own.until("ceiling now 2 in flight")
        assert not own.shows("viewer")
        other.until("the run's own screen: ceiling now 2 in flight")
        other.press("u")
        other.until("nothing to undo")
        own.press("u")
        own.until("ceiling now 3 in flight")
        own.press("qx")
        assert own.end() == 130
    finally:
        own.close()


@pytest.mark.slow
def test_two_viewers_see_what_one_of_them_does_and_how_it_ends(
    run: EngineThread, attach: Callable[..., Terminal]
) -> None:
    first, second = attach(), attach()
    first.until("RUNNING")
    second.until("RUNNING")
    first.press("q")
    first.until("leave this screen")
    first.press("d")
    assert first.end() == 0
    assert b"e2e stopped: drained by order" in first.sent
    second.until("STOPPED", "prompts are left")
    second.press("q")
    assert second.end() == 0
    assert run.exit_code == 130


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_ends_the_screen_and_not_the_run(
    desk: Desk, run: EngineThread, attach: Callable[..., Terminal], number: int
) -> None:
    terminal = attach()
    terminal.until("RUNNING")
    os.kill(terminal.pid, number)
    assert terminal.end() == 0
    assert b"\x1b[?1049l" in terminal.sent
    assert orders(desk) == []
    assert not run.ended


@pytest.mark.slow
def test_a_cut_line_ends_the_screen_and_not_the_run(
    desk: Desk, run: EngineThread, attach: Callable[..., Terminal]
) -> None:
    terminal = attach()
    terminal.until("RUNNING")
    terminal.cut()
    assert terminal.wait() == 0
    assert orders(desk) == []
    assert not run.ended


@pytest.mark.slow
def test_ctrl_c_asks_what_is_meant(
    desk: Desk, run: EngineThread, attach: Callable[..., Terminal]
) -> None:
    terminal = attach()
    terminal.until("RUNNING")
    terminal.press("\x03")
    terminal.until("leave this screen")
    terminal.press("\x1b")
    terminal.until_gone("leave this screen")
    assert orders(desk) == []
    assert not run.ended


def test_a_run_that_dies_is_said(desk: Desk, attach: Callable[..., Terminal]) -> None:
    process = desk.begin()
    process.until(lambda: desk.files.whole_lines("A/rows.jsonl"), "rows come")
    terminal = attach()
    terminal.until("RUNNING")
    process.kill()
    terminal.until("STOPPED", "its process is gone")
    terminal.press("q")
    assert terminal.end() == 0
    late = desk.run("control", "out", "drain")
    assert late.code == 2
    assert "no process does this run" in late.err


def test_without_a_run_it_ends_with_2(attach: Callable[..., Terminal]) -> None:
    terminal = attach()
    assert terminal.end() == 2
    assert b"is no run directory" in terminal.sent


@pytest.mark.usefixtures("run")
def test_an_unknown_theme_ends_with_2(attach: Callable[..., Terminal]) -> None:
    terminal = attach("--theme", "no-such")
    assert terminal.end() == 2
    assert b"unknown theme" in terminal.sent
