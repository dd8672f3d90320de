"""The way of the screen's bytes to the terminal: holds no lock, waits not for ever, gives it back.

A terminal that has stopped reading (an SSH stall, a sleeping laptop) blocks whoever writes to it.
"""

from __future__ import annotations

import os
import select
import termios
from contextlib import suppress

_POLL_S = 0.1
_REFUSALS = 20
_CHUNK = 256
"""Bytes that a terminal which says it can be written to takes at once, or nearly always."""
PUSH_TITLE, POP_TITLE = "\x1b[22;2t", "\x1b[23;2t"
RESTORE = (
    "\x18"  # ends an escape sequence that was cut in the middle
    "\x1b[?2026l\x1b[0m\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1015l\x1b[?1016l"
    "\x1b[?2048l\x1b[?2004l\x1b[?7h\x1b[<u" + POP_TITLE + "\x1b[?1049l\x1b[?25h\x1b[?1004l\r"
)
"""Gives a terminal back whatever the screen had set in it."""


class Outlet:
    """A file for Textual's writer thread. Bytes for a terminal that is gone are dropped."""

    def __init__(self, descriptor: int) -> None:
        """Write to the terminal that `descriptor` is, by a description of its own if possible.

        Setting O_NONBLOCK on the one that we were given would set it for the shell as well.
        """
        self.gone = False
        """Whether the terminal has been hung up on."""
        self.taken = 0
        """Bytes that the terminal has taken."""
        self._open = True
        self._patient = True
        try:
            name = os.ttyname(descriptor)
            self._fd = os.open(name, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
            self._chunk = 1 << 16
        except OSError:
            self._fd = os.dup(descriptor)
            self._chunk = _CHUNK

    def write(self, text: str) -> None:
        """Write it all, as fast as the terminal takes it, or until this is given up."""
        rest = memoryview(text.encode("utf-8", "replace"))
        while rest and self._patient and not self.gone:
            rest = rest[self.put(rest, _POLL_S) :]

    def flush(self) -> None:
        """Nothing waits here."""

    def fileno(self) -> int:
        """The descriptor that is written to."""
        return self._fd

    def drop(self) -> None:
        """Let a writer that waits go on, and swallow what it still has."""
        self._patient = False

    def force(self, text: str) -> None:
        """Write a few bytes past whatever the terminal has not read; what waited there is lost."""
        with suppress(termios.error, OSError):
            termios.tcflush(self._fd, termios.TCOFLUSH)
        self.put(memoryview(text.encode()), 0.0)

    def close(self) -> None:
        """Close the descriptor; a second time does nothing."""
        if self._open:
            self._open = False
            self._patient = False
            os.close(self._fd)

    def put(self, data: memoryview, wait_s: float) -> int:
        """Write what the terminal takes now, or within `wait_s` seconds; returns how much."""
        try:
            _, ready, _ = select.select([], [self._fd], [], wait_s)
            taken = os.write(self._fd, data[: self._chunk]) if ready else 0
        except BlockingIOError:
            return 0
        except OSError:
            self.gone = True
            return 0
        self.taken += taken
        return taken


def is_gone(descriptor: int) -> bool:
    """Whether a terminal has been hung up on: its other end is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)
    try:
        return any(event & (select.POLLHUP | select.POLLNVAL) for _, event in poll.poll(0))
    except OSError:
        return True


def say(text: str) -> None:
    """Write to stderr, and give up where nothing is taken for a while: last words hold nobody."""
    outlet = Outlet(2)
    rest, refused = memoryview(text.encode("utf-8", "backslashreplace")), 0
    while rest and refused < _REFUSALS and not outlet.gone:
        taken = outlet.put(rest, _POLL_S)
        rest, refused = rest[taken:], 0 if taken else refused + 1
    outlet.close()
