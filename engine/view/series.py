"""Numbers over time in constant memory: rates on a shared axis, and quantiles."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from engine.view.snapshot import FamilySeries, Series

AXIS_BUCKETS = 240
WIDEST_S = 8.0
"""A full axis spans 32 minutes then: it stays live in a run of days."""
FAMILIES_KEPT = 12
OTHER = "other"
"""Families beyond those are counted together under this name."""


class _Timeline(ABC):
    """Buckets from a start to now, in constant memory.

    When full, pairs merge until they are `widest` seconds wide; from then on the oldest ones leave.
    Series that share `start` and `keep` stay aligned, which is what one time axis needs.
    """

    def __init__(
        self,
        start: float,
        *,
        width: float = 1.0,
        keep: int = AXIS_BUCKETS,
        widest: float = WIDEST_S,
    ) -> None:
        self._start = start
        self._width = width
        self._keep = keep
        self._widest = widest

    @abstractmethod
    def _merge(self) -> None:
        """Make one bucket of every two."""

    @abstractmethod
    def _fit(self, first: int, count: int) -> None:
        """Drop the buckets before `first`, then have `count`."""

    def _place(self, now: float) -> int:
        return max(0, int((now - self._start) / self._width))

    def _index(self, now: float) -> int:
        index = self._place(now)
        while index >= self._keep and self._width < self._widest:
            self._merge()
            self._width *= 2
            index = self._place(now)
        surplus = max(0, index + 1 - self._keep)
        self._fit(surplus, index + 1 - surplus)
        self._start += surplus * self._width
        return index - surplus

    def _series(self, now: float, wall: float, values: tuple[float | None, ...]) -> Series:
        return Series(wall - (now - self._start), self._width, values)


class Tally(_Timeline):
    """Counts up to now."""

    _sums: list[float]

    def __init__(self, start: float, **shape: Any) -> None:
        super().__init__(start, **shape)
        self._sums = []

    def add(self, now: float, amount: float) -> None:
        """Count `amount` at `now`."""
        index = self._index(now)  # first: it may put another list in place
        self._sums[index] += amount

    def series(self, now: float, wall: float) -> Series:
        """Sums of the finished buckets; empty where all are zero."""
        last = self._index(now)
        values = tuple(self._sums[:last])
        return self._series(now, wall, values if any(values) else ())

    def _merge(self) -> None:
        self._sums = _pairs(self._sums)

    def _fit(self, first: int, count: int) -> None:
        _shift(self._sums, first, count)


class Axis(Tally):
    """A rate up to now."""

    _open: list[float]
    """Seconds of each bucket in which work was not paused."""

    def __init__(self, start: float, **shape: Any) -> None:
        super().__init__(start, **shape)
        self._open = []

    def elapse(self, now: float, seconds: float, *, paused: bool) -> None:
        """Tell that `seconds` up to `now` have passed, working or paused."""
        index = self._index(now)
        begin, end = max(self._start, now - seconds), now
        while not paused and index >= 0 and end > begin:
            edge = max(begin, self._start + index * self._width)
            self._open[index] += end - edge
            index, end = index - 1, edge

    def series(self, now: float, wall: float) -> Series:
        """Means per second of the finished buckets; None where work was paused throughout."""
        last = self._index(now)
        values = (
            total / opened if opened > 0 else None
            for total, opened in zip(self._sums[:last], self._open[:last], strict=True)
        )
        return self._series(now, wall, tuple(values))

    def _merge(self) -> None:
        super()._merge()
        self._open = _pairs(self._open)

    def _fit(self, first: int, count: int) -> None:
        super()._fit(first, count)
        _shift(self._open, first, count)


class Families:
    """Failed attempts by family on the axis that begins at `start`, in constant memory."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._tallies: dict[str, Tally] = {}

    def add(self, now: float, family: str) -> None:
        """Count one; a family that is one too many counts as `other`."""
        if family not in self._tallies and len(self._tallies) >= FAMILIES_KEPT:
            family = OTHER
        self._tallies.setdefault(family, Tally(self._start)).add(now, 1)

    def series(self, now: float, wall: float) -> tuple[FamilySeries, ...]:
        """Every family seen, the first one first."""
        found = self._tallies.items()
        return tuple(FamilySeries(name, tally.series(now, wall)) for name, tally in found)


class Gauge(_Timeline):
    """A level (such as the limit) on the same axis as `Axis`: the last value in each bucket."""

    _values: list[float]

    def __init__(self, start: float, **shape: Any) -> None:
        super().__init__(start, **shape)
        self._values = []

    def set(self, now: float, value: float) -> None:
        """The level from `now` on."""
        index = self._index(now)
        self._values[index:] = [value]

    def series(self, now: float, wall: float) -> Series:
        """The levels of the finished buckets."""
        last = self._index(now)
        return self._series(now, wall, tuple(self._values[:last]))

    def _merge(self) -> None:
        self._values = self._values[1::2] + self._values[len(self._values) // 2 * 2 :]

    def _fit(self, first: int, count: int) -> None:
        held = self._values[-1:] or [0.0]
        del self._values[:first]
        self._values.extend(held * (count - len(self._values)))


class Recent:
    """A rate over the last `window` seconds, from whole one-second buckets, pauses left out."""

    def __init__(self, window: int = 30) -> None:
        self._window = window
        self._buckets: dict[int, float] = {}
        self._first: int | None = None

    def add(self, now: float, amount: float) -> None:
        """Count `amount` at `now`."""
        second = int(now)
        if self._first is None:
            self._first = second
        self._buckets[second] = self._buckets.get(second, 0.0) + amount
        if len(self._buckets) > 2 * self._window:
            self._prune(second)

    def per_second(self, now: float) -> float:
        """The mean rate; 0 before anything was counted or after a silent window."""
        if self._first is None:
            return 0.0
        second = int(now)
        self._prune(second)
        span = min(self._window, max(1, second - self._first))
        return sum(value for at, value in self._buckets.items() if at != second) / span

    def _prune(self, second: int) -> None:
        oldest = second - self._window
        self._buckets = {at: value for at, value in self._buckets.items() if at >= oldest}


class Quantiles:
    """Counts in buckets that grow by 5%, so a quantile is right to within 2.5%."""

    _GROWTH = math.log(1.05)

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self.count = 0

    def add(self, value: float) -> None:
        """Count one value; below 0.001 is counted as 0.001."""
        bucket = int(math.log(max(value, 1e-3)) // self._GROWTH)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1
        self.count += 1

    def quantile(self, share: float) -> float | None:
        """The value below which `share` of all lie; None while there are none."""
        rank = share * self.count
        seen = 0
        for bucket in sorted(self._counts):
            seen += self._counts[bucket]
            if seen >= rank:
                return math.exp((bucket + 0.5) * self._GROWTH)
        return None

    def buckets(self) -> list[tuple[int, int]]:
        """All that it knows, as `of` takes it."""
        return list(self._counts.items())

    @classmethod
    def of(cls, buckets: Iterable[tuple[int, int]]) -> Quantiles:
        """Counts as `buckets` gave them."""
        made = cls()
        made._counts = dict(buckets)
        made.count = sum(made._counts.values())
        return made


def _shift(values: list[float], first: int, count: int) -> None:
    """Drop those before `first`, then have `count`."""
    del values[:first]
    values.extend([0.0] * (count - len(values)))


def _pairs(values: list[float]) -> list[float]:
    even = values if len(values) % 2 == 0 else [*values, 0.0]
    return [a + b for a, b in zip(even[::2], even[1::2], strict=True)]
