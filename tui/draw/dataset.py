"""The lines of a dataset's pane, each a pure function of the view and a width."""

from __future__ import annotations

from engine import format as fmt
from engine.view.snapshot import DatasetView, RunState
from tui import glyphs
from tui.draw import chart, grades, words
from tui.draw.paint import (
    LABEL,
    Field,
    Line,
    Span,
    arrange,
    exactly,
    field,
    fitting,
    label,
    line_width,
)

LIVE = frozenset({"running", "paused"})
_DENSE = 90
"""Cells below which grades stand closer."""
_BAR_MIN = 6
_RATE = 8
"""Cells of the throughput's number with its space."""


def state_line(view: DatasetView, cells: int, run: RunState) -> Line:
    """`► RUNNING ███▒▒░░░ 26%  3,900 of 15,000  ETA 9m 10s by tokens`."""
    word = words.dataset_state(view, run)
    finished, total = words.done(view), fmt.thousands(view.prompts)
    right = [
        field(f"{fmt.percent(finished, view.prompts):>4}", bold=view.state != "queued"),
        field(f"{fmt.thousands(finished):>{len(total)}} of {total}", rank=2),
    ]
    if view.state == "done":
        lost = ((view.failed, "failed"), (view.invalid, "invalid"))
        said = ", ".join(f"{fmt.thousands(count)} {word}" for count, word in lost if count)
        right.insert(0, field(said, "warn", 1))
    if view.state in LIVE:
        eta = f"{fmt.duration(view.eta_s):>8}{words.limit_of(view) if view.eta_s else ''}"
        right.append(Field((Span("ETA", "dim"), Span(eta)), 1))
    room = cells - LABEL - sum(line_width(item.spans) + 2 for item in right)
    head = Span(fmt.pad(str(word), LABEL), word.role, bold=True)
    bar = progress_bar(view, room, word.role) if room >= _BAR_MIN else ()
    return arrange(cells, [Field((head, *bar))], right)


def progress_bar(view: DatasetView, cells: int, state: str) -> Line:
    """Prompts done, in flight and left, in that order, as one bar; `state` is its word's role."""
    finished, flying, rest = chart.progress(cells, view.prompts, words.done(view), view.in_flight)
    role = "paused" if state == "paused" else "bar"
    return (Span(finished, role), Span(flying, role), Span(rest, "track"))


def prompts_line(view: DatasetView, cells: int) -> Line:
    """The prompts ledger: its numbers sum to the manifest's total."""
    digits = len(fmt.thousands(view.prompts)) if view.state in LIVE else 0
    wide, dense = f" {glyphs.DOT} ", " "
    tries = [_ledger(view, digits, wide), _ledger(view, 0, wide), _ledger(view, 0, dense)]
    return exactly(next((line for line in tries if line_width(line) <= cells), tries[-1]), cells)


def _ledger(view: DatasetView, digits: int, gap: str) -> Line:
    dot = Span(gap, "dim")

    def number(name: str, value: int, role: str = "text") -> Line:
        return (Span(f"{name} ", "dim"), Span(f"{fmt.thousands(value):>{digits}}", role))

    line = [label("prompts"), *number("ok", view.ok)]
    line += [dot, *number("failed", view.failed, "bad" if view.failed else "dim")]
    if view.invalid:
        line += [dot, *number("invalid", view.invalid, "warn")]
    line += [dot, *number("in flight", view.in_flight), dot, *number("left", view.left)]
    if view.waiting:
        line.append(Span(f" ({fmt.thousands(view.waiting)} to retry)", "dim"))
    return tuple(line)


def tokens_line(view: DatasetView, cells: int) -> Line:
    """Completion tokens against the budget, those that can be exported, the mean, the cost."""
    left = [Field((label("tokens"), *_tokens(view)))]
    if view.rows:
        left.append(Field(grades.exportable(view), 1))
    if view.mean_completion_tokens is not None:
        mean = fmt.thousands(round(view.mean_completion_tokens))
        left.append(Field((Span("mean ", "dim"), Span(mean), Span(" tok", "dim")), 2))
    started = view.cost_usd is not None or view.rows or view.in_flight
    cost = Field((Span("cost ", "dim"), Span(f"{fmt.money(view.cost_usd):>8}")))
    return arrange(cells, left, [cost] if started else [])


def _tokens(view: DatasetView) -> Line:
    used = Span(f"{fmt.compact(view.completion_tokens):>6}")
    if view.token_budget is None:
        return (used, Span(" tok", "dim"))
    share = fmt.percent(view.completion_tokens, view.token_budget)
    budget = Span(f" of {fmt.compact(view.token_budget)} tok", "dim")
    return (used, budget, Span(f" {share:>4}"))


def rows_line(view: DatasetView, cells: int) -> Line:
    """Rows on disk by grade, and those that succeeded but are suspect."""
    head = Field((label("rows"), Span(fmt.thousands(view.rows) + (":" if view.rows else ""))))
    found, gap = grades.summary(view), " " if cells < _DENSE else "  "
    restored = f"{fmt.thousands(view.restored_rows)} restored" if view.restored_rows else ""
    shown = fitting(cells - line_width(head.spans), found, gap)
    hidden = len(found) - len(shown)
    more = [field(f"+{hidden} more", "dim")] if hidden else []
    return arrange(cells, [head, *shown, *more], [field(restored, "dim", 4)], gap=gap)


def rate_lines(view: DatasetView, cells: int, rows: int = 1) -> list[Line]:
    """Rows per second as a chart of `rows` lines, labelled with its maximum and its span."""
    role = "paused" if view.state == "paused" else "bar"
    now = Span(f"{fmt.rate(view.rows_per_s):>{_RATE - 1}} ", bold=view.rows_per_s > 0)
    note = 20 if rows == 1 else 0
    room = max(1, cells - LABEL - _RATE - note)
    shown = chart.columns(view.rate, room)
    bars = [Span(text, role) for text in chart.chart(shown, room, rows)]
    top, span = fmt.rate(shown.maximum), fmt.coarse(shown.span)
    if rows == 1:
        text = f" max {top} in {span}" if shown.values else ""
        return [exactly((label("rate"), now, bars[0], Span(text, "dim")), cells)]
    heads = [
        (label("rate"), now),
        (label("max"), Span(f"{top:>{_RATE - 1}} ", "dim")),
        (label("last"), Span(f"{span:>{_RATE - 1}} ", "dim")),
        *[(Span(" " * (LABEL + _RATE)),)] * rows,
    ]
    return [exactly((*head, bar), cells) for head, bar in zip(heads, bars, strict=False)]
