"""A dataset's errors: the gauge of failed attempts, and the worst families with their verdicts."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from engine import format as fmt
from engine.view.snapshot import DatasetView, ErrorLine
from tui import glyphs
from tui.draw import chart, words
from tui.draw.paint import LABEL, Field, Line, Span, arrange, exactly, field, label, line_width

BAD_SHARE = 0.2
WARN_SHARE = 0.02
"""Failed attempts of all recent attempts from which the gauge turns to a warning, and to bad."""
_WIDE = 76
"""Cells below which the bar gives way to the counts."""
_READABLE = 12
"""Cells below which an evidence says nothing."""


def gauge(view: DatasetView, cells: int, *, with_recent: bool) -> Line:
    """`errors 6.2% of attempts · B6_ultrachat · 15,000 prompts`, and the recent rate beside it.

    The label is in the line, so that a cropped screenshot is still right.
    """
    rate = view.attempts
    share = fmt.percent(rate.failed, rate.total) if rate.total else "none:"
    what = " of attempts" if rate.total else " no attempts yet"
    room = cells - LABEL - len(share) - len(what) - 3
    head = (
        label("errors"),
        Span(share, bold=rate.failed > 0),
        Span(f"{what} {glyphs.DOT} {words.label(view, room)}", "dim"),
    )
    tail = (_recent(view), Span(f" in {fmt.coarse(rate.recent_s)}", "dim"))
    wanted = with_recent and rate.recent_total > 0
    return arrange(cells, [Field(head)], [Field(tail, 1)] if wanted else [])


def gauge_bar(view: DatasetView, cells: int) -> Line:
    """The recent error rate as a bar from 0 to 100% of attempts, and both counts in full."""
    rate = view.attempts
    last = Span(f"last {fmt.coarse(rate.recent_s)} ", "dim")
    name = "all sessions" if view.restored_rows else "all"
    overall = f"{name} {fmt.thousands(rate.failed)} of {fmt.plural(rate.total, 'attempt')}"
    if not rate.recent_total:
        none = (Span(" " * LABEL), last, Span("no attempts" if rate.total else "", "dim"))
        return arrange(cells, [Field(none)], [field(overall, "dim", 2)])
    room = 16 if cells >= _WIDE else 8
    filled, _, rest = chart.progress(room, rate.recent_total, rate.recent_failed, 0)
    counts = f" {fmt.thousands(rate.recent_failed)} of {fmt.thousands(rate.recent_total)}"
    start = (Span(" " * LABEL), last, Span(filled, _role(view)), Span(rest, "track"))
    left = [Field((*start, Span(" "), _recent(view), Span(counts, "dim")))]
    return arrange(cells, left, [field(overall, "dim", 2)])


def _recent(view: DatasetView) -> Span:
    rate = view.attempts
    share = fmt.percent(rate.recent_failed, rate.recent_total)
    return Span(f"{share:>5}", _role(view), bold=rate.recent_failed > 0)


def _role(view: DatasetView) -> str:
    rate = view.attempts
    share = rate.recent_failed / rate.recent_total if rate.recent_total else 0.0
    if share >= BAD_SHARE:
        return "bad"
    return "warn" if share >= WARN_SHARE else "text" if share else "dim"


def lines(view: DatasetView, cells: int, count: int, now: float) -> list[Line]:
    """The worst error families in exactly `count` lines, with their evidence if there is room."""
    ranked = words.worst_first(view.errors)
    if not ranked:
        calm = "no errors" if view.attempts.total and not view.attempts.failed else ""
        return _filled([(Span(" " * LABEL), Span(calm, "dim"))], cells, count)
    drawn: list[Line] = []
    for place, error in enumerate(ranked):
        if len(drawn) == count:
            break
        hidden = len(ranked) - place - 1
        drawn += _family(error, cells, count - len(drawn), now, hidden)
    return _filled(drawn, cells, count)


def _filled(drawn: Sequence[Line], cells: int, count: int) -> list[Line]:
    return [exactly(line, cells) for line in [*drawn, *[()] * count][:count]]


def _family(error: ErrorLine, cells: int, count: int, now: float, hidden: int) -> list[Line]:
    """One family in one to three of `count` lines: verdict, evidence, what to do."""
    more = field(f"+{hidden} more" if hidden else "", "dim", 1)
    evidence, action = fmt.safe_text(error.evidence), fmt.safe_text(error.action)
    first = action if error.verdict == "STRUCTURAL" and action else evidence
    head = _verdict(error, now)
    room = cells - line_width(head) - 2
    if fmt.width(first) <= room - (line_width(more.spans) + 2 if hidden and count == 1 else 0):
        drawn = [arrange(cells, [Field((*head, Span(f"  {first}", "dim")))])]
        details = [action] if first is evidence else [evidence]
    elif count == 1:
        short = fmt.clip(first, room - (line_width(more.spans) + 2 if hidden else 0))
        tail = f"  {short}" if fmt.width(short) >= _READABLE else ""
        return [arrange(cells, [Field((*head, Span(tail, "dim")))], [more])]
    else:
        drawn = [arrange(cells, [Field(head)])]
        details = [first, action if first is evidence else evidence]
    drawn += [_detail(part, cells) for text in details for part in _wrapped(text, cells)]
    drawn = drawn[:count]
    if len(drawn) == count and hidden:
        drawn[0] = arrange(cells, [Field(_trimmed(drawn[0]))], [more])
    return drawn


def _trimmed(line: Line) -> Line:
    return line[:-1] if line and not line[-1].text.strip() else line


def _verdict(error: ErrorLine, now: float) -> Line:
    word = words.verdict(error, now)
    loud = word.role in {"bad", "warn"}
    return (
        Span(f"{word.glyph:>{LABEL - 1}} ", word.role, loud),
        Span(words.cause(error)),
        Span(f"  {word.text}", word.role, loud),
    )


def _wrapped(text: str, cells: int) -> list[str]:
    return textwrap.wrap(text, max(_READABLE, cells - LABEL), max_lines=3, placeholder="…")


def _detail(text: str, cells: int) -> Line:
    return (Span(" " * LABEL), Span(fmt.clip(text, cells - LABEL), "dim"))
