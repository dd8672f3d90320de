"""The failures screen: per dataset the causes of failed attempts, and the prompts given up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from engine import format as fmt
from engine.view.snapshot import DatasetView, ErrorLine, Snapshot
from tui import glyphs
from tui.draw import words
from tui.draw.detail import full_error
from tui.draw.lists import failures, providers
from tui.draw.paint import Line, Span, exactly
from tui.draw.table import text

_TABLE_MOST = 120
"""Cells of the table of prompts: its last column stays near its first."""


class Item(NamedTuple):
    """What the cursor can stand on: a dataset, or one cause of failed attempts in it."""

    dataset: str
    family: str = ""
    provider: str | None = None


class Drawn(NamedTuple):
    """The lines, and the first and the last one of what the cursor stands on."""

    lines: list[Line]
    first: int
    last: int


def items(snapshot: Snapshot) -> list[Item]:
    """All that the cursor can stand on, from top to bottom."""
    return [item for view in snapshot.datasets for item, _ in _of(view)]


def _of(view: DatasetView) -> Iterator[tuple[Item, ErrorLine | None]]:
    yield Item(view.name), None
    for error in words.worst_first(view.errors):
        yield Item(view.name, error.family, error.provider), error


def body(snapshot: Snapshot, cells: int, cursor: Item) -> Drawn:
    """Everything; the chosen dataset's causes in full, the others' in a line each."""
    lines: list[Line] = []
    first = last = 0
    for number, view in enumerate(snapshot.datasets, 1):
        here = view.name == cursor.dataset
        for item, error in _of(view):
            begin = len(lines)
            if error is None:
                lines.append(_heading(number, view, cells, chosen=item == cursor, here=here))
            else:
                full = full_error(error, cells, words.moment(snapshot), chosen=item == cursor)
                lines += full if here else full[:1]
            if item == cursor:
                first, last = begin, len(lines) - 1
        if here:
            lines += failures(view, min(cells, _TABLE_MOST))
            lines.append(())
    return Drawn([*lines, (), *providers(snapshot, cells, cursor.provider)], first, last)


def _heading(number: int, view: DatasetView, cells: int, *, chosen: bool, here: bool) -> Line:
    mark = glyphs.CURSOR if chosen else " "
    given_up = f"{fmt.thousands(view.failed)} given up"
    if view.invalid:
        given_up += f", {fmt.thousands(view.invalid)} invalid"
    rate = view.attempts
    share = fmt.percent(rate.failed, rate.total)
    errors = f"{share} of attempts failed" if rate.total else "no attempts yet"
    return exactly(
        (
            Span(f"{mark} ", "accent", bold=True),
            Span(f"{words.key_of(number)} {words.label(view)}", "text", bold=here),
            Span(f"  {given_up}", "bad" if view.failed else "dim"),
            Span(f"  {errors}", "dim"),
        ),
        cells,
    )


def nothing(cells: int) -> list[Line]:
    """Before the first dataset is known."""
    return [text("no dataset yet", cells)]
