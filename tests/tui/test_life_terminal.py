"""What becomes of a run when its terminal goes: by key, by a cut line, by a signal, by a crash."""

from __future__ import annotations

import os
import signal
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk
from e2e_files import RunFiles, assert_accounted
from e2e_provider import playing, slow
from life_terminal import (
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

FLYING = 4
PROMPTS = 16
DONE = f"e2e done. {PROMPTS} rows in out"
CRASHING = """
import tui.app as app, tui.link as link
def broken(snapshot):
    api_key = "sk-" + "secret"
    if snapshot.datasets[0].ok:
        raise RuntimeError("the title is broken")
    return "fine"
app.title, link.NAME_S = broken, 0.1
"""


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing(latency=slow(0.3)) as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, endpoint={"api": "openai"}, limits={"concurrency": FLYING})
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


def running(desk: Desk, terminal: Terminal) -> None:
    """The screen is there and the first rows are too."""
    terminal.until("RUNNING")
    terminal.read_until(lambda: rows(desk))


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_detaching_gives_the_prompt_back_and_the_run_goes_on(
    desk: Desk, opened: Callable[[Terminal], Terminal]
) -> None:
    terminal = opened(shell(desk))
    terminal.press("eaglegen run manifest.toml; echo code=$?\n")
    running(desk, terminal)
    terminal.press("q")
    terminal.until("go on in the background")
    terminal.press("b")
    terminal.until("e2e goes on in the background", "attach out", "code=0", PROMPT)
    assert is_held(desk.files.folder)
    terminal.press("echo still-$((40+2))\n")
    terminal.until("still-42")
    pid = desk.files.status()["pid"]
    assert os.getsid(pid) == pid
    log = desk.files.folder / "run.log"
    assert {Path(f"/proc/{pid}/fd/{number}").readlink() for number in (1, 2)} == {log}
    terminal.press("exit\n")  # what the shell hangs up on is no longer its own
    terminal.end()
    assert any("detached by key" in note for note in goes_on_to_its_end(desk, PROMPTS))
    assert DONE in log.read_text()
    assert b"\x1b[?1049l" in terminal.sent
    assert b"\x1b[23;2t" in terminal.sent


@pytest.mark.slow
def test_the_title_carries_name_and_percent(
    desk: Desk, opened: Callable[[Terminal], Terminal]
) -> None:
    terminal = opened(command(desk, "run", "manifest.toml"))
    terminal.until("q closes")
    terminal.read_until(lambda: terminal.screen.title == "e2e 100% done")
    terminal.press("Q")
    assert terminal.end() == 0
    sent = bytes(terminal.sent)
    assert sent.index(b"\x1b[22;2t") < sent.index(b"\x1b]2;e2e ") < sent.rindex(b"\x1b[23;2t")
    assert DONE.encode() in sent[sent.rindex(b"\x1b[?1049l") :]


