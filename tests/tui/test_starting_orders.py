"""Before the first request: an endpoint that never answers holds nobody who wants to leave."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk, Process
from e2e_provider import playing
from life_terminal import Terminal, command

from engine.disk.rundir import is_held


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A run against a server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as mute, Desk(tmp_path) as desk:
        desk.base_url = f"http://127.0.0.1:{mute.getsockname()[1]}/v1"
        desk.asking(3)
        yield desk


def starting(desk: Desk, *options: object) -> Process:
    process = desk.begin(*options)
    process.until(lambda: "starting" in said(desk), "its heartbeat says that it is starting")
    return process


def said(desk: Desk) -> str:
    path = desk.files.folder / "status.json"
    return path.read_text("utf-8") if path.exists() else ""


def left_nothing(desk: Desk, origin: str) -> None:
    status = desk.files.status()
    reason = f"ended before anything was sent, by order ({origin})"
    assert (status["state"], status["reason"]) == ("stopped", reason)
    assert (status["datasets"][0]["left"], status["in_flight"]) == (3, 0)
    assert not is_held(desk.files.folder)
    assert not (desk.files.folder / "A" / "sent.jsonl").exists()
    assert not (desk.files.folder / "control.sock").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_leaves_at_once(desk: Desk, number: signal.Signals) -> None:
    process = starting(desk)
    process.signal(number)
    result = process.wait(10)
    assert result.code == 130
    assert f"{number.name}: leaving before anything was sent\n" in result.err
    assert "Traceback" not in result.err
    left_nothing(desk, number.name)


def test_two_signals_in_a_row_leave_too(desk: Desk) -> None:
    process = starting(desk, "--json")
    process.signal(signal.SIGTERM)
    process.signal(signal.SIGINT)
    result = process.wait(10)
    assert result.code == 130
    assert result.summary["state"] == "stopped"
    assert not is_held(desk.files.folder)


HANGING = """
import threading, engine.assemble as assemble
def hang(folder):
    threading.Event().wait()
assemble.read_ledger = hang
"""


def test_a_read_that_never_returns_holds_nobody(tmp_path: Path) -> None:
    """Whatever is read before the start: a network mount may be gone."""
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(3)
        process = desk.begin(before=HANGING)
        process.until(lambda: "starting" in said(desk), "its heartbeat says that it is starting")
        process.signal(signal.SIGTERM)
        assert process.wait(15).code == 130
        left_nothing(desk, "SIGTERM")


MUTE_ACCOUNT = """
import asyncio, engine.conductor as conductor
async def ask(session):
    print("asked", flush=True)
    await asyncio.Event().wait()
conductor.look_at_funds = ask
"""


def test_an_account_that_does_not_answer_holds_nobody(tmp_path: Path) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(3, endpoint={"api": "openrouter", "tokenizer": "none"})
        process = desk.begin(before=MUTE_ACCOUNT)
        process.until(lambda: "asked" in process.out, "it asks for the balance")
        process.signal(signal.SIGTERM)
        assert process.wait(15).code == 130
        assert provider.ledger.requests == 0
        assert desk.files.status()["state"] == "stopped"
        assert desk.go().code == 0


@pytest.mark.parametrize("order", ["drain", "stop"])
def test_control_ends_a_run_that_has_not_begun(desk: Desk, order: str) -> None:
    process = starting(desk)
    status = desk.run("status", desk.files.folder)
    assert "e2e  starting: asking the endpoint" in status.out
    answer = desk.run("control", desk.files.folder, order)
    assert (answer.code, answer.out) == (0, "ended before anything was sent\n")
    assert process.wait(10).code == 130
    left_nothing(desk, "control")


def test_control_refuses_a_dataset_that_there_is_not_and_keeps_the_rest(desk: Desk) -> None:
    process = starting(desk)
    refused = desk.run("control", desk.files.folder, "skip", "B")
    assert (refused.code, "no dataset is called 'B'" in refused.err) == (2, True)
    kept = desk.run("control", desk.files.folder, "pause")
    assert kept.out == "noted: done once the endpoint has answered\n"
    assert process.running


def test_a_signal_during_the_imports_is_an_interruption(desk: Desk) -> None:
    early = "import os, signal, tui.cli as cli\nwork = cli.app\n"
    early += "cli.app = lambda *how: (os.kill(os.getpid(), signal.SIGTERM), work(*how))"
    result = desk.begin(before=early).wait(10)
    assert (result.code, result.err) == (130, "SIGTERM: interrupted\n")
    assert not desk.files.folder.exists()


def test_a_long_start_is_explained_once(desk: Desk) -> None:
    process = starting(desk, "--interval", "0.5")
    process.says("state: starting: asking the endpoint")
    process.signal(signal.SIGTERM)
    assert process.wait(10).err.count("state: starting") == 1


@pytest.mark.parametrize("keys", ["q", "\x03"])
def test_the_screen_is_left_at_once(desk: Desk, keys: str) -> None:
    terminal = command(desk, "run", "manifest.toml")
    try:
        terminal.until("STARTING")
        terminal.press(keys)
        assert terminal.end() == 130
    finally:
        terminal.close()
    left_nothing(desk, "screen")


def test_attach_shows_a_run_that_has_not_begun(desk: Desk) -> None:
    process = starting(desk)
    terminal: Terminal = command(desk, "attach", desk.files.folder)
    try:
        terminal.until("STARTING", "A")
        terminal.press("q")
        terminal.until("stop at once")
        terminal.press("x")
        assert terminal.end() == 0
    finally:
        terminal.close()
    assert process.wait(10).code == 130
    left_nothing(desk, "control")
