"""Lets a run outlive its terminal: a child does the run, its parent only waits in the shell.

The fork happens before any thread starts. When the run goes on without its terminal (by key, or
hung up on) the child gives the terminal up, the parent leaves, and the shell has its prompt back.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import termios
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from tui.outlet import RESTORE, say
from tui.signals import routed

LOG = "run.log"
"""Where a run without a terminal tells its story, in the run directory."""
_SCREEN = (0, 1, 2)


class Tether:
    """The child's end of the line to the parent that waits in the shell; `None`: there is none."""

    def __init__(self, parent: socket.socket | None) -> None:
        self._parent = parent

    @property
    def held(self) -> bool:
        """Whether a parent waits, so that leaving gives the shell its prompt back."""
        return self._parent is not None

    def let_go(self, farewell: str) -> None:
        """Go into a session of our own and let the parent leave; it prints `farewell` first.

        Call it when the terminal is restored and fds 0 to 2 are away from it.
        """
        if self._parent is None:
            return
        parent, self._parent = self._parent, None
        with suppress(PermissionError):  # a group's leader has no terminal to share
            os.setsid()
        with suppress(OSError):  # the parent was hung up on, and has gone already
            parent.sendall(farewell.encode() or b"\n")
        parent.close()


UNTETHERED = Tether(None)


def tether() -> Tether:
    """Fork. Returns in the child only; the parent waits, and ends with the child's exit code.

    Where the system cannot fork, or threads already run, there is no parent and no line.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1:
        return Tether(None)
    sys.stdout.flush()
    sys.stderr.flush()
    attributes = _attributes()
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        return Tether(theirs)
    theirs.close()
    raise SystemExit(_wait(child, ours, attributes))


def _wait(child: int, line: socket.socket, attributes: list[Any] | None) -> int:
    """The parent's whole life: pass signals on, and end as the child does.

    SIGINT reaches the child from the terminal by itself.
    """

    def forward(number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTSTP, signal.SIGCONT):
        signal.signal(number, signal.SIG_DFL)
    with routed(forward, signal.SIGTERM, signal.SIGHUP), line:
        farewell = _all(line)
        if farewell:
            say(farewell)
            return 0
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code >= 0:
        return code
    _rescue(attributes)
    say(f"the run's process was killed by signal {-code}; the same command goes on with it\n")
    return 128 - code


def _all(line: socket.socket) -> str:
    """What the child says before it closes the line; empty where it ends without a word."""
    parts = []
    while part := line.recv(4096):
        parts.append(part)
    return b"".join(parts).decode()


def _attributes() -> list[Any] | None:
    try:
        return termios.tcgetattr(0)
    except termios.error:
        return None


def _rescue(attributes: list[Any] | None) -> None:
    """Give the terminal back after a child that could not do it itself."""
    if attributes is None:
        return
    with suppress(termios.error):
        termios.tcsetattr(0, termios.TCSANOW, attributes)
    say(RESTORE)


def terminals() -> tuple[int, ...]:
    """Which of fds 0 to 2 are terminals."""
    return tuple(descriptor for descriptor in _SCREEN if os.isatty(descriptor))


def divert(descriptors: tuple[int, ...], log: Path | None = None) -> None:
    """Take descriptors away from the terminal: nothing to read, and `log` (or nothing) to write to.

    A dead terminal would make readers spin and writers fail.
    """
    null = os.open(os.devnull, os.O_RDWR)
    out = null
    if log is not None:
        with suppress(OSError):  # a full disk: the journal in memory still says it
            out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for descriptor in descriptors:
        os.dup2(null if descriptor == 0 else out, descriptor)
    for descriptor in {null, out}:
        os.close(descriptor)
