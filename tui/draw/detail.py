"""The dataset screen: every section as lines, one below the other or in two columns."""

from __future__ import annotations

from collections.abc import Sequence

from engine import format as fmt
from engine.clock import local_hms
from engine.fleet.merge import FleetSnapshot
from engine.view.snapshot import DatasetView, ErrorLine, Forecast, Snapshot
from tui import glyphs
from tui.draw import dataset, errors, grades, timeline, words
from tui.draw.lists import failures, last_rows, providers, slowest
from tui.draw.paint import Field, Line, Span, arrange, exactly, label, wrap
from tui.draw.table import Column, beside, head, table, text

TWO_COLUMNS = 120
"""Cells from which sections stand in two columns."""
_CHART, _CHART_TALL = 3, 5
_BAR = 24
_PARAGRAPH = 6


def body(snapshot: Snapshot, view: DatasetView, cells: int) -> list[Line]:
    """All sections in `cells`; ages are counted from the snapshot's own time."""
    if cells < TWO_COLUMNS:
        sections = [*_work(snapshot, view, cells, _CHART), *_results(snapshot, view, cells)]
        return [exactly(line, cells) for line in _joined(sections)]
    half = (cells - 3) // 2
    left = _joined(_work(snapshot, view, half, _CHART_TALL))
    right = _joined(_results(snapshot, view, cells - 3 - half))
    return beside(left, right, cells)


def _joined(sections: Sequence[list[Line]]) -> list[Line]:
    lines: list[Line] = []
    for section in sections:
        if section:
            lines += [*([()] if lines else []), *section]
    return lines


def _work(snapshot: Snapshot, view: DatasetView, cells: int, tall: int) -> list[list[Line]]:
    now = words.moment(snapshot)
    return [
        _summary(snapshot, view, cells),
        timeline.full(timeline.of_dataset(snapshot, view), cells, tall),
        _errors(view, cells, now),
        ledgers(view, cells),
        failures(view, cells),
    ]


def _results(snapshot: Snapshot, view: DatasetView, cells: int) -> list[list[Line]]:
    return [
        quality(view, cells),
        latency(view, cells, several=isinstance(snapshot, FleetSnapshot)),
        lengths(view, cells),
        providers(snapshot, cells),
        slowest(view, cells),
        last_rows(view, cells),
    ]


def _summary(snapshot: Snapshot, view: DatasetView, cells: int) -> list[Line]:
    lines = [
        dataset.state_line(view, cells, snapshot.state),
        dataset.prompts_line(view, cells),
        dataset.tokens_line(view, cells),
        dataset.rows_line(view, cells),
    ]
    if view.forecast is not None:
        lines.append(_forecast(view.forecast, view, cells))
    pilot = f"pilot: the first {fmt.plural(view.pilot, 'prompt')}" if view.pilot else ""
    why = " · ".join(part for part in (fmt.safe_text(view.reason), pilot) if part)
    return [*lines, text(why, cells, len(label("").text))] if why else lines


def _forecast(known: Forecast, view: DatasetView, cells: int) -> Line:
    """The estimate as the session began, beside what has been spent since."""
    usd = words.expected_usd(known)
    cost = (Span(usd), Span(f" in all, now {fmt.money(view.cost_usd)}", "dim")) if usd else ()
    time = (Span(words.expected_time(known)), Span(" if it had all slots", "dim"))
    return arrange(cells, [Field((label("estimate"), *cost)), Field(time, 1)])


def _errors(view: DatasetView, cells: int, now: float) -> list[Line]:
    lines = [errors.gauge(view, cells, with_recent=False), errors.gauge_bar(view, cells)]
    for error in words.worst_first(view.errors):
        lines += full_error(error, cells, now)
    return [exactly(line, cells) for line in lines]


def full_error(error: ErrorLine, cells: int, now: float, *, chosen: bool = False) -> list[Line]:
    """One family: verdict, when, the whole evidence, what to do, and the server's own words."""
    word = words.verdict(error, now)
    loud = word.role in {"bad", "warn"}
    span = f"{local_hms(error.first_at)} to {local_hms(error.last_at)}"
    mark = glyphs.CURSOR if chosen else " "
    first = (
        Span(f"{mark} ", "accent", chosen),
        Span(f"{word.glyph} ", word.role, loud),
        Span(words.cause(error), "text", chosen),
        Span(f"  {word.text}", word.role, loud),
    )
    lines = [exactly(first, cells)]
    for name, said, role in (
        ("seen", f"{fmt.plural(error.count, 'attempt')}, {span}", "dim"),
        ("evidence", error.evidence, "dim"),
        ("do", error.action, "text"),
        ("server", error.words, "dim"),
    ):
        lines += _paragraph(name, said, role, cells)
    return lines


