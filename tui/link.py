"""The app's link to its terminal: how far it is behind, what it costs, and its title."""

from __future__ import annotations

from collections.abc import Callable

from engine.clock import Clock
from tui.driver import PatientDriver
from tui.governor import KILOBYTE, Governor

STALL_S = 2.0
"""Seconds of a stalled terminal that are worth a message."""
NAME_S = 2.0
"""Seconds between two looks at what the terminal's title should be."""


class Link:
    """Without a terminal (in tests, for pictures) it is never behind and costs nothing."""

    def __init__(
        self,
        driver: Callable[[], PatientDriver | None],
        clock: Clock,
        *,
        fps: float,
        bandwidth_kb: float,
    ) -> None:
        self._driver = driver
        self._clock = clock
        self._fps = fps
        self._governor = Governor(bandwidth_kb * KILOBYTE)
        self._name_due = 0.0
        self._stalled_at: float | None = None

    @property
    def behind(self) -> bool:
        """Whether the terminal takes less than it is given."""
        driver = self._driver()
        return driver is not None and driver.behind

    @property
    def hung_up(self) -> bool:
        """Whether there is nobody at the other end any more."""
        driver = self._driver()
        return driver is not None and driver.gone

    def frame_due(self) -> bool:
        """Whether the next frame is within the budget."""
        driver = self._driver()
        if driver is None:
            return True
        self._governor.note(self._clock.monotonic(), driver.written)
        return self._governor.due()

    def refused(self) -> None:
        """A frame was dropped because the terminal is behind."""
        self._stalled_at = self._stalled_at or self._clock.monotonic()

    def back_after(self) -> float | None:
        """Seconds of the stall that has just ended: one full repaint is due; None where none is."""
        if self._stalled_at is None or self.behind:
            return None
        away = self._clock.monotonic() - self._stalled_at
        self._stalled_at = None
        return away

    def name(self, title: Callable[[], str]) -> None:
        """Give the terminal its title, where one is due."""
        driver, now = self._driver(), self._clock.monotonic()
        if driver is not None and now >= self._name_due and not driver.behind:
            self._name_due = now + NAME_S
            driver.name_terminal(title())

    def measured(self) -> list[tuple[str, str]]:
        """What the screen has cost, as heads and sentences for the help."""
        driver, governor = self._driver(), self._governor
        if driver is None:
            return []
        governor.note(self._clock.monotonic(), driver.written)
        most = f"at most {_kilobytes(governor.budget)}/s (--bandwidth)"
        frames = f"{governor.drawn:,} drawn, {governor.left_out:,} left out to save bytes"
        return [
            ("terminal", f"{_kilobytes(governor.rate)}/s now, {most}"),
            ("", f"{_kilobytes(driver.written)} since the screen began"),
            ("frames", f"{self._fps:g} a second (--fps); {frames}"),
        ]


def _kilobytes(count: float) -> str:
    return f"{count / KILOBYTE:,.1f} KB"
