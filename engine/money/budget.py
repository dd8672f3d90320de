"""Whether one more request fits a token or dollar budget, in-flight requests reckoned in.

What has come back is not typical of what is in flight: short replies come first. With the mean of
the replies seen, a budget of 10M tokens at 2000 in flight overshoots by 20%. So each request in
flight is expected to come to the mean of the replies that took longer than it has taken so far
(Kaplan and Meier's estimate for durations that are cut off, with the tokens or dollars as marks).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

KNOWN_AFTER = 50
"""Replies after which the expectation replaces the worst case (DESIGN §5)."""
LEAST_AT_RISK = 30
"""Where fewer requests have come that far, the worst case stands for all that is beyond."""
_GROWTH = math.log(1.05)
_SHORTEST_S = 1e-3


@dataclass(slots=True)
class Expectation:
    """What the requests in flight will come to, in tokens or USD."""

    worst: float
    """What one request can come to at most; 0 where that is not known."""
    count: int = 0
    total: float = 0.0
    _replies: Counter[int] = field(default_factory=Counter)
    _values: dict[int, float] = field(default_factory=dict)
    """Replies, and the sum of their values, per bucket of durations."""
    _largest: float = 0.0
    _each: float = 0.0
    _seen: int = 0
    _expected: float = 0.0
    """At the last look: replies and requests in flight, and what they should come to together."""

    def add(self, value: float, latency_s: float) -> None:
        """One reply came to `value` after `latency_s` seconds."""
        self.count += 1
        self.total += value
        self._largest = max(self._largest, value)
        bucket = _bucket(latency_s)
        self._replies[bucket] += 1
        self._values[bucket] = self._values.get(bucket, 0.0) + value

    def look(self, ages: Iterable[float]) -> None:
        """Judge anew, from the seconds that each request in flight has taken so far."""
        flying = Counter(map(_bucket, ages))
        steps, rest = self._steps(flying)
        beyond = rest * self._most
        in_flight = 0.0
        for held, alive, part in reversed(steps):
            if held:  # on average they have half of their own bucket behind them
                in_flight += held * min(self._most, (beyond + part / 2) / alive)
            beyond += part
        self._each = beyond
        self._seen = self.count + flying.total()
        self._expected = self.total + in_flight

    def reserve(self, in_flight: int) -> float:
        """What this many requests in flight are expected to come to, since the last look."""
        if not self._known:
            return in_flight * self._most
        expected = self._expected + (self.count + in_flight - self._seen) * self._each
        return min(in_flight * self._most, max(0.0, expected - self.total))

    @property
    def each(self) -> float:
        """What one request that is about to start is expected to come to."""
        return self._each if self._known else self._most

    @property
    def mean(self) -> float:
        """Per reply; the worst case while too few are known."""
        return self.total / self.count if self.count >= KNOWN_AFTER else self._most

    @property
    def _known(self) -> bool:
        return self.count >= KNOWN_AFTER and self._seen > 0

    @property
    def _most(self) -> float:
        """Hosts that ignore max_tokens exceed the worst case."""
        return max(self.worst, self._largest)

    def _steps(self, flying: Counter[int]) -> tuple[list[tuple[int, float, float]], float]:
        """Per bucket of durations: requests in flight, share that gets there, what ends in it.

        Also the share that gets beyond all that is known.
        """
        at_risk = self.count + flying.total()
        alive = 1.0
        steps = []
        for bucket in sorted(self._replies.keys() | flying.keys()):
            replies, held = self._replies[bucket], flying[bucket]
            share = part = 0.0
            if replies and at_risk - held / 2 >= LEAST_AT_RISK:
                share = alive * min(1.0, replies / (at_risk - held / 2))
                part = share * self._values[bucket] / replies
            steps.append((held, max(alive - share / 2, 1e-9), part))
            alive -= share
            at_risk -= replies + held
        return steps, alive


def fits(budget: float | None, spent: float, in_flight: int, reserve: float) -> bool:
    """Whether another request may start; `reserve` is for it and for those in flight.

    One may always start while nothing is in flight and the budget is not yet reached, or a budget
    smaller than one worst case would never be used.
    """
    if budget is None:
        return True
    if in_flight == 0:
        return spent < budget
    return spent + reserve <= budget


def fits_hard(cap: float | None, spent: float, reserve: float) -> bool:
    """Like `fits`, for money: never more than the cap, even by one request."""
    return cap is None or spent + reserve <= cap


def _bucket(seconds: float) -> int:
    return int(math.log(max(seconds, _SHORTEST_S)) // _GROWTH)
