"""Charts as plain strings: from zero, means of evenly spaced buckets, gaps where work paused."""

from __future__ import annotations

import math
from typing import NamedTuple

from engine.view.snapshot import Series
from tui import glyphs

SPAN_S = 300.0
"""Seconds that a chart shows at least, where the series is that long."""


class Columns(NamedTuple):
    """What a chart shows: one value per column, oldest first; None where work was paused."""

    values: list[float | None]
    seconds: float
    """Seconds that one column covers."""

    @property
    def maximum(self) -> float:
        """The largest mean shown; 0 where nothing is."""
        return max((value for value in self.values if value is not None), default=0.0)

    @property
    def span(self) -> float:
        """Seconds that all columns cover."""
        return self.seconds * len(self.values)


def columns(series: Series, count: int) -> Columns:
    """The newest `count` columns of a series, each the mean of the values that fall into it.

    Columns are cut at multiples of their width on the clock, so that a bucket keeps its value
    while the chart moves on. What lies before the first value is not a pause: it is left out.
    """
    if count <= 0 or series.width <= 0 or not series.values:
        return Columns([], series.width)
    wanted = min(len(series.values), math.ceil(SPAN_S / series.width))
    merged = max(1, math.ceil(wanted / count))
    first = round(series.start / series.width)
    buckets: dict[int, list[float | None]] = {}
    for place, value in enumerate(series.values):
        buckets.setdefault((first + place) // merged, []).append(value)
    means = [_mean(values) for values in buckets.values()][-count:]
    begun = next((place for place, mean in enumerate(means) if mean is not None), len(means))
    return Columns(means[begun:], series.width * merged)


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None


def chart(shown: Columns, count: int, rows: int = 1) -> list[str]:
    """The columns as `rows` strings of `count` cells, newest at the right; blank before the first.

    Full height is the maximum, the ground is zero. A value above zero is at least one eighth.
    """
    steps = rows * len(glyphs.BARS)
    heights = [_height(value, shown.maximum, steps) for value in shown.values[-count:]]
    lines = []
    for row in range(rows - 1, -1, -1):
        cells = "".join(_cell(height, row) for height in heights)
        lines.append(cells.rjust(count))
    return lines


def _height(value: float | None, maximum: float, steps: int) -> int | None:
    if value is None:
        return None
    if value <= 0 or maximum <= 0:
        return 0
    return max(1, min(steps, round(value / maximum * steps)))


def _cell(height: int | None, row: int) -> str:
    if height is None:
        return glyphs.GAP if row == 0 else " "
    if height == 0:
        return glyphs.ZERO if row == 0 else " "
    eighths = height - row * len(glyphs.BARS)
    if eighths <= 0:
        return " "
    return glyphs.BARS[min(eighths, len(glyphs.BARS)) - 1]


def progress(cells: int, whole: float, *parts: float) -> list[str]:
    """A bar as one string per part and a last one for the rest; together exactly `cells` wide.

    A part above zero gets at least one cell, and only a whole that is reached fills the bar.
    """
    if cells <= 0:
        return [""] * (len(parts) + 1)
    sizes = [_cells(part, whole, cells) for part in parts]
    if sum(parts) < whole:
        while sum(sizes) >= cells and max(sizes) > 1:
            sizes[sizes.index(max(sizes))] -= 1
    while sum(sizes) > cells:
        sizes[sizes.index(max(sizes))] -= 1
    marks = (glyphs.FULL, glyphs.HALF)
    bars = [mark * size for mark, size in zip(marks, sizes, strict=False)]
    return [*bars, glyphs.REST * (cells - sum(sizes))]


def _cells(part: float, whole: float, cells: int) -> int:
    if part <= 0 or whole <= 0:
        return 0
    return max(1, min(cells, int(part / whole * cells)))