def _paragraph(name: str, said: str, role: str, cells: int) -> list[Line]:
    """Labelled and wrapped; nothing where nothing is said."""
    parts = wrap(fmt.safe_text(said).strip(), max(12, cells - 14))[:_PARAGRAPH]
    return [
        exactly((Span(f"{name if place == 0 else '':>12}  ", "dim"), Span(part, role)), cells)
        for place, part in enumerate(parts)
    ]


def ledgers(view: DatasetView, cells: int) -> list[Line]:
    """Prompts and attempts, each with what they sum to; no number is in both."""
    rate = view.attempts
    prompts = [
        head("Prompts", "each is counted once"),
        *_numbers(
            [
                ("ok", view.ok, "text"),
                ("failed", view.failed, "bad" if view.failed else "text"),
                ("invalid", view.invalid, "warn" if view.invalid else "text"),
                ("in flight", view.in_flight, "text"),
                ("left", view.left, "text"),
                ("manifest's total", view.prompts, "text"),
            ]
        ),
    ]
    attempts = [
        head("Attempts", f"requests that ended{', all sessions' if view.restored_rows else ''}"),
        *_numbers(
            [
                ("became rows", rate.total - rate.failed, "text"),
                ("failed", rate.failed, "text"),
                ("all that ended", rate.total, "text"),
                (f"failed, last {fmt.coarse(rate.recent_s)}", rate.recent_failed, "text"),
                (f"ended, last {fmt.coarse(rate.recent_s)}", rate.recent_total, "text"),
                ("prompts that wait to retry", view.waiting, "text"),
            ]
        ),
    ]
    return beside(prompts, attempts, cells)


def _numbers(items: Sequence[tuple[str, int, str]]) -> list[Line]:
    shown = [(name, fmt.thousands(number), role) for name, number, role in items]
    wide = max(fmt.width(number) for _, number, _ in shown)
    return [(Span(f"  {number:>{wide}} ", role), Span(name, "dim")) for name, number, role in shown]


def quality(view: DatasetView, cells: int) -> list[Line]:
    """Grades with what each claims, flags, and finish reasons."""
    lines: list[Line] = [head("Rows", fmt.thousands(view.rows))]
    found = grades.counts(view)
    if found:
        columns = (Column("rows", right=True), Column("grade"), Column("claims", grow=True))
        rows = [
            (
                Span(fmt.thousands(count), grade.role, grade.role == "warn"),
                Span(grade.name, grade.role),
                Span(grade.claim, "dim"),
            )
            for grade, count in found
        ]
        lines += table(columns, rows, cells)
    flags = [f"{fmt.thousands(count)} {name}" for name, count in grades.flags(view)]
    reasons = [
        f"{fmt.thousands(count)} {fmt.safe_text(name, 24)}"
        for name, count in sorted(view.finish_reasons.items(), key=lambda item: -item[1])
    ]
    lines.append(_listed("flags", flags, "warn", cells))
    lines.append(_listed("finish", reasons, "text", cells))
    tokens = view.exportable_tokens
    known = "?" if tokens is None else fmt.thousands(tokens)
    exportable = f"{known} tokens: engine or matched, no flag"
    lines.append(_listed("export", [exportable], "text", cells))
    return lines


def _listed(name: str, parts: Sequence[str], role: str, cells: int) -> Line:
    shown = "  ".join(parts)
    spans = (Span(f"  {name:<7}", "dim"), Span(shown or "none", role if shown else "dim"))
    return exactly(spans, cells)


def latency(view: DatasetView, cells: int, *, several: bool = False) -> list[Line]:
    """Seconds from sending to the reply: the median, and how slow the slow ones are.

    `several` workers cannot be averaged: the slowest one's stand for all.
    """
    known = view.latency
    if known.p50 is None:
        return []
    parts = [(known.p50, "half"), (known.p90, "90%"), (known.p99, "99%")]
    said = [f"{share} within {words.seconds(span)}" for span, share in parts if span is not None]
    title = "Latency of the slowest worker" if several else "Latency"
    return [exactly(head(title, f" {glyphs.DOT} ".join(said)), cells)]


def lengths(view: DatasetView, cells: int) -> list[Line]:
    """How many rows have how many completion tokens, in powers of two."""
    if not view.lengths:
        return []
    most = max(count for _, count in view.lengths)
    total = sum(count for _, count in view.lengths)
    wide = len(fmt.thousands(most))
    room = max(4, min(_BAR, cells - wide - 28))
    lines: list[Line] = [head("Length", "completion tokens of rows")]
    for bound, count in view.lengths:
        filled = max(1, round(count / most * room)) if count else 0
        lines.append(
            (
                Span(f"{fmt.thousands(bound // 2 + 1):>8} to {fmt.thousands(bound):>7} ", "dim"),
                Span(glyphs.FULL * filled, "bar"),
                Span(" " * (room - filled)),
                Span(f" {fmt.thousands(count):>{wide}}"),
                Span(f" {fmt.percent(count, total):>5}", "dim"),
            )
        )
    return [exactly(line, cells) for line in lines]
