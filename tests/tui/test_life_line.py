"""The line between the screen and its reader: sizes, stalls, tmux, and an SSH that is cut."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk
from e2e_provider import playing, slow
from life_servers import Sshd, Tmux, found_sshd, session_of
from life_terminal import (
    MAIN,
    PROMPT,
    STALLING,
    Terminal,
    command,
    finish,
    goes_on_to_its_end,
    rows,
    shell,
    wait_for,
)

from engine.disk.rundir import is_held
from engine.simulator import Simulator
from engine.simulator.scenario import Latency

PROMPTS = 2000
STALL_S = 20.0


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing(latency=slow(0.2)) as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, endpoint={"api": "openai"}, limits={"concurrency": 6})
        yield desk
        finish(desk)


@pytest.fixture
def opened() -> Iterator[Callable[[Terminal], Terminal]]:
    terminals: list[Terminal] = []

    def keep(terminal: Terminal) -> Terminal:
        terminals.append(terminal)
        return terminal

    yield keep
    for terminal in terminals:
        terminal.close()


def hurry(provider: Simulator) -> None:
    """Let the provider answer at once from now on: the rest of the run takes seconds."""
    traffic = provider.provider._traffic
    quick = Latency(**slow(0.005))
    traffic._scenario = traffic._scenario.model_copy(update={"latency": quick})


def running(desk: Desk, terminal: Terminal) -> int:
    """The screen is there and rows come; returns the run's process."""
    terminal.until("RUNNING", f"{PROMPTS:,} prompts")
    terminal.read_until(lambda: rows(desk))
    return int(desk.files.status()["pid"])


def goes_on(desk: Desk, pid: int) -> None:
    """The same process writes more rows."""
    before = rows(desk)
    wait_for(lambda: rows(desk) > before + 12)
    assert is_held(desk.files.folder)
    assert desk.files.status()["pid"] == pid


def shown_again(desk: Desk, opened: Callable[[Terminal], Terminal]) -> None:
    """`attach` shows the run that goes on without a screen, and leaves it alone."""
    again = opened(command(desk, "attach", "out"))
    again.until("RUNNING", f"{PROMPTS:,} prompts")
    again.press("q")
    again.until("leave this screen")
    again.press("q")
    assert again.end() == 0


# sizes and redirections


def test_a_window_of_20x5_and_back(
    desk: Desk, provider: Simulator, opened: Callable[[Terminal], Terminal]
) -> None:
    terminal = opened(command(desk, "run", "manifest.toml"))
    running(desk, terminal)
    terminal.resize(20, 5)
    terminal.until_gone("heartbeat")
    terminal.until("RUNNING")
    terminal.press("P")
    terminal.until("PAUSED")
    terminal.resize(160, 48)
    terminal.until("PAUSED", f"A · {PROMPTS:,} prompts", "heartbeat")
    terminal.press("P")
    terminal.until("RUNNING")
    hurry(provider)
    terminal.until("q closes")
    terminal.press("q")
    assert terminal.end() == 0
    goes_on_to_its_end(desk, PROMPTS)


def test_narration_into_a_file_is_lines_and_no_screen(
    desk: Desk, provider: Simulator, opened: Callable[[Terminal], Terminal]
) -> None:
    hurry(provider)
    terminal = opened(shell(desk))
    terminal.press("eaglegen run manifest.toml --interval 0.2 2>log; echo code=$?\n")
    terminal.until("code=0", PROMPT)
    said = (desk.folder / "log").read_bytes()
    assert b" A " in said
    assert f"e2e done. {PROMPTS} rows in out".encode() in said
    assert b"\x1b" not in said
    assert b"\x1b[?1049" not in terminal.sent


# a stall


