"""Who gets how much of the screen: a pure function of the size, the datasets and the chosen one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from engine.view.snapshot import DatasetView
from tui.draw.pane import wanted

PANE_MIN = 6
"""Lines from which a dataset gets a border: two for it, and four that say something."""
_PANE_MAX = 18
_TWO_COLUMNS = 140
"""Cells from which two panes stand side by side."""
_GRID_PANE = 8
_HEADERS = ((46, 10), (36, 9), (22, 5), (20, 4), (12, 2), (0, 1))
"""From so many lines of the screen on, so many for the header."""
_HEADER_LEAST = 4
"""Lines that the header keeps before a dataset loses its own."""
_AROUND = 3
"""Lines of alarm, message and keys."""
_KEYS_FROM, _MESSAGE_FROM = 8, 10
"""A smaller screen keeps its lines for the numbers."""


class Place(NamedTuple):
    """Where one dataset is drawn, in cells from the top left of the datasets' area."""

    number: int
    """Its place among the datasets, from 0."""
    x: int
    y: int
    width: int
    height: int

    @property
    def boxed(self) -> bool:
        """Whether it stands in a border with its title."""
        return self.height >= PANE_MIN

    @property
    def inner(self) -> tuple[int, int]:
        """Cells and lines for the text."""
        return (self.width - 4, self.height - 2) if self.boxed else (self.width - 2, self.height)


class Plan(NamedTuple):
    """Lines of each part of the screen, and the place of each dataset that is shown."""

    header: int
    alarm: int
    area: int
    hidden: int
    """1 where a line says how many datasets are not shown."""
    message: int
    keys: int
    places: tuple[Place, ...]
    above: int
    below: int


def plan(cells: int, rows: int, datasets: Sequence[DatasetView], chosen: int) -> Plan:
    """Share out a screen of `cells` by `rows`."""
    header = _header(rows, len(datasets))
    alarm = 1 if rows > header else 0
    keys = 1 if rows >= _KEYS_FROM else 0
    message = 1 if rows >= _MESSAGE_FROM else 0
    area = max(0, rows - header - alarm - keys - message)
    count = len(datasets)
    if count > area:
        start, stop = window(count, chosen, max(1, area - 1)) if area else (0, 0)
        hidden = 1 if area > 1 else 0
        places = tuple(Place(index, 0, index - start, cells, 1) for index in range(start, stop))
        return Plan(
            header, alarm, area - hidden, hidden, message, keys, places, start, count - stop
        )
    places = tuple(_grid(cells, area, datasets) or _stack(cells, area, datasets, chosen))
    return Plan(header, alarm, area, 0, message, keys, places, 0, 0)


def _header(rows: int, count: int) -> int:
    """The header's lines: its time axis gives way before a dataset does."""
    fitting = [lines for least, lines in _HEADERS if rows >= least]
    for lines in fitting:
        if lines <= _HEADER_LEAST or rows - lines - _AROUND >= count:
            return lines
    return fitting[-1]


def window(count: int, chosen: int, shown: int) -> tuple[int, int]:
    """The run of `shown` places out of `count` that has the chosen one near its middle."""
    start = max(0, min(chosen - shown // 2, count - shown))
    return start, min(count, start + shown)


def _grid(cells: int, area: int, datasets: Sequence[DatasetView]) -> list[Place]:
    """Two panes side by side; a pair without a living dataset takes only the lines it can fill."""
    pairs = [datasets[first : first + 2] for first in range(0, len(datasets), 2)]
    tall = _pairs(area, [max(wanted(view) for view in pair) + 2 for pair in pairs])
    if cells < _TWO_COLUMNS or len(datasets) == 1 or not tall:
        return []
    left = cells // 2
    places, y = [], 0
    for line, pair in enumerate(pairs):
        for column in range(len(pair)):
            x, wide = (left, cells - left) if column else (0, left)
            places.append(Place(2 * line + column, x, y, wide, tall[line]))
        y += tall[line]
    return places


def _pairs(area: int, wishes: list[int]) -> list[int]:
    """Heights as close to the wishes as the area allows; empty if panes would get too low."""
    tall = [min(wish, _GRID_PANE) for wish in wishes]
    spare = area - sum(tall)
    if spare < 0:
        return []
    while spare > 0 and (short := [n for n, wish in enumerate(wishes) if tall[n] < wish]):
        lowest = min(short, key=lambda n: tall[n])
        tall[lowest] += 1
        spare -= 1
    return tall


def _stack(cells: int, area: int, datasets: Sequence[DatasetView], chosen: int) -> Iterator[Place]:
    y = 0
    for index, height in enumerate(heights(area, datasets, chosen)):
        yield Place(index, 0, y, cells, height)
        y += height


def heights(area: int, datasets: Sequence[DatasetView], chosen: int) -> list[int]:
    """Lines per dataset, one below the other: the chosen one in full, the living ones next.

    Needs `len(datasets) <= area`; the sum never exceeds `area`.
    """
    given = [1] * len(datasets)
    for group, lines in _wishes(datasets, chosen):
        spare = area - sum(given)
        more = [max(0, min(lines, wanted(datasets[n]) + 2) - given[n]) for n in group]
        if group == [chosen]:
            given[chosen] += min(more[0], spare)
        elif sum(more) <= spare:
            for n, extra in zip(group, more, strict=True):
                given[n] += extra
    return given


def _wishes(datasets: Sequence[DatasetView], chosen: int) -> Iterator[tuple[list[int], int]]:
    """Groups of datasets with the lines each of them wants, the most important first.

    A group grows together or not at all, so that equals look equal.
    """
    others = [index for index in range(len(datasets)) if index != chosen]
    live = [index for index in others if datasets[index].state in {"running", "paused"}]
    ended = [index for index in others if datasets[index].state in {"done", "budget", "skipped"}]
    here = [chosen] if 0 <= chosen < len(datasets) else []
    yield from (
        (here, 9),
        (live, 2),
        (here, 10),
        (live, 4),
        (live, 9),
        (ended, 2),
        (here, 13),
        (live, 11),
        (here, _PANE_MAX),
    )
