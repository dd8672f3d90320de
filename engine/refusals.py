"""Tells a burst of refusals, which lowers the limit, from a leak that lowering cannot stop.

A provider that is full refuses nearly all that is started beyond what it holds. A shared pool
under other people's load refuses some share of everything, however few are in flight; lowering
the limit for that would end at one request in flight with the share unchanged.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

WINDOW_S = 5.0
"""Refusals are set against the attempts started within this time."""
BURST_SHARE = 0.05
"""Share of refused attempts, above chance, that makes a burst."""
LEAK_WITHIN_S = 300.0
LEAK_HALVED = 0.5
"""A leak is suspected once falls within `LEAK_WITHIN_S` have come to this share of the limit."""
LEAK_KEPT = 0.6
"""... and the refused share is still at least this part of what it was."""
LEAK_MOST = 0.5
"""A share above this is an outage, never a leak."""
LEAK_REVIEW_S = 60.0
LEAK_STARTS = 30


@dataclass(slots=True)
class _Slice:
    at: float
    started: int = 0
    refused: int = 0
    fresh: int = 0
    """Refusals of what was started after the last fall."""


@dataclass(frozen=True, slots=True)
class _Fall:
    at: float
    level: float
    share: float


class Pressure:
    """Counts attempts started and refused; times in monotonic seconds."""

    def __init__(self, now: float) -> None:
        self._slices: deque[_Slice] = deque([_Slice(now)])
        self._in_flight = 0
        self._ended = 0
        self._since = self._settled_at = now
        self._falls: deque[_Fall] = deque(maxlen=64)
        self._tolerated = 0.0
        self._review_at = math.inf

    @property
    def leak(self) -> float:
        """The share of refusals that lowering the limit did not change; 0 where there is none."""
        return self._tolerated

    def ended(self) -> None:
        """An attempt left the flight."""
        self._ended += 1

    def refused(self, now: float, *, fresh: bool) -> None:
        """An attempt was refused; `fresh` where it was started after the last fall."""
        if now > self._slices[-1].at + 1.0:
            self._slices.append(_Slice(now))
        last = self._slices[-1]
        last.refused += 1
        last.fresh += fresh

    def tick(self, now: float, in_flight: int) -> None:
        """Reckon what was started since the last tick from what is in flight and what ended."""
        started = max(0, in_flight - self._in_flight + self._ended)
        self._in_flight = in_flight
        self._ended = 0
        self._slices[-1].started += started
        self._slices.append(_Slice(now))
        while self._slices[0].at < now - LEAK_WITHIN_S:
            self._slices.popleft()
        if now >= self._review_at:
            self._review(now)

    def is_burst(self, now: float, limit: int) -> bool:
        """Whether the refusals of the last seconds are more than a leak and chance explain."""
        started = self._started(max(self._since, now - WINDOW_S))
        started += max(0, limit - self._in_flight) + self._ended
        expected = started * max(BURST_SHARE, 1.5 * self._tolerated)
        return self.recent(now) >= min(expected + 1.5 * math.sqrt(expected), max(1, started))

    def recent(self, now: float) -> int:
        """Refusals of the last seconds, none from before the last fall."""
        return sum(item.fresh for item in self._after(max(self._since, now - WINDOW_S)))

    def fell(self, now: float) -> None:
        """The limit fell: what was started until now has been paid for with that fall."""
        self._slices.append(_Slice(now))
        self._since = now

    def settled(self, now: float, level: float) -> bool:
        """Note that a fall from `level` has run its course; True where it proves a leak."""
        started, share = self._share(self._settled_at)
        self._settled_at = now
        if self._falls and started >= LEAK_STARTS and share < 0.5 * self._falls[-1].share:
            self._falls.clear()  # the fall before did help
        first = next((fall for fall in self._falls if fall.at >= now - LEAK_WITHIN_S), None)
        if first is not None:
            started, share = self._share(first.at)
        self._falls.append(_Fall(now, level, share))
        if first is None or started < LEAK_STARTS or share > LEAK_MOST:
            return False
        if level > LEAK_HALVED * first.level or share < LEAK_KEPT * first.share:
            return False
        self._tolerated = share
        self._review_at = now + LEAK_REVIEW_S
        self._falls.clear()
        return True

    def _review(self, now: float) -> None:
        started, share = self._share(now - LEAK_REVIEW_S)
        self._review_at = now + LEAK_REVIEW_S
        if started >= LEAK_STARTS and share < 0.25 * self._tolerated:
            self._tolerated = 0.0
            self._review_at = math.inf

    def _share(self, since: float) -> tuple[int, float]:
        started = self._started(since)
        refused = sum(item.refused for item in self._after(since))
        return started, min(1.0, refused / max(started, refused, 1))

    def _started(self, since: float) -> int:
        return sum(item.started for item in self._after(since))

    def _after(self, since: float) -> Iterator[_Slice]:
        return takewhile(lambda item: item.at >= since, reversed(self._slices))
