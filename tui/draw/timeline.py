"""Throughput, errors by family, limit, orders and the clock on one axis, bucket under bucket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from engine import format as fmt
from engine.clock import local_hm
from engine.view.snapshot import DatasetView, FamilySeries, Mark, Series, Snapshot, Spell
from tui import glyphs
from tui.draw import axis, chart
from tui.draw.paint import LABEL, Line, Span, exactly, label

BELOW = 4
"""Lines under the throughput's: errors, limit, orders, clock."""
_VALUE = 8
"""Cells of a row's present number with its space."""
_NOTES = ((100, 34), (56, 24), (0, 0))
"""Cells of a line from which its notes have so many."""
_FEW = 3
_MANY, _MOST = 0.02, 0.2
"""Failed attempts of a column's attempts from which its letter is a capital, and reversed."""
_LETTERS = {
    "pause": "p",
    "resume": "r",
    "throttle": "t",
    "skip": "s",
    "unskip": "u",
    "exclude_provider": "x",
    "include_provider": "i",
    "retry_failed": "f",
    "drain": "d",
    "stop": "X",
}
_LOOKS = (("warn", False, False), ("warn", True, False), ("bad", True, True))
_Errors = list[tuple[str, list[int]]]
"""Families with their failed attempts in each column."""
_HELD = {"paused": Span(glyphs.GAP, "paused"), "waiting": Span(glyphs.HELD, "warn")}


class Track(NamedTuple):
    """What the axis of a run or of one dataset shows."""

    rate: Series
    rate_now: float | None
    """None once the run has ended."""
    role: str
    families: Sequence[FamilySeries]
    letters: Mapping[str, str]
    failed: int
    """Failed attempts of all sessions: the axis holds only what is recent."""
    totals: Mapping[str, int]
    """The same by family."""
    limit: Series
    limit_now: int
    marks: Sequence[Mark]
    spells: Sequence[Spell]


def of_run(snapshot: Snapshot) -> Track:
    """The whole run's axis."""
    totals = _totals(snapshot.datasets)
    return Track(
        rate=snapshot.rate,
        rate_now=None if snapshot.exit_code is not None else snapshot.rows_per_s,
        role="bar",
        families=snapshot.errors_by_family,
        letters=letters(snapshot.errors_by_family, totals),
        failed=sum(view.attempt_errors for view in snapshot.datasets),
        totals=totals,
        limit=snapshot.limit_series,
        limit_now=snapshot.limit,
        marks=snapshot.events.marks,
        spells=snapshot.events.spells,
    )


def of_dataset(snapshot: Snapshot, view: DatasetView) -> Track:
    """One dataset's axis: its own numbers, the run's limit, and the orders that concern it."""
    marks, totals = snapshot.events.marks, _totals((view,))
    return Track(
        rate=view.rate,
        rate_now=None if snapshot.exit_code is not None else view.rows_per_s,
        role="paused" if view.state == "paused" else "bar",
        families=view.errors_by_family,
        letters=letters(
            [*snapshot.errors_by_family, *view.errors_by_family], _totals(snapshot.datasets)
        ),
        failed=view.attempt_errors,
        totals=totals,
        limit=snapshot.limit_series,
        limit_now=snapshot.limit,
        marks=[mark for mark in marks if mark.dataset in {None, view.name}],
        spells=[*view.events.spells, *snapshot.events.spells],
    )


def full(track: Track, cells: int, rows: int) -> list[Line]:
    """`rows` lines of throughput, then errors, limit, orders and the clock."""
    room, note = _room(cells)
    made = axis.grid(track.rate, room)
    lines = _Lines(cells, room, note)
    shown, errors = axis.means(made, track.rate), _by_family(track, made)
    strip = _joined(_cells(track, made, shown, errors))
    return [
        *lines.rate(track, made, shown, rows),
        lines.row("errors", fmt.thousands(track.failed), strip, _legend(track, made, errors)),
        lines.row("limit", fmt.thousands(track.limit_now), *_limit(track, made)),
        lines.row("orders", "", _orders(track, made), _latest(track, made)),
        lines.row("", "", (Span(axis.clock(made), "dim"),)),
    ]


def brief(track: Track, cells: int) -> list[Line]:
    """Two lines: throughput; and errors, held spans, and a `^` where an operator acted."""
    room, note = _room(cells)
    made = axis.grid(track.rate, room)
    lines = _Lines(cells, room, note)
    shown, errors = axis.means(made, track.rate), _by_family(track, made)
    strip = _cells(track, made, shown, errors)
    for column, state in enumerate(axis.held(made, track.spells)):
        if state in _HELD and strip[column].role == "dim":
            strip[column] = _HELD[state]
    for mark in track.marks:
        if (column := made.column(mark.at)) >= 0:
            strip[column] = Span(glyphs.HERE, "accent", bold=True)
    failed, said = fmt.thousands(track.failed), _legend(track, made, errors)
    return [
        *lines.rate(track, made, shown, 1),
        lines.row("errors", failed, _joined(strip), said),
    ]


class _Lines(NamedTuple):
    """Builds lines of the same columns: label, number, axis, note."""

    cells: int
    room: int
    note: int

    def row(self, name: str, value: str, drawn: Line, said: str = "") -> Line:
        """One line; the newest column stands at the right edge of the axis."""
        blank = self.room - sum(len(span.text) for span in drawn)
        head = (label(name), Span(f"{value:>{_VALUE - 1}} "), Span(" " * blank))
        text = fmt.pad(f" {said}", self.note) if self.note else ""
        return exactly((*head, *drawn, Span(text, "dim")), self.cells)

    def rate(
        self, track: Track, made: axis.Grid, shown: list[float | None], rows: int
    ) -> Iterator[Line]:
        """The throughput from zero to its maximum."""
        columns = chart.Columns(shown, made.seconds)
        said = ""
        if shown:
            said = f"max {fmt.rate(columns.maximum)} since {local_hm(made.begin)}"
        now = "" if track.rate_now is None else fmt.rate(track.rate_now)
        drawn = chart.chart(columns, self.room, rows)
        for place, bars in enumerate(drawn):
            last = place == rows - 1
            drawn_bars = (Span(bars, track.role),)
            yield self.row("rate", now, drawn_bars, said) if last else self.row("", "", drawn_bars)


