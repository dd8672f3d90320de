"""Which faults, limits and delays hold for a request: windows over a steady state."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

    from engine.simulator.scenario import Host, Scenario, Window


class Weather:
    """Follows the windows of a scenario by requests seen and by seconds since the first one."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._opened: dict[int, float] = {}
        self._first: float | None = None
        self.requests = 0

    def arrive(self, now: float) -> list[Window]:
        """Count a request at `now` (monotonic seconds) and return the windows that are open."""
        if self._first is None:
            self._first = now
        elapsed = (now - self._first) * self._scenario.speed
        number = self.requests
        self.requests += 1
        return [
            window
            for index, window in enumerate(self._scenario.windows)
            if _inside(window, elapsed, number) and self._lasts(index, window, elapsed)
        ]

    def _lasts(self, index: int, window: Window, elapsed: float) -> bool:
        opened = self._opened.setdefault(index, elapsed)
        return window.for_s is None or elapsed < opened + window.for_s


def _inside(window: Window, elapsed: float, number: int) -> bool:
    return (
        (window.from_s is None or elapsed >= window.from_s)
        and (window.to_s is None or elapsed < window.to_s)
        and (window.from_request is None or number >= window.from_request)
        and (window.to_request is None or number < window.to_request)
    )


def concerning(windows: list[Window], host: Host) -> list[Window]:
    """Return the windows that concern a host."""
    return [w for w in windows if w.provider is None or w.provider == host.tag]


def drawn_fault(scenario: Scenario, host: Host, windows: list[Window], rng: Random) -> str | None:
    """Draw the fault of a request, if any: the shares of scenario, host and windows add up."""
    shares = [scenario.faults, host.faults, *(w.faults for w in windows)]
    point = rng.random()
    for share in shares:
        for name, probability in share.items():
            point -= probability
            if point < 0:
                return name
    return None
