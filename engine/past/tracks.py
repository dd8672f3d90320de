"""A session's counters over time, as columns; and from them rates on an even axis."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from engine.view.series import AXIS_BUCKETS, WIDEST_S
from engine.view.snapshot import DatasetView, Series, Snapshot

_HELD = frozenset({"paused", "waiting"})
Held = Sequence[float]


class Counter:
    """One number at each point; points before its first are 0."""

    def __init__(self, before: int) -> None:
        self.values = array("d", bytes(8 * before))

    def __getitem__(self, place: int) -> float:
        return self.values[place]

    def fill(self, points: int) -> None:
        """Hold the last value up to `points`."""
        held = self.values[-1] if self.values else 0.0
        self.values.extend([held] * (points - len(self.values)))


@dataclass(slots=True)
class DatasetTracks:
    """One dataset's counters."""

    rows: Counter
    tokens: Counter
    attempt_errors: Counter
    cost: Counter
    held: array[float]
    """1 where no work was done on it: paused, or not running."""
    families: dict[str, Counter] = field(default_factory=dict)
    """Failed attempts by error family, over all providers."""


@dataclass(slots=True)
class Tracks:
    """A session's columns; `at` is epoch seconds, never falling."""

    key: tuple[int, str]
    at: array[float] = field(default_factory=lambda: array("d"))
    limit: array[float] = field(default_factory=lambda: array("d"))
    in_flight: array[float] = field(default_factory=lambda: array("d"))
    held: array[float] = field(default_factory=lambda: array("d"))
    """1 where the run was paused or waited."""
    datasets: dict[str, DatasetTracks] = field(default_factory=dict)

    def add(self, snapshot: Snapshot) -> None:
        """Take the next point in."""
        before = len(self.at)
        self.at.append(snapshot.heartbeat_at)
        self.limit.append(snapshot.limit)
        self.in_flight.append(snapshot.in_flight)
        self.held.append(snapshot.state in _HELD)
        for view in snapshot.datasets:
            tracks = self.datasets.get(view.name)
            if tracks is None:
                tracks = _begun(before)
                self.datasets[view.name] = tracks
            _add(tracks, view, before, held=snapshot.state in _HELD)
        for tracks in self.datasets.values():
            for counter in _counters(tracks):
                counter.fill(before + 1)
            tracks.held.extend([1.0] * (before + 1 - len(tracks.held)))


def _begun(before: int) -> DatasetTracks:
    """A dataset that the first `before` points did not name."""
    rows, tokens, errors, cost = (Counter(before) for _ in range(4))
    return DatasetTracks(rows, tokens, errors, cost, array("d", [1.0] * before))


def _add(tracks: DatasetTracks, view: DatasetView, before: int, *, held: bool) -> None:
    tracks.rows.values.append(view.rows)
    tracks.tokens.values.append(view.completion_tokens)
    tracks.attempt_errors.values.append(view.attempt_errors)
    tracks.cost.values.append(view.cost_usd or 0.0)
    tracks.held.append(held or view.state != "running")
    counts: dict[str, int] = {}
    for error in view.errors:
        counts[error.family] = counts.get(error.family, 0) + error.count
    for family, count in counts.items():
        counter = tracks.families.get(family)
        if counter is None:
            counter = tracks.families[family] = Counter(before)
        counter.fill(before)
        counter.values.append(count)


def _counters(tracks: DatasetTracks) -> list[Counter]:
    plain = [tracks.rows, tracks.tokens, tracks.attempt_errors, tracks.cost]
    return [*plain, *tracks.families.values()]


@dataclass(frozen=True, slots=True)
class Axis:
    """The buckets in which a live screen would show a session's counters at a point."""

    tracks: Tracks
    last: int
    """The point up to which something is known."""

    @property
    def width(self) -> float:
        """Seconds of a bucket: as engine.view.series has it."""
        span, width = self.tracks.at[self.last] - self.tracks.at[0], 1.0
        while span > AXIS_BUCKETS * width and width < WIDEST_S:
            width *= 2
        return width

    @property
    def edges(self) -> list[float]:
        """Where the buckets begin, and where the last one ends; epoch seconds."""
        start, width = self.tracks.at[0], self.width
        count = int((self.tracks.at[self.last] - start) // width)
        return [start + place * width for place in range(max(0, count - AXIS_BUCKETS), count + 1)]

    def _series(self, values: Iterable[float | None]) -> Series:
        return Series(self.edges[0], self.width, tuple(values))

    def _sums(self, counters: Sequence[Counter]) -> list[float]:
        at = self.tracks.at
        return [sum(value_at(at, counter, edge) for counter in counters) for edge in self.edges]

    def rates(self, counters: Sequence[Counter], held: Held) -> Series:
        """The counters' increase per second; None where work was held throughout."""
        gains = [max(0.0, after - before) for before, after in pairwise(self._sums(counters))]
        places = zip(gains, self.edges, strict=False)
        idle = [not gain and self._idle(held, edge) for gain, edge in places]
        pairs = zip(gains, idle, strict=True)
        return self._series(None if still else gain / self.width for gain, still in pairs)

    def counts(self, counters: Sequence[Counter]) -> Series:
        """How many the counters gained in each bucket, in whole numbers."""
        sums = map(round, self._sums(counters))
        return self._series(float(max(0, after - before)) for before, after in pairwise(sums))

    def levels(self, values: array[float]) -> Series:
        """A level at the end of each bucket."""
        at = self.tracks.at
        places = (min(self.last, bisect_right(at, end) - 1) for end in self.edges[1:])
        return self._series(values[place] for place in places)

    def _idle(self, held: Held, begin: float) -> bool:
        """Whether work was held at every point around a bucket."""
        at = self.tracks.at
        first = max(0, bisect_right(at, begin) - 1)
        end = min(self.last, bisect_right(at, begin + self.width))
        return all(held[place] for place in range(first, end + 1))


def families(datasets: Iterable[DatasetTracks]) -> dict[str, list[Counter]]:
    """The counters of each error family, in the order in which the families were first seen."""
    found: dict[str, list[Counter]] = {}
    for tracks in datasets:
        for family, counter in tracks.families.items():
            found.setdefault(family, []).append(counter)
    return dict(sorted(found.items(), key=lambda item: min(map(_first, item[1]))))


def _first(counter: Counter) -> int:
    """The first point at which something had been counted."""
    values = counter.values
    return next((place for place, value in enumerate(values) if value), len(values))


def value_at(at: array[float], counter: Counter, moment: float) -> float:
    """The counter at a moment, on the line between the points around it."""
    right = bisect_right(at, moment)
    if right >= len(at):
        return counter[-1]
    if right == 0:
        return counter[0]
    share = (moment - at[right - 1]) / (at[right] - at[right - 1])
    return counter[right - 1] + share * (counter[right] - counter[right - 1])
