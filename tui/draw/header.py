"""The run's header: state, how far, how fast, in flight, money; one, two, four or more lines."""

from __future__ import annotations

from typing import NamedTuple

from engine import format as fmt
from engine.snapshot import DatasetView, Snapshot
from tui import glyphs
from tui.draw import chart, words
from tui.draw.paint import LABEL, Field, Line, Span, arrange, exactly, field, label

STALE_S = 5.0
"""Seconds without a heartbeat that are worth a colour."""

FULL = 4
"""Lines from which the header has a line for each of its themes."""
_FRESH_S = 2
"""A heartbeat's age below this stands still, so that a healthy run does not flicker."""
_ROOMY, _NOTED = 100, 70
"""Cells from which the model's vendor, and the notes beside the chart, have room."""


class Totals(NamedTuple):
    """The prompts ledger summed over all datasets."""

    prompts: int
    finished: int
    in_flight: int


def totals(datasets: tuple[DatasetView, ...]) -> Totals:
    """Sums over the datasets of a run."""
    return Totals(
        sum(view.prompts for view in datasets),
        sum(words.done(view) for view in datasets),
        sum(view.in_flight for view in datasets),
    )


def header(snapshot: Snapshot, cells: int, rows: int, age_s: float) -> list[Line]:
    """The header in `rows` lines (1, 2, or from 4 on); `age_s` is the heartbeat's age."""
    if rows <= 1:
        return [_one(snapshot, cells)]
    first = _title(snapshot, cells, age_s)
    if rows < FULL:
        return [first, _brief(snapshot, cells)]
    chart_rows = max(1, rows - 3)
    return [
        first,
        _progress(snapshot, cells),
        *_rate(snapshot, cells, chart_rows),
        _flow(snapshot, cells),
    ]


def _one(snapshot: Snapshot, cells: int) -> Line:
    word = words.run_state(snapshot)
    total = totals(snapshot.datasets)
    left = [
        field(str(word), word.role, bold=True),
        field(fmt.percent(total.finished, total.prompts), bold=True),
        field(fmt.safe_text(snapshot.run, 30), rank=2),
    ]
    return arrange(cells, left, [field(fmt.money(snapshot.cost_usd), rank=1)], gap=" ")


def _brief(snapshot: Snapshot, cells: int) -> Line:
    total = totals(snapshot.datasets)
    count = f"{fmt.thousands(total.finished)} of {fmt.thousands(total.prompts)} prompts"
    flying = f"{fmt.thousands(snapshot.in_flight)} in flight"
    left = [
        field(fmt.percent(total.finished, total.prompts), bold=True),
        field(count, rank=1),
        field(flying, rank=3),
        field(fmt.rate(snapshot.rows_per_s), rank=2),
    ]
    return arrange(cells, left, [field(fmt.money(snapshot.cost_usd), bold=True)])


def _title(snapshot: Snapshot, cells: int, age_s: float) -> Line:
    word = words.run_state(snapshot)
    stale = age_s >= STALE_S and snapshot.exit_code is None
    model = fmt.safe_text(snapshot.model, 48)
    roomy = cells >= _ROOMY
    beat = f"<{_FRESH_S}s" if age_s < _FRESH_S else fmt.duration(age_s)
    left = [
        field(fmt.pad(str(word), LABEL), word.role, bold=True),
        field(fmt.safe_text(snapshot.run, 40), bold=True),
        field(model if roomy else model.rsplit("/", 1)[-1], rank=3),
        field(fmt.safe_text(snapshot.endpoint, 40), "dim", rank=4),
    ]
    right = [
        Field((Span("elapsed ", "dim"), Span(f"{fmt.duration(snapshot.elapsed_s):>7}")), 2),
        Field(
            (Span("heartbeat ", "dim"), Span(f"{beat:>3}", "bad" if stale else "text", stale)), 1
        ),
    ]
    return arrange(cells, left, right)


