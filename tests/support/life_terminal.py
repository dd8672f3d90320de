"""The real command line on a real pseudo-terminal, alone or under a shell, seen by an emulator."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import sys
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pyte
from e2e_desk import Desk
from e2e_files import assert_accounted

from engine.disk.rundir import is_held

MAIN = "from tui.cli import main; main()"
PROMPT = "READY> "
STALLING = """
import os, pathlib, threading, tui.app as app
pause, show = threading.Event(), app.show
def fill():
    while not pathlib.Path("fill").exists():
        pause.wait(0.02)
    terminal = os.open(os.ttyname(2), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    refused = 0
    while refused < 50:
        try:
            os.write(terminal, b"x" * 64)
        except BlockingIOError:
            refused += 1
            pause.wait(0.01)
    pathlib.Path("full").touch()
def full_screen(*run, **how):
    threading.Thread(target=fill, daemon=True).start()
    return show(*run, **how)
app.show = full_screen
"""
"""Fills the terminal to the brim as soon as there is a file `fill`."""
_UNKNOWN_TO_PYTE = re.compile(rb"\x1b\[[<=>?][0-9;]*(?:\$p|[a-zA-Z])")
_ALTERNATE = b"\x1b[?1049"
_PATIENCE_S = 30.0


class Terminal:
    """A program on a pty. Close it and the line is cut."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        size: tuple[int, int] = (100, 30),
    ) -> None:
        self.screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self.screen)
        self.sent = bytearray()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:  # pragma: no cover - the child
            fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
            os.chdir(folder)
            os.execvpe(arguments[0], list(arguments), dict(environment))  # noqa: S606 - on a pty

    def read(self, seconds: float = _PATIENCE_S) -> bool:
        """Take what was written; False at the end, or when nothing comes in time."""
        ready, _, _ = select.select([self.fd], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.sent += data
        for part in re.split(b"(?=\x1b\\[\\?1049[hl])", data):
            if part.startswith(_ALTERNATE):
                self.screen.reset()  # pyte knows no second screen: what was on either is gone
            self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", part))
        return bool(data)

    def until(self, *texts: str) -> None:
        """Read until the screen shows every one of the texts."""
        while not all(self.shows(text) for text in texts):
            assert self.read(), f"never shown: {texts}\n" + self.text

    def read_until(self, happened: Callable[[], object]) -> None:
        """Keep reading until something happened elsewhere; the test's own timeout is the bound."""
        while not happened():
            self.read(0.02)

    def until_gone(self, text: str) -> None:
        while self.shows(text):
            assert self.read(), f"still shown: {text}\n" + self.text

    def shows(self, text: str) -> bool:
        return text in self.text

    @property
    def text(self) -> str:
        return "\n".join(self.screen.display)

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def resize(self, cells: int, lines: int) -> None:
        """Another size, as a dragged window has it."""
        self.screen.resize(lines, cells)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, cells, 0, 0))

    def cut(self) -> None:
        """Cut the line, as a closed window or a lost SSH connection does."""
        os.close(self.fd)
        self.fd = -1

    def end(self) -> int:
        """Read to the end and return the exit code."""
        while self.read():
            pass
        return self.wait()

    def wait(self) -> int:
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = 0
        return code

    def close(self) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            self.pid = 0
        if self.fd >= 0:
            self.cut()


def environment(desk: Desk, **more: str) -> dict[str, str]:
    """The desk's environment for a program in a terminal."""
    return {**desk.environment, "TERM": "xterm-256color", "COLORTERM": "truecolor", **more}


def command(desk: Desk, *arguments: object, before: str = "", **more: str) -> Terminal:
    """The command line on a terminal of its own; `before` is Python that it runs first."""
    program = [sys.executable, "-c", f"{before}\n{MAIN}", *map(str, arguments)]
    return Terminal(program, desk.folder, environment(desk, **more))


def shell(desk: Desk, **more: str) -> Terminal:
    """An interactive shell with job control, and the command line as `eaglegen`."""
    bash = shutil.which("bash")
    assert bash is not None
    rc = desk.folder / "bashrc"
    rc.write_text(f"PS1='{PROMPT}'\neaglegen() {{ {sys.executable} -c '{MAIN}' \"$@\"; }}\n")
    terminal = Terminal(
        [bash, "--noprofile", "--rcfile", str(rc), "-i"], desk.folder, environment(desk, **more)
    )
    terminal.until(PROMPT)
    return terminal


def finish(desk: Desk) -> None:
    """No run outlives its test."""
    if is_held(desk.files.folder):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            os.kill(desk.files.status()["pid"], signal.SIGKILL)
        wait_for(lambda: not is_held(desk.files.folder))


def rows(desk: Desk, dataset: str = "A") -> int:
    """Rows that are on disk so far."""
    return len(desk.files.whole_lines(f"{dataset}/rows.jsonl"))


def goes_on_to_its_end(desk: Desk, prompts: int) -> list[str]:
    """Wait for the end of a run that nobody watches; returns the journal's notes."""
    wait_for(lambda: not is_held(desk.files.folder))
    status = desk.files.status()
    assert (status["state"], status["datasets"][0]["ok"]) == ("done", prompts)
    assert_accounted(desk.files)
    return [note["text"] for note in desk.files.events("note")]


def wait_for(happened: Callable[[], object]) -> None:
    """Poll until it happened; the test's own timeout is the bound."""
    pause = threading.Event()
    while not happened():
        pause.wait(0.02)
