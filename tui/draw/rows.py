"""A dataset in one to four dense lines, for screens that have no room for a pane each."""

from __future__ import annotations

from typing import NamedTuple

from engine import format as fmt
from engine.snapshot import DatasetView
from tui import glyphs
from tui.draw import dataset, words
from tui.draw.paint import Field, Line, Span, arrange, field

_NAME_MAX = 24


class Widths(NamedTuple):
    """Cells of the columns that all rows share, so that numbers stand under numbers."""

    name: int = 12
    total: int = 6


def widths(datasets: tuple[DatasetView, ...], cells: int) -> Widths:
    """The columns that these datasets need, the name's bounded by the width of the screen."""
    longest = max((fmt.width(fmt.safe_text(view.name)) for view in datasets), default=1)
    counts = max((len(fmt.thousands(view.prompts)) for view in datasets), default=1)
    return Widths(min(longest, _NAME_MAX if cells >= 70 else max(4, cells // 4)), counts)  # noqa: PLR2004


def dense(
    view: DatasetView,
    cells: int,
    rows: int,
    now: float,
    *,
    number: int,
    columns: Widths,
    chosen: bool,
) -> list[Line]:
    """One to four lines: state and prompts; ledger and money; throughput; errors."""
    lines = [head(view, cells, now, number=number, columns=columns, chosen=chosen)]
    if rows > 1:
        lines.append(dataset.prompts_line(view, cells) if rows > 2 else _second(view, cells))  # noqa: PLR2004
    if rows > 2:  # noqa: PLR2004
        lines += dataset.rate_lines(view, cells)
    if rows > 3:  # noqa: PLR2004
        lines.append(dataset.gauge_line(view, cells, detailed=False))
    if rows > 4:  # noqa: PLR2004
        lines += dataset.error_lines(view, cells, 1, now)
    return lines[:rows]


def head(
    view: DatasetView, cells: int, now: float, *, number: int, columns: Widths, chosen: bool
) -> Line:
    """`4 B6_ultrachat · 15,000 prompts ► RUNNING  26%  ok 3,888  failed 12  ETA 9m 10s`."""
    word = words.dataset_state(view)
    key = f"{number}" if number <= 9 else glyphs.DOT  # noqa: PLR2004 - keys 1 to 9
    name = fmt.pad(fmt.safe_text(view.name), columns.name)
    total = f"{fmt.thousands(view.prompts):>{columns.total}} prompts"
    title = (
        Span(f"{glyphs.CURSOR if chosen else ' '}{key} ", "accent" if chosen else "dim"),
        Span(name, bold=chosen, reverse=chosen),
        Span(f" {glyphs.DOT} ", "dim"),
        Span(total, "dim" if view.state == "queued" else "text"),
    )
    quiet = view.state == "queued"
    failed = "bad" if view.failed else "dim"
    left = [
        Field(title),
        field(fmt.pad(str(word), 9), word.role, bold=not quiet),
        Field(
            (Span(f"{fmt.percent(words.done(view), view.prompts):>4}", "dim" if quiet else "text"),)
        ),
        Field((Span("ok ", "dim"), Span(f"{fmt.thousands(view.ok):>{columns.total}}")), 2),
        Field(
            (Span("failed ", "dim"), Span(fmt.thousands(view.failed), failed)),
            1 if view.failed else 3,
        ),
    ]
    if quiet:
        left = left[:2]
    return arrange(cells, left, [_tail(view, now)], gap=" ")


def _tail(view: DatasetView, now: float) -> Field:
    """The worry if there is one, else how long it will take, else what it cost."""
    errors = words.worst_first(view.errors)
    if errors and errors[0].verdict in {"ACTIVE", "STRUCTURAL"}:
        word = words.verdict(errors[0], now)
        return Field((Span(f"{word.glyph} {errors[0].verdict}", word.role, bold=True),))
    if view.state in {"running", "paused"}:
        return Field((Span("ETA ", "dim"), Span(f"{fmt.duration(view.eta_s):>7}")), 2)
    return field("" if view.state == "queued" else fmt.money(view.cost_usd), "text", 2)


def _second(view: DatasetView, cells: int) -> Line:
    dim = "dim"
    budget = f" of {fmt.compact(view.token_budget)}" if view.token_budget else ""
    rate = view.attempts
    left = [
        Field((Span("   ", dim), Span("in flight ", dim), Span(fmt.thousands(view.in_flight)))),
        Field((Span("left ", dim), Span(fmt.thousands(view.left)))),
        Field((Span(fmt.compact(view.completion_tokens)), Span(f"{budget} tok", dim)), 1),
        Field((Span(fmt.money(view.cost_usd)),), 1),
        Field((Span(fmt.rate(view.rows_per_s)),), 3),
        Field(
            (
                Span("errors ", dim),
                Span(fmt.percent(rate.failed, rate.total)),
                Span(" of attempts", dim),
            ),
            2,
        ),
    ]
    return arrange(cells, left, gap=f" {glyphs.DOT} ")
