"""Whether one more request fits a token or dollar budget, in-flight requests reckoned in.

What is in flight is not average: a long reply is in flight longer, so at any moment the requests
in flight are weighted by their duration. `Expectation` weighs the replies seen the same way;
with the plain mean a budget of 10M tokens at 2000 in flight overshoots by 10% and more.
"""

from __future__ import annotations

from dataclasses import dataclass

KNOWN_AFTER = 50
"""Replies after which the expectation replaces the worst case (DESIGN §5)."""


@dataclass(slots=True)
class Expectation:
    """What one request in flight will come to, in tokens or USD."""

    worst: float
    count: int = 0
    total: float = 0.0
    _weighted: float = 0.0
    _weights: float = 0.0

    def add(self, value: float, latency_s: float) -> None:
        """One reply came to `value` after `latency_s` seconds."""
        self.count += 1
        self.total += value
        weight = max(latency_s, 1e-3)
        self._weighted += value * weight
        self._weights += weight

    @property
    def mean(self) -> float:
        """Per reply; the worst case while too few are known."""
        return self.total / self.count if self.count >= KNOWN_AFTER else self.worst

    @property
    def in_flight(self) -> float:
        """Per request in flight; the worst case while too few are known."""
        return self._weighted / self._weights if self.count >= KNOWN_AFTER else self.worst


def fits(budget: float | None, spent: float, in_flight: int, each: float) -> bool:
    """Whether another request may start.

    One may always start while nothing is in flight and the budget is not yet reached, or a budget
    smaller than one worst case would never be used.
    """
    if budget is None:
        return True
    if in_flight == 0:
        return spent < budget
    return spent + (in_flight + 1) * each <= budget


def fits_hard(cap: float | None, spent: float, in_flight: int, each: float) -> bool:
    """Like `fits`, for money: never more than the cap, even by one request."""
    return cap is None or spent + (in_flight + 1) * each <= cap
