"""A headless run whose line is lost: by SIGHUP, by a terminal that is gone, under nohup."""

from __future__ import annotations

import os
import pty
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk, Process, until
from e2e_files import assert_accounted
from e2e_provider import playing, slow
from life_terminal import command

from engine.disk.rundir import is_held
from engine.simulator import Simulator

FLYING, PROMPTS = 4, 12


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing(latency=slow(0.5)) as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, endpoint={"api": "openai"}, limits={"concurrency": FLYING})
        yield desk


def flying(process: Process, provider: Simulator) -> None:
    process.until(lambda: provider.provider.in_flight == FLYING, "all slots are filled")


def whole(desk: Desk) -> list[str]:
    """The run is done; returns what the journal notes."""
    status = desk.files.status()
    assert (status["state"], status["datasets"][0]["ok"]) == ("done", PROMPTS)
    assert_accounted(desk.files)
    return [note["text"] for note in desk.files.events("note")]


def test_sighup_without_a_terminal_changes_nothing(desk: Desk, provider: Simulator) -> None:
    process = desk.begin()
    flying(process, provider)
    process.signal(signal.SIGHUP)
    process.signal(signal.SIGHUP)
    result = process.wait()
    assert result.code == 0
    text = f"hung up on (SIGHUP): the run goes on without a screen as process {process.pid}"
    assert [note for note in whole(desk) if "SIGHUP" in note] == [text]
    assert f"note: {text}" in result.err
    assert "e2e done. 12 rows" in result.err


def test_under_nohup_sighup_is_not_even_told(desk: Desk, provider: Simulator) -> None:
    ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    process = desk.begin(before=ignoring)
    flying(process, provider)
    process.signal(signal.SIGHUP)
    assert process.wait().code == 0
    assert not [note for note in whole(desk) if "SIGHUP" in note]


def test_a_drain_after_sighup_is_obeyed(desk: Desk, provider: Simulator) -> None:
    process = desk.begin()
    flying(process, provider)
    process.signal(signal.SIGHUP)
    process.says("hung up on")
    process.signal(signal.SIGTERM)
    assert process.wait().code == 130


def test_a_terminal_that_is_cut_leaves_the_run_alone(desk: Desk, provider: Simulator) -> None:
    terminal = command(desk, "run", "manifest.toml", "--headless", "--json")
    try:
        terminal.read_until(lambda: provider.provider.in_flight == FLYING)
        terminal.cut()
        assert terminal.wait() == 0
    finally:
        terminal.close()
    assert [note for note in whole(desk) if note.startswith("the terminal hung up: the run")]
    log = (desk.files.folder / "run.log").read_text("utf-8")
    assert "e2e done. 12 rows" in log
    assert '"event":"summary"' in log


def test_a_dead_terminal_without_a_signal_is_noticed(desk: Desk, provider: Simulator) -> None:
    """As under setsid: nobody is told, and whoever writes gets EIO."""
    ours, theirs = pty.openpty()
    process = desk.begin("--interval", "0.5", "--json", stdout=theirs, stderr=theirs)
    os.close(theirs)
    flying(process, provider)
    os.close(ours)
    assert process.wait().code == 0
    assert len([note for note in whole(desk) if "the terminal hung up" in note]) == 1
    assert "e2e done. 12 rows" in (desk.files.folder / "run.log").read_text("utf-8")
    until(lambda: not is_held(desk.files.folder), "the run directory is free again")
