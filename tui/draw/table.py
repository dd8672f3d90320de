"""Tables as lines: columns as wide as their content, and the least important ones go first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine import format as fmt
from tui.draw.paint import Line, Span, exactly

_GAP = 2
_GROW_LEAST = 24
"""Cells that a growing column keeps, where it can fill them, before others go."""


class Column(NamedTuple):
    """A column's title; of the columns that do not fit, the highest rank goes first."""

    title: str
    right: bool = False
    rank: int = 0
    grow: bool = False
    """Takes the cells that are left, and is cut where there are too few."""


def head(title: str, note: str = "") -> Line:
    """A section's heading: its title, and what it is about in dim."""
    return (Span(title, "accent", bold=True), Span(f"  {note}" if note else "", "dim"))


def text(line: str, cells: int, indent: int = 2) -> Line:
    """A dim line, cut to fit."""
    return exactly((Span(" " * indent), Span(fmt.clip(line, max(0, cells - indent)), "dim")), cells)


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[Span]], cells: int, indent: int = 2
) -> list[Line]:
    """A line of titles and one per row, each exactly `cells` wide; texts must be safe."""
    shown = _fitting(columns, rows, cells - indent)
    widths = _widths(columns, rows, shown, cells - indent)
    titles = [Span(column.title, "dim") for column in columns]
    return [
        exactly((Span(" " * indent), *_line(columns, row, shown, widths)), cells)
        for row in [titles, *rows]
    ]


def _natural(columns: Sequence[Column], rows: Sequence[Sequence[Span]], place: int) -> int:
    column = columns[place]
    texts = [fmt.width(row[place].text) for row in rows]
    widest = max(fmt.width(column.title), *texts, 0)
    return min(widest, _GROW_LEAST) if column.grow else widest


def _fitting(columns: Sequence[Column], rows: Sequence[Sequence[Span]], cells: int) -> list[int]:
    shown = list(range(len(columns)))
    while len(shown) > 1:
        needed = sum(_natural(columns, rows, place) + _GAP for place in shown) - _GAP
        worst = max(shown, key=lambda place: (columns[place].rank, place))
        if needed <= cells or not columns[worst].rank:
            break
        shown.remove(worst)
    return shown


def _widths(
    columns: Sequence[Column], rows: Sequence[Sequence[Span]], shown: list[int], cells: int
) -> dict[int, int]:
    widths = {place: _natural(columns, rows, place) for place in shown}
    spare = cells - sum(widths.values()) - _GAP * (len(shown) - 1)
    for place in shown:
        if columns[place].grow:
            widths[place] = max(0, widths[place] + spare)
            spare = 0
    return widths


def _line(
    columns: Sequence[Column], row: Sequence[Span], shown: list[int], widths: dict[int, int]
) -> Line:
    out: list[Span] = []
    for place in shown:
        if out:
            out.append(Span(" " * _GAP))
        span = row[place]
        padded = fmt.pad(span.text, widths[place], right=columns[place].right)
        out.append(span._replace(text=padded))
    return tuple(out)


def beside(left: Sequence[Line], right: Sequence[Line], cells: int, gap: int = 3) -> list[Line]:
    """Two columns of lines as one of exactly `cells`; the left one gets half."""
    first = (cells - gap) // 2
    second = cells - gap - first
    return [
        (
            *exactly(left[y] if y < len(left) else (), first),
            Span(" " * gap),
            *exactly(right[y] if y < len(right) else (), second),
        )
        for y in range(max(len(left), len(right)))
    ]
