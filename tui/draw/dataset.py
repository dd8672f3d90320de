"""What a dataset's pane says; each line is a pure function of the view and a width."""

from __future__ import annotations

from collections.abc import Callable

from engine import format as fmt
from engine.snapshot import DatasetView, ErrorLine
from tui import glyphs
from tui.draw import chart, words
from tui.draw.paint import Field, Line, Span, arrange, exactly, field, label

LABEL = 10
"""Cells of the label column, its space included."""
_EXACT = ("engine", "matched")
_SUSPECT_GRADES = ("mismatch", "ambiguous")


def state_line(view: DatasetView, cells: int) -> Line:
    """`► RUNNING ███▒▒░░░ 26%  3,900 of 15,000 prompts  ETA 9m 10s`."""
    word = words.dataset_state(view)
    finished = words.done(view)
    total = fmt.thousands(view.prompts)
    count = f"{fmt.thousands(finished):>{len(total)}} of {total} prompts"
    right = [
        field(f"{fmt.percent(finished, view.prompts):>4}", bold=True),
        field(count, rank=2),
        *_eta(view),
    ]
    head = Span(fmt.pad(str(word), LABEL), word.role, bold=True)
    room = cells - LABEL - 2 - fmt.width("".join(s.text for f in right for s in f.spans)) - 6
    bar = Field(progress_bar(view, max(4, room)), 3) if room >= 4 else field("")  # noqa: PLR2004
    return arrange(cells, [Field((head, *bar.spans))], right)


def _eta(view: DatasetView) -> list[Field]:
    if view.state not in {"running", "paused"}:
        return [field(fmt.pad("", 12), rank=4)]
    eta = fmt.duration(view.eta_s) + words.limit_of(view)
    return [Field((Span("ETA ", "dim"), Span(f"{eta:>8}")), 1)]


def progress_bar(view: DatasetView, cells: int) -> Line:
    """Prompts done, in flight and left, in that order, as one bar."""
    finished, flying, rest = chart.progress(cells, view.prompts, words.done(view), view.in_flight)
    role = "paused" if view.state in {"paused", "skipped"} else "bar"
    return (Span(finished, role), Span(flying, role), Span(rest, "track"))


def prompts_line(view: DatasetView, cells: int) -> Line:
    """The prompts ledger: its numbers sum to the manifest's total."""
    for padded in (True, False):
        line = _ledger(view, padded=padded)
        if sum(fmt.width(span.text) for span in line) <= cells:
            return exactly(line, cells)
    return exactly(line, cells)


def _ledger(view: DatasetView, *, padded: bool) -> Line:
    cell = len(fmt.thousands(view.prompts)) if padded else 0
    dot = Span(f" {glyphs.DOT} ", "dim")

    def number(name: str, value: int, role: str = "text") -> Line:
        return (Span(f"{name} ", "dim"), Span(f"{fmt.thousands(value):>{cell}}", role))

    line = [label("prompts"), *number("ok", view.ok)]
    line += [dot, *number("failed", view.failed, "bad" if view.failed else "dim")]
    if view.invalid:
        line += [dot, *number("invalid", view.invalid, "warn")]
    line += [dot, *number("in flight", view.in_flight), dot, *number("left", view.left)]
    if view.waiting:
        line.append(Span(f" ({fmt.thousands(view.waiting)} to retry)", "dim"))
    return tuple(line)


def tokens_line(view: DatasetView, cells: int) -> Line:
    """Completion tokens against the budget, their mean, and the cost."""
    left = [Field((label("tokens"), *_tokens(view)))]
    if view.mean_completion_tokens is not None:
        mean = fmt.thousands(round(view.mean_completion_tokens))
        left.append(Field((Span("mean ", "dim"), Span(f"{mean} tok")), 2))
    return arrange(
        cells, left, [Field((Span("cost ", "dim"), Span(f"{fmt.money(view.cost_usd):>8}")))]
    )


def _tokens(view: DatasetView) -> Line:
    used = Span(f"{fmt.compact(view.completion_tokens):>6}")
    if view.token_budget is None:
        return (used, Span(" tok", "dim"))
    share = fmt.percent(view.completion_tokens, view.token_budget)
    return (used, Span(f" of {fmt.compact(view.token_budget)} tok", "dim"), Span(f" {share:>4}"))