@pytest.mark.parametrize("under_shell", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_cut_line_leaves_the_run_to_itself(
    desk: Desk, opened: Callable[[Terminal], Terminal], under_shell: bool
) -> None:
    if under_shell:
        terminal = opened(shell(desk))
        terminal.press("eaglegen run manifest.toml\n")
    else:
        terminal = opened(command(desk, "run", "manifest.toml"))
    running(desk, terminal)
    pid = desk.files.status()["pid"]
    before = rows(desk)
    terminal.cut()
    terminal.wait()
    spent = cpu_s(pid)
    wait_for(lambda: rows(desk) >= before + 2 * FLYING)
    assert cpu_s(pid) - spent < 0.6  # spinning on a dead terminal takes the whole second
    notes = goes_on_to_its_end(desk, PROMPTS)
    assert any("the run goes on without a screen" in note for note in notes), notes
    assert "e2e done" in (desk.files.folder / "run.log").read_text()


@pytest.mark.slow
def test_a_cut_line_leaves_a_headless_run_to_itself(
    desk: Desk, opened: Callable[[Terminal], Terminal]
) -> None:
    terminal = opened(command(desk, "run", "manifest.toml", "--headless"))
    terminal.read_until(lambda: rows(desk))
    terminal.cut()
    assert terminal.wait() == 0
    notes = goes_on_to_its_end(desk, PROMPTS)
    assert any("the run goes on without a screen" in note for note in notes), notes


@pytest.mark.slow
def test_a_parent_that_is_killed_leaves_the_run_to_itself(
    desk: Desk, opened: Callable[[Terminal], Terminal]
) -> None:
    terminal = opened(command(desk, "run", "manifest.toml"))
    running(desk, terminal)
    os.kill(terminal.pid, signal.SIGKILL)
    terminal.wait()
    terminal.cut()
    goes_on_to_its_end(desk, PROMPTS)


def test_a_killed_run_gives_the_terminal_back(
    desk: Desk, opened: Callable[[Terminal], Terminal]
) -> None:
    terminal = opened(command(desk, "run", "manifest.toml"))
    running(desk, terminal)
    os.kill(desk.files.status()["pid"], signal.SIGKILL)
    terminal.until("killed by signal 9")
    assert termios.tcgetattr(terminal.fd)[3] & termios.ECHO
    assert terminal.end() == 128 + signal.SIGKILL
    assert b"\x1b[?1049l" in terminal.sent


@pytest.mark.parametrize("to_the_run", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_sigterm_drains_and_the_terminal_is_given_back(
    desk: Desk, opened: Callable[[Terminal], Terminal], to_the_run: bool
) -> None:
    terminal = opened(command(desk, "run", "manifest.toml"))
    running(desk, terminal)
    os.kill(desk.files.status()["pid"] if to_the_run else terminal.pid, signal.SIGTERM)
    assert terminal.end() == 130
    assert b"\x1b[?1049l" in terminal.sent
    assert b"e2e stopped" in terminal.sent
    assert [entry["command"] for entry in desk.files.events("command")] == ["drain"]
    assert desk.files.all("attempts") == []
    assert_accounted(desk.files)


def test_a_second_sigterm_stops(tmp_path: Path, opened: Callable[[Terminal], Terminal]) -> None:
    with playing(latency=slow(60)) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, endpoint={"api": "openai"}, limits={"concurrency": FLYING})
        terminal = opened(command(desk, "run", "manifest.toml"))
        terminal.until("RUNNING")
        terminal.read_until(lambda: provider.provider.in_flight == FLYING)
        os.kill(terminal.pid, signal.SIGTERM)
        terminal.until("DRAINING")
        os.kill(terminal.pid, signal.SIGTERM)
        assert terminal.end() == 130
        assert {attempt["family"] for attempt in desk.files.all("attempts")} == {"cancelled"}


def test_a_crash_of_the_screen_leaves_the_run_going_in_lines(
    desk: Desk, opened: Callable[[Terminal], Terminal]
) -> None:
    terminal = opened(command(desk, "run", "manifest.toml", before=CRASHING))
    terminal.until("the screen failed; the run goes on", "ctrl+c drains it", "attach out")
    assert termios.tcgetattr(terminal.fd)[3] & termios.ECHO
    assert terminal.end() == 0
    assert b"the title is broken" in terminal.sent
    assert b"sk-secret" not in terminal.sent
    assert DONE.encode() in terminal.sent
    goes_on_to_its_end(desk, PROMPTS)  # its journal tells of the crash unless the run ended first


@pytest.mark.slow
def test_ctrl_c_drains_a_run_whose_screen_crashed(
    desk: Desk, opened: Callable[[Terminal], Terminal]
) -> None:
    desk.asking(900, endpoint={"api": "openai"}, limits={"concurrency": FLYING})
    terminal = opened(command(desk, "run", "manifest.toml", before=CRASHING))
    terminal.until("the screen failed")
    terminal.press("\x03")
    terminal.until("SIGINT: draining")
    assert terminal.end() == 130


def test_leaving_while_the_terminal_is_stalled_ends_all_the_same(
    desk: Desk, opened: Callable[[Terminal], Terminal]
) -> None:
    terminal = opened(command(desk, "run", "manifest.toml", before=STALLING))
    running(desk, terminal)
    (desk.folder / "fill").touch()
    wait_for((desk.folder / "full").exists)
    wait_for(lambda: not is_held(desk.files.folder))
    os.write(terminal.fd, b"q")
    assert terminal.wait() == 0
    while terminal.read(0.5):
        pass
    sent = bytes(terminal.sent)
    assert b"\x18" in sent  # given back by force
    assert b"\x1b[?1049l" in sent[sent.index(b"\x18") :]


def test_an_unknown_theme_is_refused_before_anything_starts(
    desk: Desk, opened: Callable[[Terminal], Terminal]
) -> None:
    terminal = opened(command(desk, "run", "manifest.toml", EAGLEGEN_THEME="no-such"))
    assert terminal.end() == 2
    assert b"unknown theme 'no-such'" in terminal.sent
    assert not desk.files.folder.exists()


@pytest.mark.slow
def test_a_demo_goes_on_in_the_background_with_its_provider(
    desk: Desk, opened: Callable[[Terminal], Terminal]
) -> None:
    terminal = opened(command(desk, "demo", "--scale", "0.01", TMPDIR=str(desk.folder)))
    terminal.until("RUNNING")
    terminal.press("q")
    terminal.until("go on in the background")
    terminal.press("b")
    assert terminal.end() == 0
    (folder,) = desk.folder.glob("eaglegen-demo-*/run")
    wait_for(lambda: not is_held(folder))
    demo = RunFiles(folder)
    assert demo.status()["state"] == "done"
    assert len(demo.all("rows")) > 0
    assert "demo done" in (folder / "run.log").read_text()
