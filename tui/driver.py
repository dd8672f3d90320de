"""Textual's driver, asked how far the terminal is behind, so that frames can be dropped in time.

Its writer holds 30 frames and then blocks the app (facts/terminal.md, 1): a terminal that has
stopped reading (an SSH stall, Ctrl-S, a sleeping laptop) would make keys and signals wait as well.
"""

from __future__ import annotations

from textual.drivers.linux_driver import LinuxDriver

BACKLOG_MAX = 12
"""Writes that may wait for the terminal; beyond it frames are dropped. A frame is up to three,
and starting and leaving the screen are a dozen each."""


class PatientDriver(LinuxDriver):
    """Knows its backlog and counts its bytes."""

    sent = 0
    """Characters handed to the terminal so far."""

    def write(self, data: str) -> None:
        """Hand text to the terminal's writer."""
        self.sent += len(data)
        super().write(data)

    @property
    def behind(self) -> bool:
        """Whether the terminal takes less than it is given."""
        writer = self._writer_thread
        return writer is not None and writer._queue.qsize() > BACKLOG_MAX  # noqa: SLF001 - Textual keeps it to itself