def rate_lines(view: DatasetView, cells: int, rows: int = 1) -> list[Line]:
    """Rows per second as a chart of `rows` lines, labelled with its maximum and its span."""
    now = Span(f"{fmt.rate(view.rows_per_s):>7} ", bold=view.rows_per_s > 0)
    role = "paused" if view.state == "paused" else "bar"
    if rows == 1:
        return [_flat_chart(view, cells, now, role)]
    room = max(1, cells - LABEL - 9)
    shown = chart.columns(view.rate, room)
    notes = [
        (label("rate"), now),
        (label("max"), Span(f"{fmt.rate(shown.maximum):>7} ", "dim")),
        (label("last"), Span(f"{fmt.coarse(shown.span):>7} ", "dim")),
    ]
    blank = (Span(" " * (LABEL + 8)),)
    drawn = chart.chart(shown, room, rows)
    heads = [*notes, *[blank] * rows][:rows]
    return [
        exactly((*head, Span(bars, role)), cells) for head, bars in zip(heads, drawn, strict=True)
    ]


def _flat_chart(view: DatasetView, cells: int, now: Span, role: str) -> Line:
    tail = 22 if cells >= 60 else 15  # noqa: PLR2004 - the span is the first to go
    room = max(1, cells - LABEL - 8 - tail)
    shown = chart.columns(view.rate, room)
    note = f" max {fmt.rate(shown.maximum)}"
    note += f" in {fmt.coarse(shown.span)}" if tail > 15 and shown.values else ""  # noqa: PLR2004
    bars = Span(chart.chart(shown, room)[0], role)
    return exactly((label("rate"), now, bars, Span(note, "dim")), cells)


def gauge_line(view: DatasetView, cells: int, *, detailed: bool) -> Line:
    """`errors 6.2% of attempts · B6_ultrachat · 15,000 prompts`, with the recent rate beside it."""
    rate = view.attempts
    share = fmt.percent(rate.failed, rate.total)
    head = (
        label("errors"),
        Span(share, "text", bold=rate.failed > 0),
        Span(" of attempts ", "dim"),
    )
    recent = (
        [] if detailed else [Field((*_recent(view), Span(" in last ", "dim"), _window(view)), 1)]
    )
    name = words.label(view, max(12, cells - LABEL - 19))
    return arrange(cells, [Field((*head, Span(f"{glyphs.DOT} {name}", "dim")))], recent)


def gauge_bar(view: DatasetView, cells: int) -> Line:
    """The recent error rate as a bar from 0 to 100% of attempts, and both counts in full."""
    rate = view.attempts
    room = 16 if cells >= 76 else 8  # noqa: PLR2004 - the bar gives way to the counts
    filled, _, rest = chart.progress(room, rate.recent_total, rate.recent_failed, 0)
    role = _recent_role(view)
    recent = f" {fmt.thousands(rate.recent_failed)} of {fmt.thousands(rate.recent_total)}"
    overall = f"all {fmt.thousands(rate.failed)} of {fmt.thousands(rate.total)} attempts"
    last = (Span("last ", "dim"), _window(view), Span(" ", "dim"))
    bar = (Span(filled, role), Span(rest, "track"), Span(" "), *_recent(view))
    start = Field((Span(" " * LABEL), *last, *bar))
    return arrange(cells, [start, field(recent.strip(), "dim", 1)], [field(overall, "dim", 2)])


def _window(view: DatasetView) -> Span:
    return Span(fmt.coarse(view.attempts.recent_s), "dim")


def _recent(view: DatasetView) -> Line:
    rate = view.attempts
    share = fmt.percent(rate.recent_failed, rate.recent_total)
    return (Span(f"{share:>5}", _recent_role(view), bold=rate.recent_failed > 0),)


def _recent_role(view: DatasetView) -> str:
    rate = view.attempts
    if not rate.recent_failed:
        return "dim"
    share = rate.recent_failed / max(1, rate.recent_total)
    return "bad" if share >= 0.2 else "warn" if share >= 0.02 else "text"  # noqa: PLR2004


def error_lines(view: DatasetView, cells: int, count: int, now: float) -> list[Line]:
    """The worst `count` error families; the last line says how many more there are."""
    errors = words.worst_first(view.errors)
    if not errors:
        calm = "no errors" if view.attempts.total else ""
        return [exactly((Span(" " * LABEL), Span(calm, "dim")), cells)]
    lines = [error_line(error, cells, now) for error in errors[:count]]
    hidden = len(errors) - count
    if hidden > 0:
        lines[-1] = error_line(errors[count - 1], cells, now, more=hidden)
    return lines


