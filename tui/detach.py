"""Lets a run outlive its terminal: a child does the run, its parent only waits in the shell.

The fork happens before any thread starts. On a detach the child gives the terminal up, the parent
leaves and the shell has its prompt back; on a hang-up (SIGHUP) the child goes on without it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

_DETACHED = b"d"
_FORWARDED = (signal.SIGTERM, signal.SIGHUP)


class Tether:
    """The child's end: tells the parent to leave."""

    def __init__(self, pipe: int) -> None:
        self._pipe: int | None = pipe

    @property
    def held(self) -> bool:
        """Whether the parent still waits in the shell."""
        return self._pipe is not None

    def let_go(self) -> None:
        """Give the terminal up: new session, nothing on fds 0 to 2, and the parent leaves.

        Call it with the terminal restored, from the main thread.
        """
        if self._pipe is None:
            return
        os.setsid()
        leave_terminal()
        try:
            os.write(self._pipe, _DETACHED)
        except BrokenPipeError:
            pass  # the parent was hung up on and has gone already
        os.close(self._pipe)
        self._pipe = None


def leave_terminal() -> None:
    """Put /dev/null on fds 0 to 2; a dead terminal would make readers spin and writers fail."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def tethered(work: Callable[[Tether], int], farewell: str) -> int:
    """Do `work` in a child and wait for it; returns its exit code.

    When the child detaches, `farewell` is printed and 0 returned while it goes on. SIGTERM and
    SIGHUP are passed on to the child; SIGINT reaches it from the terminal by itself.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _end(work, Tether(writer))
    os.close(writer)
    return _wait(child, reader, farewell)


def _end(work: Callable[[Tether], int], tether: Tether) -> None:
    """Run the work and end the child process without the parent's clean-up handlers."""
    code = 1
    try:
        code = work(tether)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int, reader: int, farewell: str) -> int:
    def forward(number: int, frame: FrameType | None) -> None:
        del frame
        os.kill(child, number)

    for number in _FORWARDED:
        signal.signal(number, forward)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    word = os.read(reader, 1)  # empty when the child ends without detaching
    if word == _DETACHED:
        sys.stderr.write(farewell)
        return 0
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