@pytest.mark.slow
def test_a_terminal_that_stalls_for_long_holds_nobody_and_is_painted_anew(
    desk: Desk, provider: Simulator, opened: Callable[[Terminal], Terminal]
) -> None:
    terminal = opened(command(desk, "run", "manifest.toml", before=STALLING))
    pid = running(desk, terminal)
    (desk.folder / "fill").touch()
    wait_for((desk.folder / "full").exists)
    began, before = desk.files.status()["elapsed_s"], rows(desk)
    terminal.press("p")  # a key that nobody sees: it is obeyed all the same
    wait_for(lambda: desk.files.status()["datasets"][0]["state"] == "paused")
    terminal.press("p")
    wait_for(lambda: desk.files.status()["elapsed_s"] > began + STALL_S)
    assert rows(desk) > before + STALL_S * 10
    assert desk.files.status()["pid"] == pid
    terminal.until("the terminal stalled for", "the engine went on", "RUNNING")
    terminal.until_gone("xxxxxxxx")
    terminal.press("j?")
    terminal.until("Keys (j k scroll")
    terminal.press("\x1b")
    hurry(provider)
    terminal.until("q closes")
    terminal.press("q")
    assert terminal.end() == 0
    goes_on_to_its_end(desk, PROMPTS)


# tmux


@pytest.fixture
def tmux(desk: Desk) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    tmux = Tmux(desk)
    yield tmux
    tmux("kill-server")


@pytest.mark.slow
def test_in_tmux_it_is_left_resized_and_outlives_the_server(
    desk: Desk, provider: Simulator, tmux: Tmux, opened: Callable[[Terminal], Terminal]
) -> None:
    program = shlex.join([sys.executable, "-c", MAIN, "run", "manifest.toml"])
    tmux("new-session", "-d", "-x", "100", "-y", "30", program)
    client = opened(tmux.client())
    pid = running(desk, client)
    tmux("detach-client")
    assert client.end() == 0
    goes_on(desk, pid)
    tmux("resize-window", "-x", "60", "-y", "16")
    wait_for(lambda: tmux.shows("RUNNING", "A"))
    tmux("resize-window", "-x", "120", "-y", "40")
    wait_for(lambda: tmux.shows("RUNNING", f"A · {PROMPTS:,} prompts", "heartbeat"))
    tmux("send-keys", "P")
    wait_for(lambda: tmux.shows("PAUSED"))
    tmux("send-keys", "P")
    wait_for(lambda: tmux.shows("RUNNING"))
    tmux("kill-server")
    goes_on(desk, pid)
    shown_again(desk, opened)
    hurry(provider)
    notes = goes_on_to_its_end(desk, PROMPTS)
    assert any("the run goes on without a screen" in note for note in notes)


# SSH


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[Sshd]:
    program = found_sshd()
    if program is None or shutil.which("ssh") is None:
        pytest.skip("no sshd and ssh on this machine (openssh-server, openssh-client)")
    server = Sshd(program, tmp_path / "sshd")
    yield server
    server.close()


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["client", "session"])
def test_a_cut_ssh_line_leaves_the_run_to_itself(
    desk: Desk,
    provider: Simulator,
    sshd: Sshd,
    opened: Callable[[Terminal], Terminal],
    victim: str,
) -> None:
    words = [f"{name}={value}" for name, value in desk.environment.items()]
    program = shlex.join(["env", *words, sys.executable, "-c", MAIN, "run", "manifest.toml"])
    terminal = opened(sshd.client(desk, f"cd {shlex.quote(str(desk.folder))} && {program}"))
    pid = running(desk, terminal)
    os.kill(terminal.pid if victim == "client" else session_of(pid), signal.SIGKILL)
    while terminal.read(1.0):
        pass
    terminal.wait()
    goes_on(desk, pid)
    wait_for((desk.files.folder / "run.log").exists)
    assert os.getsid(pid) == pid
    shown_again(desk, opened)
    hurry(provider)
    notes = goes_on_to_its_end(desk, PROMPTS)
    assert any("the run goes on without a screen" in note for note in notes)