def error_line(error: ErrorLine, cells: int, now: float, more: int = 0) -> Line:
    """`▲ rate_limit SiliconFlow  ACTIVE 12 in the last minute, rising  <evidence>`."""
    word = words.verdict(error, now)
    loud = word.role in {"bad", "warn"}
    text = error.action if word.role == "bad" and error.action else error.evidence
    head = Span(f"{word.glyph:>{LABEL - 1}} ", word.role, loud)
    fixed = (head, Span(words.cause(error), "text"), Span(f"  {word.text}", word.role, loud))
    rest = f" +{more} more" if more else ""
    room = cells - sum(fmt.width(span.text) for span in fixed) - 2 - len(rest)
    evidence = fmt.safe_text(text, room) if room >= 8 else ""  # noqa: PLR2004 - says nothing
    return arrange(
        cells, [Field((*fixed, Span(f"  {evidence}", "dim")))], [field(rest.strip())], gap=" "
    )


def action_line(view: DatasetView, cells: int) -> Line:
    """What the operator can do about the worst error."""
    errors = words.worst_first(view.errors)
    action = errors[0].action if errors else ""
    text = f"do: {fmt.safe_text(action, cells - LABEL - 4)}" if action else ""
    return exactly((Span(" " * LABEL), Span(text, "text")), cells)


def rows_line(view: DatasetView, cells: int) -> Line:
    """Rows on disk: how many are exact, and those that succeeded but are suspect."""
    left = [Field((label("rows"), Span(f"{fmt.thousands(view.rows)}")))]
    exact = sum(view.exactness.get(grade, 0) for grade in _EXACT)
    unverified = view.exactness.get("unverified", 0)
    if exact:
        left.append(Field((Span(fmt.thousands(exact)), Span(" exact ids", "dim")), 2))
    if unverified:
        left.append(field(f"{fmt.thousands(unverified)} unverified", "dim", 3))
    left += suspects(view)
    restored = f"{fmt.thousands(view.restored_rows)} restored" if view.restored_rows else ""
    return arrange(cells, left, [field(restored, "dim", 4)])


def suspects(view: DatasetView) -> list[Field]:
    """Rows that look successful and may not be good, the most frequent reason first."""
    found = {name: count for name, count in view.flags.items() if count}
    found |= {grade: n for grade in _SUSPECT_GRADES if (n := view.exactness.get(grade, 0))}
    if not found:
        return [field("none suspect", "dim", 5)] if view.rows else []
    order = sorted(found, key=lambda name: -found[name])
    head = Span(f"{glyphs.SUSPECT} suspect: ", "warn", bold=True)
    fields = []
    for place, name in enumerate(order):
        text = f"{fmt.thousands(found[name])} {fmt.safe_text(name, 20)}"
        span = Span(text, "warn")
        fields.append(Field((head, span) if place == 0 else (span,), 0 if place == 0 else 1))
    return fields


Block = Callable[[DatasetView, int], Line]


def pane(view: DatasetView, cells: int, rows: int, now: float) -> list[Line]:
    """A pane of `rows` lines; every block keeps its place while the numbers change."""
    urgent = any(line.verdict in {"ACTIVE", "STRUCTURAL"} for line in view.errors)
    detailed = rows >= 8  # noqa: PLR2004 - from here on the gauge has a bar of its own
    wide = rows >= 11  # noqa: PLR2004 - room for every block and a line for the worst error's cure
    chart_rows = 1 if rows < 9 else min(6, 2 + max(0, rows - 11) // 2)  # noqa: PLR2004
    lines = [state_line(view, cells)]
    lines += [prompts_line(view, cells)] if rows >= 2 else []  # noqa: PLR2004
    lines += [tokens_line(view, cells)] if rows >= (6 if urgent else 5) else []
    lines += rate_lines(view, cells, chart_rows) if rows >= 3 else []  # noqa: PLR2004
    lines += [gauge_line(view, cells, detailed=detailed)] if rows >= 4 else []  # noqa: PLR2004
    lines += [gauge_bar(view, cells)] if detailed else []
    tail = [rows_line(view, cells)] if rows >= 7 else []  # noqa: PLR2004
    room = rows - len(lines) - len(tail)
    if room > 0:
        errors = error_lines(view, cells, max(1, min(4, room - wide)), now)
        errors += [action_line(view, cells)] if room > len(errors) else []
        lines += errors
    blank = exactly((), cells)
    lines += tail
    return [*lines, *[blank] * (rows - len(lines))][:rows]
