"""The screen on a real pseudo-terminal: few bytes, the right cells, a terminal given back."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pyte
import pytest

ROOT = Path(__file__).resolve().parents[2]
UNKNOWN_TO_PYTE = re.compile(rb"\x1b\[[<=>?][0-9;]*(?:\$p|[a-zA-Z])")
"""Private modes and keyboard protocols: they change no cell."""
KEPT = {"PATH", "HOME", "LANG", "LC_ALL", "VIRTUAL_ENV", "SYSTEMROOT"}
CHILD = """
import sys
sys.path[:0] = [{root!r}, {root!r} + "/tests/support"]
from engine.clock import SystemClock
from engine.commands import Drain, Stop
from dataclasses import replace
from scripted_run import LiveRun, ScriptedRun, story
from tui import app

class Ending(LiveRun):
    def snapshot(self):
        shown = super().snapshot()
        over = any(isinstance(one, Drain | Stop) for one in self.commands)
        return replace(shown, exit_code=130, state="stopped") if over else shown

class Broken(LiveRun):
    def snapshot(self):
        api_key = "sk-or-secret"
        if self.commands:
            raise RuntimeError("the screen is broken" + api_key[:0])
        return super().snapshot()

class Counting(LiveRun):
    polls = 0

    def snapshot(self):
        self.polls += 1
        open({tally!r}, "w").write(f"{{self.polls}} {{len(self.commands)}}")
        return super().snapshot()

run = {kind}(SystemClock())
code = app.run_app(run, theme="dark", fps={fps}, bandwidth_kb=1e6)
print("COMMANDS", [type(one).__name__ for one in run.commands], flush=True)
sys.exit(code)
"""


class Terminal:
    """A child process on a pty, seen through a terminal emulator."""

    def __init__(self, kind: str, fps: float, tally: Path = Path(os.devnull), **env: str) -> None:
        cells, lines = 80, 24
        self.screen = pyte.Screen(cells, lines)
        self._stream = pyte.ByteStream(self.screen)
        self.sent = bytearray()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # pragma: no cover - the child
            self._exec(CHILD.format(root=str(ROOT), kind=kind, fps=fps, tally=str(tally)), env)

    def _exec(self, code: str, more: dict[str, str]) -> None:
        resize(1, 80, 24)
        # an environment of its own: readline has put LINES and COLUMNS into pytest's
        kept = {name: value for name, value in os.environ.items() if name in KEPT}
        env = {**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor", **more}
        os.execve(sys.executable, [sys.executable, "-c", code], env)  # noqa: S606 - on a pty

    def read(self, seconds: float = 20.0) -> bool:
        """Take what the child has written; False at its end, or when nothing comes in time."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.sent += data
        self._stream.feed(UNKNOWN_TO_PYTE.sub(b"", data))
        return bool(data)

    def until(self, found: Callable[[], bool]) -> None:
        while not found():
            assert self.read(), "\n".join(self.screen.display)

    def shows(self, text: str) -> Callable[[], bool]:
        return lambda: any(text in line for line in self.screen.display)

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def end(self) -> int:
        while self.read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def resize(fd: int, cells: int, lines: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, cells, 0, 0))


@pytest.fixture
def opened() -> Iterator[list[Terminal]]:
    terminals: list[Terminal] = []
    yield terminals
    for terminal in terminals:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(terminal.pid, signal.SIGKILL)
            os.waitpid(terminal.pid, 0)
        os.close(terminal.fd)


def test_partial_updates_leave_the_same_screen_as_a_full_repaint(opened: list[Terminal]) -> None:
    terminal = Terminal("LiveRun", fps=10)
    opened.append(terminal)
    terminal.until(terminal.shows("elapsed      3s"))
    terminal.press("f")
    terminal.until(terminal.shows("VIEW FROZEN"))
    while terminal.read(0.5):
        pass
    patched = list(terminal.screen.display)
    terminal.screen.reset()
    resize(terminal.fd, 80, 23)
    os.kill(terminal.pid, signal.SIGWINCH)
    terminal.until(terminal.shows("VIEW FROZEN"))
    resize(terminal.fd, 80, 24)
    os.kill(terminal.pid, signal.SIGWINCH)
    while terminal.read(1.0):
        pass
    assert list(terminal.screen.display) == patched


