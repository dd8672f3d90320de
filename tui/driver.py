"""Textual's driver, asked how far the terminal is behind, so that frames can be dropped in time.

Its writer holds 30 frames and then blocks the app (facts/terminal.md, 1): a terminal that has
stopped reading (an SSH stall, Ctrl-S, a sleeping laptop) would make keys and signals wait as well.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from queue import Empty, Full
from typing import Any, cast

from textual.drivers.linux_driver import LinuxDriver

from tui.outlet import POP_TITLE, PUSH_TITLE, RESTORE, Outlet, is_gone

BACKLOG_MAX = 12
"""Writes that may wait for the terminal; beyond it frames are dropped. A frame is up to three,
and starting and leaving the screen are a dozen each."""
GRACE_S = 2.0
"""How long leaving waits for a terminal that does not read, before it is given back by force."""
_UNTITLED = {"", "dumb", "linux"}
"""Kinds of terminal that have no title."""


class PatientDriver(LinuxDriver):
    """Knows its backlog, counts its bytes, and leaves a stalled or dead terminal in time."""

    _outlet: Outlet | None = None
    _earlier = 0
    _suspended = False
    _title = ""

    def write(self, data: str) -> None:
        """Hand text to the terminal's writer."""
        if self._writer_thread is not None:
            super().write(data)

    @property
    def written(self) -> int:
        """Bytes that the terminal has taken so far."""
        return self._earlier + (0 if self._outlet is None else self._outlet.taken)

    @property
    def behind(self) -> bool:
        """Whether the terminal takes less than it is given."""
        writer = self._writer_thread
        return writer is not None and writer._queue.qsize() > BACKLOG_MAX  # noqa: SLF001 - Textual keeps it to itself

    @property
    def gone(self) -> bool:
        """Whether the terminal has been hung up on."""
        return is_gone(self.fileno) or (self._outlet is not None and self._outlet.gone)

    def name_terminal(self, title: str) -> None:
        """Set the terminal's title, where it differs; leaving brings the old one back."""
        if title != self._title and self._writer_thread is not None and self._titled:
            self._title = title
            self.write(f"\x1b]2;{title}\x07")

    @property
    def _titled(self) -> bool:
        return os.environ.get("TERM", "") not in _UNTITLED

    def start_application_mode(self) -> None:
        """Start, with a way to the terminal of our own."""
        self._earlier = self.written
        self._outlet = Outlet(2)
        self._file = cast("Any", self._outlet)
        super().start_application_mode()  # type: ignore[no-untyped-call]  # Textual left it so
        self._title = ""
        if self._titled and self._writer_thread is not None:
            self.write(PUSH_TITLE)

    def stop_application_mode(self) -> None:
        """Give the terminal back; frames that it never took are dropped first."""
        if self._writer_thread is None:
            return
        if self.behind:
            _empty(self._writer_thread)
        if self._titled:
            self.write(POP_TITLE)
        super().stop_application_mode()

    def close(self) -> None:
        """End the writer: in peace, or after GRACE_S by force."""
        writer, outlet = self._writer_thread, self._outlet
        if writer is None or outlet is None:
            return
        with suppress(Full):
            writer._queue.put(None, timeout=GRACE_S)  # noqa: SLF001 - its own stop() waits for ever
        writer.join(GRACE_S)
        if writer.is_alive():
            outlet.drop()
            _empty(writer)
            writer._queue.put(None)  # noqa: SLF001 - as above
            writer.join(GRACE_S)
            if not writer.is_alive():
                outlet.force(RESTORE)
        outlet.close()
        self._writer_thread = None

    def mouse(self, *, on: bool) -> None:
        """Take the mouse from the terminal, or give it back; leaving gives it back as well."""
        if on:
            self._mouse = True
            self._enable_mouse_support()
        else:
            self._disable_mouse_support()
            self._mouse = False

    def quiet(self) -> None:
        """Take the hands off job control: a finished screen must not come back by SIGCONT."""
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.signal(signal.SIGCONT, signal.SIG_DFL)

    def _sigtstp_application(self, *_: Any) -> None:
        self._suspended = self._writer_thread is not None
        super()._sigtstp_application()

    def _sigcont_application(self, *_: Any) -> None:
        """Come back only from where we went: a hang-up sends SIGCONT as well."""
        if self._suspended:
            self._suspended = False
            super()._sigcont_application()


def _empty(writer: Any) -> None:
    with suppress(Empty):
        while True:
            writer._queue.get_nowait()  # noqa: SLF001 - Textual keeps it to itself
