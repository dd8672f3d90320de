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
LEAK_HALVED = 0.5
"""A leak is suspected once falls in a row have come to this share of the limit, ..."""
LEAK_KEPT = 0.6
"""... the refused share since the first is still at least this part of what it was there, ..."""
LEAK_STARTS = 20
"""... and so many attempts stand behind that share."""
LEAK_MOST = 0.6
"""A share above this is an outage, never a leak."""
LEAK_HELPED = 0.5
"""A fall after which the share is below this part of what it was did help: no leak."""
LEAK_REVIEW_S = 60.0
REVIEW_STARTS = 30


@dataclass(slots=True)
class _Slice:
    at: float
    started: int = 0
    refused: int = 0
    """Only of what was started after the last fall."""


@dataclass(frozen=True, slots=True)
class _Count:
    """Attempts of the whole run, or of a part of it."""

    started: int = 0
    refused: int = 0

    def since(self, other: _Count) -> _Count:
        return _Count(self.started - other.started, self.refused - other.refused)

    @property
    def share(self) -> float:
        return min(1.0, self.refused / max(self.started, self.refused, 1))


@dataclass(frozen=True, slots=True)
class _Fall:
    """The first of several falls that may all have been in vain."""

    level: float
    share: float
    count: _Count


class Pressure:
    """Counts attempts started and refused; times in monotonic seconds."""

    def __init__(self, now: float) -> None:
        self._slices: deque[_Slice] = deque([_Slice(now)])
        self._in_flight = 0
        self._ended = 0
        self._since = now
        self._all = _Count()
        self._settled_with = self._reviewed_with = _Count()
        self._first: _Fall | None = None
        self._share_before = 0.0
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
        self._slices[-1].refused += fresh
        self._all = _Count(self._all.started, self._all.refused + 1)

    def tick(self, now: float, in_flight: int) -> None:
        """Reckon what was started since the last tick from what is in flight and what ended."""
        started = max(0, in_flight - self._in_flight + self._ended)
        self._in_flight = in_flight
        self._ended = 0
        self._slices[-1].started += started
        self._all = _Count(self._all.started + started, self._all.refused)
        self._slices.append(_Slice(now))
        while self._slices[0].at < now - WINDOW_S:
            self._slices.popleft()
        if now >= self._review_at:
            self._review(now)

    def is_burst(self, now: float, limit: int) -> bool:
        """Whether the refusals of the last seconds are more than a leak and chance explain."""
        started = sum(item.started for item in self._after(max(self._since, now - WINDOW_S)))
        started += max(0, limit - self._in_flight) + self._ended
        expected = started * max(BURST_SHARE, 1.5 * self._tolerated)
        return self.recent(now) >= min(expected + 1.5 * math.sqrt(expected), max(1, started))

    def recent(self, now: float) -> int:
        """Refusals of the last seconds, none from before the last fall."""
        return sum(item.refused for item in self._after(max(self._since, now - WINDOW_S)))

    def fell(self, now: float) -> None:
        """The limit fell: what was started until now has been paid for with that fall."""
        self._slices.append(_Slice(now))
        self._since = now

    def settled(self, now: float, level: float) -> bool:
        """Note that a fall from `level` has run its course; True where it proves a leak."""
        lately = self._all.since(self._settled_with)
        self._settled_with = self._all
        if lately.started >= LEAK_STARTS and lately.share < LEAK_HELPED * self._share_before:
            self._first = None
        first = self._first
        if first is None:
            self._share_before = lately.share
            self._first = _Fall(level, lately.share, self._all)
            return False
        since = self._all.since(first.count)
        self._share_before = since.share
        in_vain = level <= LEAK_HALVED * first.level and since.share >= LEAK_KEPT * first.share
        if not in_vain or since.started < LEAK_STARTS or since.share > LEAK_MOST:
            return False
        self._tolerated = since.share
        self._review_at = now + LEAK_REVIEW_S
        self._reviewed_with = self._all
        self._first = None
        return True

    def _review(self, now: float) -> None:
        since = self._all.since(self._reviewed_with)
        self._review_at = now + LEAK_REVIEW_S
        if since.started < REVIEW_STARTS:
            return
        self._reviewed_with = self._all
        if since.share < 0.25 * self._tolerated:
            self._tolerated = 0.0
            self._review_at = math.inf

    def _after(self, since: float) -> Iterator[_Slice]:
        return takewhile(lambda item: item.at >= since, reversed(self._slices))
