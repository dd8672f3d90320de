"""What ctrl+c and signals mean to the screen: drain, then stop at once, then leave everything."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from engine.commands import Drain, Stop
from tui import questions
from tui.helm import Helm
from tui.parting import Exits

REPEAT_S = 0.5
"""A second ctrl+c within this time is the first one's key repeat, not an order to stop."""


class Interrupts:
    """One step further each time (DESIGN §5, exit code 130)."""

    def __init__(self, helm: Helm, exits: Exits) -> None:
        self._helm = helm
        self._exits = exits
        self._count = 0
        self._pressed_at: float | None = None

    def pressed(self) -> None:
        """The key, which may repeat by itself."""
        now = self._helm.clock.monotonic()
        before, self._pressed_at = self._pressed_at, now
        if before is None or now - before >= REPEAT_S:
            self.step()

    def step(self) -> None:
        """Drain; the second time stop; the third time end at once."""
        helm = self._helm
        self._count += 1
        if self._count == 1 and helm.snapshot().state != "draining":
            helm.order(Drain())
        elif self._count == 1:
            stake = questions.at_stake(helm.snapshot())
            helm.say(f"already draining; ctrl+c again stops at once: {stake}", "warn")
        elif self._count == 2:  # noqa: PLR2004 - the second one
            helm.order(Stop())
        else:
            self._exits.abandon()


class SignalBox:
    """Brings signals to the app's own loop; those that come too early or too late are kept."""

    def __init__(self, obey: Callable[[int], None]) -> None:
        self.missed: list[int] = []
        """Signals that came before the screen was there, or after."""
        self._obey = obey
        self._loop: asyncio.AbstractEventLoop | None = None

    def take(self, number: int) -> None:
        """Take a signal in the main thread, between two instructions of whatever runs there."""
        if self._loop is None or self._loop.is_closed():
            self.missed.append(number)
        else:
            self._loop.call_soon_threadsafe(self._obey, number)

    def listen(self) -> None:
        """Deliver to the loop that runs now, what came early first."""
        self._loop = asyncio.get_running_loop()
        early, self.missed = self.missed, []
        for number in early:
            self._obey(number)
