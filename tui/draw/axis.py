"""One time axis for several series: which column a moment falls into, and what it holds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from engine.clock import local_hm
from engine.view.snapshot import Series, Spell

_KEPT = 0.75
"""Share of a series that a grid shows at least: with less, columns become wider instead."""
_STEPS_S = (60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400)
"""Distances between clock labels."""
_LABEL = 8
"""Cells between the starts of two clock labels at least."""


class Grid(NamedTuple):
    """Evenly spaced columns, the newest one last; times are epoch seconds.

    Edges lie at multiples of the column's width, so that a column keeps its value as time goes on.
    """

    begin: float
    seconds: float
    """Width of a column."""
    columns: int

    def column(self, at: float) -> int:
        """The column of a moment; negative before the first, and the last one for what is newer."""
        return min(self.columns - 1, math.floor((at - self.begin) / self.seconds))

    @property
    def end(self) -> float:
        """The right edge of the last column."""
        return self.begin + self.seconds * self.columns


def grid(series: Series, cells: int) -> Grid:
    """As many columns of this series as `cells` hold, none before its first value."""
    values = series.values
    first = next((place for place, value in enumerate(values) if value is not None), None)
    if first is None or cells <= 0 or series.width <= 0:
        return Grid(series.start, max(1.0, series.width), 0)
    merged = max(1, len(values) // cells)
    if merged * cells < _KEPT * len(values):
        merged += 1
    origin = round(series.start / series.width)
    last = (origin + len(values) - 1) // merged
    begin = max((origin + first) // merged, last - cells + 1)
    phase = series.start - origin * series.width
    width = merged * series.width
    return Grid(begin * width + phase, width, last - begin + 1)


def _spread(made: Grid, series: Series) -> list[list[float | None]]:
    """The values whose middle falls into each column."""
    columns: list[list[float | None]] = [[] for _ in range(made.columns)]
    middle = series.start + series.width / 2
    for place, value in enumerate(series.values):
        column = math.floor((middle + place * series.width - made.begin) / made.seconds)
        if 0 <= column < made.columns:
            columns[column].append(value)
    return columns


def means(made: Grid, series: Series) -> list[float | None]:
    """The mean of each column; None where work was paused throughout."""
    return [
        math.fsum(known) / len(known) if known else None
        for known in map(_known, _spread(made, series))
    ]


def sums(made: Grid, series: Series) -> list[int]:
    """The sum of each column."""
    if not series.values:
        return [0] * made.columns
    return [round(math.fsum(_known(values))) for values in _spread(made, series)]


def lows(made: Grid, series: Series) -> list[float | None]:
    """The lowest level of each column: a dip does not vanish in a wide one."""
    return [min(_known(values), default=None) for values in _spread(made, series)]


def held(made: Grid, spells: Iterable[Spell]) -> list[str]:
    """Per column the state in which work was held; empty where it was not."""
    columns = [""] * made.columns
    for spell in spells:
        stop = made.columns if spell.end is None else made.column(spell.end) + 1
        for column in range(max(0, made.column(spell.start)), stop):
            columns[column] = spell.state
    return columns


def clock(made: Grid) -> str:
    """The time of day at round minutes, each label beginning in its own column with a tick."""
    cells = [" "] * made.columns
    for column, text in _labels(made):
        cells[column : column + len(text)] = text
    return "".join(cells)


def _labels(made: Grid) -> Iterator[tuple[int, str]]:
    step = next((s for s in _STEPS_S if s >= _LABEL * made.seconds), _STEPS_S[-1])
    at, seen = math.ceil(made.begin / step) * step, False
    while at < made.end:
        column, text = made.column(at), f"╵{local_hm(at)}"
        if column + len(text) <= made.columns:
            seen = True
            yield column, text
        at += step
    text = f"╵{local_hm(made.begin)}"
    if not seen and len(text) <= made.columns:
        yield 0, text


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
