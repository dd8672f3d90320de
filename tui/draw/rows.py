"""A dataset in one to five dense lines, for screens that have no room for a pane each."""

from __future__ import annotations

from typing import NamedTuple

from engine import format as fmt
from engine.view.snapshot import DatasetView, RunState
from tui import glyphs
from tui.draw import dataset, errors, grades, words
from tui.draw.paint import Field, Line, Span, arrange, field

_NAME_MAX = 24
_CELLS_MAX = 100
"""Rows are no longer than this, so that their last number stays near their name."""
_BRIEF = 2
_NARROW = 60
"""Cells below which a row says its state by the glyph alone."""
_TINY = 36
_DOT = f" {glyphs.DOT} "


class Widths(NamedTuple):
    """Cells of the columns that all rows share, so that numbers stand under numbers."""

    name: int = 12
    total: int = 6


def widths(datasets: tuple[DatasetView, ...], cells: int) -> Widths:
    """The columns that these datasets need, the name's bounded by the width of the screen."""
    longest = max((fmt.width(fmt.safe_text(view.name)) for view in datasets), default=1)
    totals = max((len(fmt.thousands(view.prompts)) for view in datasets), default=1)
    others = 16 if cells < _TINY else 24 if cells < _NARROW else 38
    return Widths(min(longest, _NAME_MAX, max(4, cells - totals - others)), totals)


class Row(NamedTuple):
    """How one dataset stands among the others."""

    number: int
    """From 1."""
    columns: Widths
    chosen: bool
    run: RunState


def dense(view: DatasetView, cells: int, rows: int, now: float, row: Row) -> list[Line]:
    """State and prompts; ledger and money; throughput; errors: as many of them as `rows`."""
    cells = min(cells, _CELLS_MAX)
    first = head(view, cells, now, row)
    if rows <= _BRIEF or view.state not in dataset.LIVE:
        return [first, _second(view, cells)][:rows]
    lines = [first, dataset.prompts_line(view, cells), *dataset.rate_lines(view, cells)]
    lines.append(errors.gauge(view, cells, with_recent=True))
    lines += errors.lines(view, cells, 1, now)
    return lines[:rows]


def head(view: DatasetView, cells: int, now: float, row: Row) -> Line:
    """`4 B6_ultrachat · 15,000 prompts ► RUNNING  26% ok 3,888 failed 12  ETA 9m 10s`."""
    word = words.dataset_state(view, row.run)
    queued = view.state == "queued"
    shown = word.glyph if cells < _NARROW else fmt.pad(str(word), 9)
    left = [Field(_title(view, cells, row)), field(shown, word.role, bold=not queued)]
    worry = _worry(view, now)
    if queued:
        return arrange(cells, left, [worry] if worry else [], gap=" ")
    failed = Span(fmt.thousands(view.failed), "bad" if view.failed else "dim")
    left += [
        field(f"{fmt.percent(words.done(view), view.prompts):>4}", rank=1),
        Field((Span("ok ", "dim"), Span(f"{fmt.thousands(view.ok):>{row.columns.total}}")), 3),
        Field((Span("failed ", "dim"), failed), 2 if view.failed else 4),
    ]
    return arrange(cells, left, [worry or _rest(view)], gap=" ")


def _title(view: DatasetView, cells: int, row: Row) -> Line:
    digit = words.key_of(row.number)
    narrow = cells < _NARROW
    total = f"{fmt.thousands(view.prompts):>{row.columns.total}}"
    total += "" if cells < _TINY else " prompts"
    return (
        Span(
            digit if narrow else f" {digit} ",
            "accent" if row.chosen else "dim",
            bold=row.chosen,
            reverse=row.chosen,
        ),
        Span(" " + fmt.pad(fmt.safe_text(view.name), row.columns.name), bold=row.chosen),
        Span(" " if narrow else _DOT, "dim"),
        Span(total, "dim" if view.state == "queued" else "text"),
    )


def _worry(view: DatasetView, now: float) -> Field | None:
    """What is wrong with it, if something is."""
    ranked = words.worst_first(view.errors)
    if not ranked or ranked[0].verdict not in {"ACTIVE", "STRUCTURAL"}:
        return None
    word = words.verdict(ranked[0], now)
    return field(f"{word.glyph} {ranked[0].verdict}", word.role, rank=1, bold=True)


def _rest(view: DatasetView) -> Field:
    """How long it will take, or what it cost."""
    if view.state in dataset.LIVE:
        return Field((Span("ETA ", "dim"), Span(f"{fmt.duration(view.eta_s):>7}")), 2)
    pilot = f"pilot of {fmt.thousands(view.pilot)} " if view.pilot and view.state == "done" else ""
    return field(pilot + (fmt.money(view.cost_usd) if view.rows else ""), rank=2)


def _second(view: DatasetView, cells: int) -> Line:
    budget = f" of {fmt.compact(view.token_budget)}" if view.token_budget else ""
    rate = view.attempts
    share = fmt.percent(rate.failed, rate.total)
    tokens = Field((Span(fmt.compact(view.completion_tokens)), Span(f"{budget} tok", "dim")), 1)
    errors_share = Field((Span("errors ", "dim"), Span(share), Span(" of attempts", "dim")), 2)
    indent = Span("    ")
    if view.state not in dataset.LIVE and not view.in_flight:
        start = Field((indent, *tokens.spans))
        return arrange(cells, [start, errors_share, *grades.suspects(view)], gap=_DOT)
    left = [
        Field((indent, Span("in flight ", "dim"), Span(fmt.thousands(view.in_flight)))),
        Field((Span("left ", "dim"), Span(fmt.thousands(view.left)))),
        tokens,
        field(fmt.money(view.cost_usd), rank=1),
        field(fmt.rate(view.rows_per_s), rank=3),
        errors_share,
    ]
    return arrange(cells, left, gap=_DOT)