def _progress(snapshot: Snapshot, cells: int) -> Line:
    total = totals(snapshot.datasets)
    whole = fmt.thousands(total.prompts)
    count = f"{fmt.thousands(total.finished):>{len(whole)}} of {whole}"
    right = [
        field(f"{fmt.percent(total.finished, total.prompts):>4}", bold=True),
        field(f"{count} in {fmt.plural(len(snapshot.datasets), 'dataset')}", rank=1),
        *_eta(snapshot),
    ]
    used = sum(fmt.width(span.text) for item in right for span in item.spans) + 2 * len(right)
    room = max(4, cells - LABEL - used)
    done, flying, rest = chart.progress(room, total.prompts, total.finished, total.in_flight)
    bar = (Span(done, "bar"), Span(flying, "bar"), Span(rest, "track"))
    return arrange(cells, [Field((label("prompts"), *bar), 3)], right)


def _eta(snapshot: Snapshot) -> list[Field]:
    if snapshot.exit_code is not None:
        return []
    return [Field((Span("ETA ", "dim"), Span(f"{fmt.duration(snapshot.eta_s):>7}")), 2)]


def _rate(snapshot: Snapshot, cells: int, rows: int) -> list[Line]:
    now = Span(f"{fmt.rate(snapshot.rows_per_s):>7} ", bold=True)
    tail = 34 if cells >= _NOTED else 0
    room = max(1, cells - LABEL - 8 - tail)
    shown = chart.columns(snapshot.rate, room)
    drawn = chart.chart(shown, room, rows)
    speed = f"{fmt.compact(snapshot.completion_tokens_per_s)} tok/s"
    note = f" max {fmt.rate(shown.maximum)} in {fmt.coarse(shown.span)}" if shown.values else ""
    lines = []
    for place, bars in enumerate(drawn):
        last = place == rows - 1
        head = (label("rate"), now) if last else (Span(" " * (LABEL + 8)),)
        end = (Span(fmt.pad(note, 21), "dim"), Span(f"{speed:>13}")) if last and tail else ()
        lines.append(exactly((*head, Span(bars, "bar"), *end), cells))
    return lines


def _flow(snapshot: Snapshot, cells: int) -> Line:
    limit, ceiling = snapshot.limit, snapshot.limit_ceiling
    digits = len(fmt.thousands(ceiling))
    left = [
        Field(
            (
                label("in flight"),
                Span(f"{fmt.thousands(snapshot.in_flight):>{digits}}", bold=True),
                Span(" of limit ", "dim"),
                Span(f"{fmt.thousands(limit):>{digits}}", "text" if limit >= ceiling else "warn"),
            )
        ),
        Field((Span("ceiling ", "dim"), Span(fmt.thousands(ceiling))), 1),
        field(fmt.safe_text(snapshot.limit_reason, 60), "dim", 2),
    ]
    return arrange(cells, left, _money(snapshot), gap=f" {glyphs.DOT} ")


def _money(snapshot: Snapshot) -> list[Field]:
    cost = fmt.money(snapshot.cost_usd)
    unknown = snapshot.cost_unknown_attempts
    more = (Span(f" + {fmt.thousands(unknown)} unknown", "warn"),) if unknown else ()
    fields = [Field((Span("cost ", "dim"), Span(cost, bold=True), *more))]
    if snapshot.max_cost_usd is not None:
        known = snapshot.cost_usd is not None
        share = fmt.percent(snapshot.cost_usd or 0.0, snapshot.max_cost_usd) if known else ""
        cap = f" of {fmt.money(snapshot.max_cost_usd)} {share:>4}"
        fields[0] = Field((*fields[0].spans, Span(cap, "dim")))
    if snapshot.projected_cost_usd is not None and snapshot.exit_code is None:
        end = f"{fmt.money(snapshot.projected_cost_usd)} at the end"
        fields.append(field(end, "dim", 3))
    return fields