def test_six_moving_datasets_cost_less_than_4_kb_a_frame(opened: list[Terminal]) -> None:
    """8 KB/s at 2 Hz is the limit (facts/terminal.md, 4); counted per frame, not per second."""
    terminal = Terminal("LiveRun", fps=2)
    opened.append(terminal)
    terminal.until(terminal.shows("elapsed      2s"))
    before = len(terminal.sent)
    terminal.until(terminal.shows("elapsed      5s"))
    assert len(terminal.sent) - before < 6 * 4000


@pytest.mark.slow
@pytest.mark.parametrize("keys", ["\r", "\rG", "e"])
def test_the_other_screens_cost_no_more(opened: list[Terminal], keys: str) -> None:
    """Counted from one header to the next: the dataset screen at both its ends, the failures."""
    terminal = Terminal("__import__('detailed_run').DetailedRun", fps=2)
    opened.append(terminal)
    terminal.until(terminal.shows("elapsed      1s"))
    for key in keys:
        terminal.press(key)
    terminal.until(lambda: not terminal.shows("elapsed")())
    while terminal.read(0.2):
        pass
    before, frames = len(terminal.sent), 0
    while frames < 8:
        assert terminal.read()
        while terminal.read(0.15):
            pass
        frames += 1
    assert len(terminal.sent) - before < frames * 4000


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_and_the_terminal_is_given_back(
    opened: list[Terminal], number: int
) -> None:
    terminal = Terminal("Ending", fps=10)
    opened.append(terminal)
    terminal.until(terminal.shows("RUNNING"))
    os.kill(terminal.pid, number)
    assert terminal.end() == 130
    assert b"COMMANDS ['Drain']" in terminal.sent
    assert b"\x1b[?1049l" in terminal.sent
    assert b"\x1b[?25h" in terminal.sent


@pytest.mark.slow
def test_a_terminal_that_stops_reading_stops_neither_keys_nor_signals(
    opened: list[Terminal], tmp_path: Path
) -> None:
    tally = tmp_path / "tally"
    terminal = Terminal("Counting", fps=60, tally=tally)
    opened.append(terminal)
    terminal.until(terminal.shows("RUNNING"))

    def counts() -> list[int]:
        return [int(word) for word in tally.read_text().split()] or [0, 0]

    looks = counts()[0]
    # four looks a frame: about six seconds fill the terminal, the rest is a stall worth a message
    wait_for(lambda: counts()[0] > looks + 3200)
    os.kill(terminal.pid, signal.SIGTERM)
    wait_for(lambda: counts()[1:] == [1])
    terminal.until(terminal.shows("the terminal stalled for"))


def test_no_color_sends_no_colour_and_the_words_stay(opened: list[Terminal]) -> None:
    terminal = Terminal("LiveRun", fps=10, NO_COLOR="1")
    opened.append(terminal)
    terminal.until(terminal.shows("elapsed      1s"))
    codes = re.findall(rb"\x1b\[([0-9;]*)m", terminal.sent)
    used = {int(code) for group in codes for code in group.split(b";") if code}
    assert used <= {0, 1, 2, 7, 22, 27, 39, 49}
    assert terminal.shows("RUNNING")()


def wait_for(happened: Callable[[], bool]) -> None:
    """Poll until it happened; the test's own timeout is the bound."""
    pause = threading.Event()
    while not happened():
        pause.wait(0.02)


def test_ctrl_c_is_a_key_that_drains(opened: list[Terminal]) -> None:
    terminal = Terminal("Ending", fps=10)
    opened.append(terminal)
    terminal.until(terminal.shows("RUNNING"))
    terminal.press("\x03")
    assert terminal.end() == 130
    assert b"COMMANDS ['Drain']" in terminal.sent


def test_a_broken_screen_ends_with_1_and_its_report_holds_no_locals(
    opened: list[Terminal],
) -> None:
    terminal = Terminal("Broken", fps=10)
    opened.append(terminal)
    terminal.until(terminal.shows("RUNNING"))
    terminal.press("p")
    assert terminal.end() == 1
    assert b"the screen is broken" in terminal.sent
    assert b"sk-or-secret" not in terminal.sent.replace(b'api_key = "sk-or-secret"', b"")
    assert b"\x1b[?1049l" in terminal.sent
