"""Numbers over time in constant memory: rates on a shared axis, and quantiles."""

from __future__ import annotations

import math

from engine.snapshot import Series

AXIS_BUCKETS = 240


class Axis:
    """A rate from the session's start to now; when full, pairs of buckets merge and width doubles.

    Series that share `start` and `keep` stay aligned, which is what one time axis needs.
    """

    def __init__(self, start: float, *, width: float = 1.0, keep: int = AXIS_BUCKETS) -> None:
        self._start = start
        self._width = width
        self._keep = keep
        self._sums: list[float] = []
        self._open: list[float] = []
        """Seconds of each bucket in which work was not paused."""

    def add(self, now: float, amount: float) -> None:
        """Count `amount` at `now`."""
        self._sums[self._index(now)] += amount

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
        last = max(0, int((now - self._start) / self._width))
        values = tuple(
            total / opened if opened > 0 else None
            for total, opened in zip(self._sums[:last], self._open[:last], strict=True)
        )
        return Series(wall - (now - self._start), self._width, values)

    def _index(self, now: float) -> int:
        index = max(0, int((now - self._start) / self._width))
        while index >= self._keep:
            self._sums = _pairs(self._sums)
            self._open = _pairs(self._open)
            self._width *= 2
            index = max(0, int((now - self._start) / self._width))
        missing = index + 1 - len(self._sums)
        if missing > 0:
            self._sums.extend([0.0] * missing)
            self._open.extend([0.0] * missing)
        return index


class Gauge:
    """A level (such as the limit) on the same axis as `Axis`: the last value in each bucket."""

    def __init__(self, start: float, *, width: float = 1.0, keep: int = AXIS_BUCKETS) -> None:
        self._start = start
        self._width = width
        self._keep = keep
        self._values: list[float] = []

    def set(self, now: float, value: float) -> None:
        """The level from `now` on."""
        index = max(0, int((now - self._start) / self._width))
        while index >= self._keep:
            self._values = self._values[1::2] + self._values[len(self._values) // 2 * 2 :]
            self._width *= 2
            index = max(0, int((now - self._start) / self._width))
        held = self._values[-1] if self._values else value
        self._values.extend([held] * (index + 1 - len(self._values)))
        self._values[index] = value

    def series(self, now: float, wall: float) -> Series:
        """The levels so far."""
        return Series(wall - (now - self._start), self._width, tuple(self._values))


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


def _pairs(values: list[float]) -> list[float]:
    even = values if len(values) % 2 == 0 else [*values, 0.0]
    return [a + b for a, b in zip(even[::2], even[1::2], strict=True)]
