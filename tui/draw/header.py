"""The run's header: state, how far, how fast, in flight, money; one, two, four or more lines."""

from __future__ import annotations

from typing import NamedTuple

from engine import format as fmt
from engine.view.snapshot import DatasetView, Snapshot
from tui import glyphs
from tui.draw import chart, timeline, words
from tui.draw.paint import LABEL, Field, Line, Span, arrange, field, label, line_width

STALE_S = 5.0
"""Seconds without a heartbeat that are worth a colour."""

FULL, AXIS = 4, 8
"""Lines from which the header has a line for each of its themes, and the whole time axis."""
_FRESH_S = 2
"""A heartbeat's age below this stands still, so that a healthy run does not flicker."""
_LEFT_OUT = ("skipped", "budget")
"""States of datasets whose prompts left will not be asked."""
_BAR, _BAR_LEAST = 16, 6
"""Cells of the bar before the estimate takes room from it, and before anything does."""
_GAP = f" {glyphs.DOT} "
_ROOMY, _NARROW = 100, 40
"""Cells from which the model's vendor has room, and the cost beside the state."""


class Totals(NamedTuple):
    """The prompts ledger summed over all datasets."""

    prompts: int
    """Without what is left out: this is what can be reached."""
    finished: int
    in_flight: int
    skipped: int
    """Prompts left of datasets that were skipped."""
    beyond: int
    """Prompts left of datasets that have reached their token budget."""

    @property
    def left_out(self) -> str:
        """` + 5,000 skipped + 812 past budget`: what the sum of all prompts has beyond it."""
        parts = ((self.skipped, "skipped"), (self.beyond, "past budget"))
        return "".join(f" + {fmt.thousands(count)} {word}" for count, word in parts if count)


def totals(datasets: tuple[DatasetView, ...]) -> Totals:
    """Sums over the datasets of a run."""
    left = {state: sum(v.left for v in datasets if v.state == state) for state in _LEFT_OUT}
    return Totals(
        sum(view.prompts for view in datasets) - sum(left.values()),
        sum(words.done(view) for view in datasets),
        sum(view.in_flight for view in datasets),
        left["skipped"],
        left["budget"],
    )


def header(snapshot: Snapshot, cells: int, rows: int, age_s: float) -> list[Line]:
    """The header in `rows` lines (1, 2, 4, 5, or from 8 on); `age_s` is the heartbeat's age.

    With 5 lines the time axis has two, from 8 on it is whole.
    """
    if rows <= 1:
        return [_one(snapshot, cells)]
    first = _title(snapshot, cells, age_s)
    if rows < FULL:
        return [first, _brief(snapshot, cells)]
    track = timeline.of_run(snapshot)
    if rows >= AXIS:
        shown = timeline.full(track, cells, rows - 3 - timeline.BELOW)
    else:
        shown = timeline.brief(track, cells)[: rows - 3]
    return [first, _progress(snapshot, cells), *shown, _flow(snapshot, cells)]


def _one(snapshot: Snapshot, cells: int) -> Line:
    word = words.run_state(snapshot)
    total = totals(snapshot.datasets)
    count = f"{fmt.thousands(total.finished)} of {fmt.plural(total.prompts, 'prompt')}"
    left = [
        field(str(word), word.role, bold=True),
        field(fmt.percent(total.finished, total.prompts), bold=True),
        field(count + total.left_out, rank=1),
        field(fmt.safe_text(snapshot.run, 30), rank=2),
    ]
    cap = snapshot.max_cost_usd
    spent = [Span(fmt.money(snapshot.cost_usd), bold=True)]
    spent += [Span(f" of {fmt.money(cap)}", "dim")] if cap is not None else []
    flying, speed = _pace(snapshot)
    right = [
        field(flying, rank=5),
        field(speed, rank=4),
        *(item._replace(rank=3) for item in _eta(snapshot)),
        Field(tuple(spent), 0 if cells >= _NARROW else 1),
    ]
    return arrange(cells, left, right, gap="  " if cells >= _ROOMY else " ")


def _pace(snapshot: Snapshot) -> tuple[str, str]:
    """What is in flight and how fast it comes back; an ended run has neither."""
    if snapshot.exit_code is not None:
        return "", ""
    speed = fmt.rate(snapshot.rows_per_s).removesuffix("/s")
    return f"{fmt.thousands(snapshot.in_flight)} in flight", f"{speed} rows/s"