def _room(cells: int) -> tuple[int, int]:
    note = next(size for least, size in _NOTES if cells >= least)
    return max(1, cells - LABEL - _VALUE - note), note


def letters(families: Iterable[FamilySeries], more: Iterable[str] = ()) -> dict[str, str]:
    """A letter for each family, the first of its name that no earlier family has.

    `more` are families that have no series here: those of earlier sessions.
    """
    given: dict[str, str] = {}
    for family in (*(each.family for each in families), *more):
        if family not in given:
            name = [char for char in family.upper() if char.isascii() and char.isalpha()]
            free = (char for char in name if char not in given.values())
            given[family] = next(free, "#")
    return given


def _totals(datasets: Iterable[DatasetView]) -> dict[str, int]:
    """Failed attempts of all sessions by family."""
    totals: Counter[str] = Counter()
    for error in (error for view in datasets for error in view.errors):
        totals[error.family] += error.count
    return totals


def _by_family(track: Track, made: axis.Grid) -> _Errors:
    """Failed attempts of each column, of the families that have any."""
    found = ((each.family, axis.sums(made, each.counts)) for each in track.families)
    return [(family, counts) for family, counts in found if any(counts)]


def _cells(
    track: Track, made: axis.Grid, rates: Sequence[float | None], errors: _Errors
) -> list[Span]:
    """A cell per column: the letter of its commonest family, louder the more attempts failed."""
    cells = []
    for column, rate in enumerate(rates):
        found = [(counts[column], family) for family, counts in errors if counts[column]]
        if not found:
            cells.append(Span(glyphs.GAP if rate is None else glyphs.DOT, "dim"))
            continue
        level = _level(sum(count for count, _ in found), (rate or 0.0) * made.seconds)
        letter = track.letters[max(found, key=lambda item: item[0])[1]]
        role, bold, reverse = _LOOKS[level]
        cells.append(Span(letter if level else letter.lower(), role, bold, reverse))
    return cells


def _level(failed: int, rows: float) -> int:
    share = failed / (failed + rows)
    if failed < _FEW or share < _MANY:
        return 0
    return 2 if share >= _MOST else 1


def _legend(track: Track, made: axis.Grid, errors: _Errors) -> str:
    """What the letters mean, with the totals of all sessions; the axis' own where those lack."""
    seen = {family: sum(counts) for family, counts in errors}
    if track.totals:
        return _named(track, {**seen, **track.totals})
    if not seen:
        return f"none since {local_hm(made.begin)}" if made.columns else ""
    return f"since {local_hm(made.begin)}: {_named(track, seen)}"


def _named(track: Track, counted: Mapping[str, int]) -> str:
    ranked = sorted(((count, family) for family, count in counted.items()), reverse=True)
    return "  ".join(
        f"{track.letters[family]} {fmt.safe_text(family, 24)} {fmt.thousands(count)}"
        for count, family in ranked
    )


def _limit(track: Track, made: axis.Grid) -> tuple[Line, str]:
    levels = axis.lows(made, track.limit)
    known = [level for level in levels if level is not None]
    if not known:
        return (), ""
    drawn = chart.chart(chart.Columns(levels, made.seconds), made.columns)[0]
    bars = drawn.replace(glyphs.GAP, " ")
    low = min(known)
    if low == max(known):
        return (Span(bars, "bar"),), f"steady since {local_hm(made.begin)}"
    place = len(levels) - 1 - levels[::-1].index(low)
    when = local_hm(made.begin + place * made.seconds)
    return (Span(bars, "bar"),), f"lowest {fmt.thousands(round(low))} at {when}"


def _orders(track: Track, made: axis.Grid) -> Line:
    """Spans in which work was held, and a letter for each order; a digit where several meet."""
    cells = [_HELD.get(state, Span(" ")) for state in axis.held(made, track.spells)]
    met: dict[int, list[Mark]] = {}
    for mark in track.marks:
        if (column := made.column(mark.at)) >= 0:
            met.setdefault(column, []).append(mark)
    for column, marks in met.items():
        text = letter_of(marks[0]) if len(marks) == 1 else str(min(len(marks), 9))
        cells[column] = Span(text, "accent", bold=True)
    return _joined(cells)


def letter_of(mark: Mark) -> str:
    """The order's letter: the key's where it has one; a capital where it is the whole run's."""
    letter = _LETTERS.get(mark.command, "?")
    whole = mark.dataset is None and mark.command in {"pause", "resume"}
    return letter.upper() if whole else letter


def _latest(track: Track, made: axis.Grid) -> str:
    if not track.marks:
        return "none yet" if made.columns else ""
    return _told(track.marks[-1], letter_of(track.marks[-1]))


def _told(mark: Mark, letter: str) -> str:
    return f"{letter} {local_hm(mark.at)} {fmt.safe_text(mark.text)}"


def _joined(cells: Sequence[Span]) -> Line:
    """Equal neighbours as one span: a colour code costs more than a cell."""
    return tuple(
        look._replace(text="".join(span.text for span in spans))
        for look, spans in groupby(cells, key=lambda span: span._replace(text=""))
    )