def _brief(snapshot: Snapshot, cells: int) -> Line:
    total = totals(snapshot.datasets)
    count = f"{fmt.thousands(total.finished)} of {fmt.plural(total.prompts, 'prompt')}"
    count += total.left_out
    flying, speed = _pace(snapshot)
    left = [
        field(fmt.percent(total.finished, total.prompts), bold=True),
        field(count, rank=1),
        field(flying, rank=3),
        field(speed, rank=2),
    ]
    return arrange(cells, left, [_cost(snapshot)])


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
    among = Span(total.left_out, "warn")
    if not total.left_out:
        among = Span(f" in {fmt.plural(len(snapshot.datasets), 'dataset')}")
    right = [
        field(f"{fmt.percent(total.finished, total.prompts):>4}", bold=True),
        Field((Span(count), among), 1),
        *_eta(snapshot),
    ]
    right = _fitted([*right, *_expected_time(snapshot)], cells - LABEL - _BAR)
    right = _fitted(right, cells - LABEL - _BAR_LEAST, above=0)
    used = sum(fmt.width(span.text) for item in right for span in item.spans) + 2 * len(right)
    room = max(4, cells - LABEL - used)
    done, flying, rest = chart.progress(room, total.prompts, total.finished, total.in_flight)
    bar = (Span(done, "bar"), Span(flying, "bar"), Span(rest, "track"))
    return arrange(cells, [Field((label("prompts"), *bar), 3)], right)


def _fitted(fields: list[Field], cells: int, above: int = 2) -> list[Field]:
    """Without the fields of the highest ranks (above that one), while there is too little room."""
    while fields and sum(line_width(item.spans) + 2 for item in fields) > cells:
        worst = max(fields, key=lambda item: item.rank)
        if worst.rank <= above:
            break
        fields = [item for item in fields if item is not worst]
    return fields


def _eta(snapshot: Snapshot) -> list[Field]:
    if snapshot.exit_code is not None:
        return []
    eta = f"{fmt.duration(snapshot.eta_s):>7}"
    if snapshot.ends_by == "dollars":
        return [Field((Span("ETA ", "dim"), Span(f"{eta} by dollars", "warn")), 2)]
    return [Field((Span("ETA ", "dim"), Span(eta)), 2)]


def _expected_time(snapshot: Snapshot) -> list[Field]:
    known = snapshot.forecast
    said = f"est. total {words.expected_time(known)}" if known else ""
    return [field(said, "dim", 5)]


def _flow(snapshot: Snapshot, cells: int) -> Line:
    limit, ceiling = snapshot.limit, snapshot.limit_ceiling
    digits = len(fmt.thousands(ceiling))
    room = cells - 2
    left = [
        Field(
            (
                label("in flight"),
                Span(f"{fmt.thousands(snapshot.in_flight):>{digits}}", bold=True),
                Span(" of limit ", "dim"),
                Span(f"{fmt.thousands(limit):>{digits}}", "text" if limit >= ceiling else "warn"),
            )
        ),
        Field((Span("ceiling ", "dim"), Span(fmt.thousands(ceiling))), 2),
        field(fmt.safe_text(snapshot.limit_reason, 60), "dim", 3),
    ]
    return arrange(cells, left, _money(snapshot, room - line_width(left[0].spans)), gap=_GAP)


def _cost(snapshot: Snapshot) -> Field:
    """What is spent, of what may be."""
    spans = [Span("cost ", "dim"), Span(fmt.money(snapshot.cost_usd), bold=True)]
    if snapshot.max_cost_usd is not None:
        known = snapshot.cost_usd is not None
        share = fmt.percent(snapshot.cost_usd or 0.0, snapshot.max_cost_usd)
        share = f" {share:>4}" if known else ""
        spans.append(Span(f" of {fmt.money(snapshot.max_cost_usd)}{share}", "dim"))
    return Field(tuple(spans))


def _money(snapshot: Snapshot, room: int) -> list[Field]:
    fields = [_with_unknown(_cost(snapshot), snapshot.cost_unknown_attempts, room)]
    if snapshot.projected_cost_usd is not None and snapshot.exit_code is None:
        projected, cap = snapshot.projected_cost_usd, snapshot.max_cost_usd
        if cap is not None and projected > cap:  # the cap ends the run before its prompts do
            fields.append(field(f"{fmt.money(projected)} needed", "warn", 2))
        else:
            fields.append(field(f"{fmt.money(projected)} at the end", "dim", 4))
    if snapshot.forecast is not None and (said := words.expected_usd(snapshot.forecast)):
        fields.append(field(f"est. {said}", "dim", 5))
    return fields


def _with_unknown(cost: Field, unknown: int, room: int) -> Field:
    """The cost, and in the longest words that fit how many attempts it does not hold."""
    if not unknown:
        return cost
    said = (
        f" + {fmt.plural(unknown, 'attempt')} of unknown cost",
        f" + {fmt.thousands(unknown)} of unknown cost",
        f" + {fmt.thousands(unknown)} unpriced",
    )
    left = room - line_width(cost.spans) - len(_GAP)
    fitting = next((text for text in said if len(text) <= left), said[-1])
    return Field((*cost.spans, Span(fitting, "warn")))
