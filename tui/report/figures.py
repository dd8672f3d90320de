"""The report's charts over time, from the counters of all sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

from engine import format as fmt
from engine.past.replay import held_spells
from engine.past.tape import Session, Tape
from engine.past.tracks import Counter, families, value_at
from engine.view.snapshot import Snapshot, Spell
from tui.draw import words
from tui.report import when
from tui.report.axis import Stretch, TimeAxis
from tui.report.chart import COLOURS, Area, Chart, Flag, Points, Steps
from tui.report.markup import Child, Element, Outside, el

_FLAGS_MOST = 60
_POINTS_MOST = 500


class Figures:
    """Draws each chart as a `figure` with its caption and legend."""

    def __init__(self, tape: Tape, last: Snapshot, outside: Outside) -> None:
        self._tape = tape
        self._last = last
        self._outside = outside
        self._axis = TimeAxis(tape.sessions)
        self._labels = {view.name: words.label(view) for view in last.datasets}

    def throughput(self) -> Element:
        """Rows per second of each dataset, with held spans and operators' marks."""
        areas = self._rates()
        chart = Chart(self._axis, "rows per second", most=_peak(areas), height=190, show=fmt.rate)
        chart.spans(self._held())
        chart.stack(areas)
        chart.flags(self._flags())
        caption = f"Rows per second, means of {fmt.duration(self._axis.bucket_s)}"
        legend = self._legend(areas, _rows)
        return _figure(caption, chart, legend, self._marks())

    def limit(self) -> Element:
        """Requests in flight under the limit that the engine kept."""
        sessions = self._tape.sessions
        limit = [_points(s, s.tracks.limit.__getitem__) for s in sessions]
        flying = [_points(s, s.tracks.in_flight.__getitem__) for s in sessions]
        most = max((value for points in limit + flying for _, value in points), default=1)
        chart = Chart(self._axis, "requests in flight and limit", most=most, show=_count)
        chart.spans(self._held())
        chart.steps(Steps(limit, "limit"))
        chart.steps(Steps(flying, "flying"))
        chart.flags(self._flags())
        keys = [_key("line limit", "limit"), _key("line flying", "in flight")]
        return _figure("Requests in flight and the limit on them", chart, keys)

    def errors(self) -> Element | None:
        """Failed attempts by family, over all datasets; None where there were none."""
        areas = self._by_family()
        if not areas:
            return None
        chart = Chart(self._axis, "failed attempts by family", most=_peak(areas), show=_count)
        chart.spans(self._held())
        chart.stack(areas)
        chart.flags(self._flags())
        bucket = fmt.duration(self._axis.bucket_s)
        legend = self._legend(areas, lambda area: fmt.thousands(round(area.total)))
        every = "all datasets together; the table below tells them apart"
        return _figure(f"Failed attempts per {bucket} by family ({every})", chart, legend)

    def cost(self) -> Element:
        """What the run had cost at each moment, and the cap."""
        sessions, cap = self._tape.sessions, self._last.max_cost_usd
        points = [_points(s, partial(_cost, s)) for s in sessions]
        spent = max((value for each in points for _, value in each), default=0.0)
        # a cap far above would flatten the course: it is named in words then
        near = cap is not None and cap <= spent * 4
        most = max(spent, cap or 0.0) if near else spent
        chart = Chart(self._axis, "cost in US dollars", most=most * 1.05, show=fmt.money)
        chart.spans(self._held())
        chart.steps(Steps(points, "cost"))
        if near and cap is not None:
            chart.cap(cap, f"cap {fmt.money(cap)}")
        known = fmt.money(self._last.cost_usd)
        of = "no cap" if cap is None else f"cap {fmt.money(cap)}, {fmt.percent(spent, cap)} used"
        return _figure(f"Cost of the whole run over time: {known}; {of}", chart, [])

    # the data

    def _rates(self) -> list[Area]:
        """Rows per second of each dataset."""
        areas = []
        for place, view in enumerate(self._last.datasets):
            values = []
            for session in self._tape.sessions:
                tracks = session.tracks.datasets.get(view.name)
                gains = self._gains(session, [tracks.rows] if tracks else [])
                spans = [
                    max(1.0, end - begin) for begin, end in pairwise(self._axis.edges(session))
                ]
                values.append([gain / span for gain, span in zip(gains, spans, strict=True)])
            areas.append(Area(self._labels[view.name], values, place % COLOURS))
        return areas

    def _by_family(self) -> list[Area]:
        names: dict[str, None] = {}
        found = [families(session.tracks.datasets.values()) for session in self._tape.sessions]
        for each in found:
            names |= dict.fromkeys(each)
        areas = []
        for name in names:
            values = [
                self._gains(session, each.get(name, []))
                for session, each in zip(self._tape.sessions, found, strict=True)
            ]
            areas.append(Area(self._outside.text(name, 40), values, 0))
        return _coloured([area for area in areas if area.total >= 1])

    def _gains(self, session: Session, counters: Sequence[Counter]) -> list[float]:
        """What the counters gained in each bucket."""
        edges, at = self._axis.edges(session), session.tracks.at
        sums = [sum(value_at(at, counter, edge) for counter in counters) for edge in edges]
        return [max(0.0, after - before) for before, after in pairwise(sums)]

    # what stands on all charts

    def _held(self) -> list[tuple[float, float, str]]:
        return [
            (stretch.at(spell.start), stretch.at(spell.end or stretch.session.end), spell.state)
            for stretch in self._axis.stretches
            for spell in self._spells(stretch)
        ]

    def _spells(self, stretch: Stretch) -> tuple[Spell, ...]:
        return held_spells(self._tape, stretch.session, None, stretch.session.end)

    def _flags(self) -> list[Flag]:
        flags = []
        for number, mark in enumerate(self._tape.marks[:_FLAGS_MOST], 1):
            place = self._stretch_at(mark.at)
            title = f"{number}: {when.stamp(mark.at)} {self._outside.text(mark.text, 120)}"
            flags.append(Flag(place.at(mark.at), str(number), title))
        return flags

    def _stretch_at(self, moment: float) -> Stretch:
        stretches = self._axis.stretches
        begun = [stretch for stretch in stretches if stretch.session.start <= moment]
        return begun[-1] if begun else stretches[0]

    def _marks(self) -> Child:
        """The orders in words, by the numbers that stand above the charts."""
        marks = self._tape.marks[:_FLAGS_MOST]
        rest = len(self._tape.marks) - len(marks)
        if not marks:
            return None
        items = [
            el("li", f"{when.stamp(mark.at)} ", self._outside(mark.text, 160)) for mark in marks
        ]
        more = el("p", f"{fmt.plural(rest, 'more order')}: see the journal.") if rest else None
        return [el("p", "Operators' orders, numbered above the charts:"), el("ol", items), more]

    def _legend(self, areas: list[Area], show: Callable[[Area], str]) -> list[Element]:
        return [_key(f"band s{area.colour}", f"{area.name}: {show(area)}") for area in areas]


def _coloured(areas: list[Area]) -> list[Area]:
    """The largest families in colours of their own, the others together."""
    ranked = sorted(areas, key=lambda area: -area.total)
    kept, rest = ranked[: COLOURS - 1], ranked[COLOURS - 1 :]
    if len(rest) == 1:
        kept, rest = ranked, []
    found = [Area(area.name, area.values, place) for place, area in enumerate(kept)]
    if rest:
        values = [
            [sum(column) for column in zip(*sessions, strict=True)]
            for sessions in zip(*(area.values for area in rest), strict=True)
        ]
        found.append(Area(f"{len(rest)} other families", values, COLOURS - 1))
    return found


def _figure(caption: str, chart: Chart, legend: Sequence[Element], *more: Child) -> Element:
    keys = el("div", legend, class_="legend") if legend else None
    return el("figure", el("figcaption", caption), chart.svg(), keys, more)


def _key(style: str, text: str) -> Element:
    shape = "M0 5h14" if style.startswith("line") else "M0 0h14v10h-14z"
    box = el("svg", el("path", d=shape, class_=style), viewBox="0 0 14 10", class_="key")
    return el("span", box, text)


def _peak(areas: Sequence[Area]) -> float:
    """The highest the stack gets."""
    sums = [
        sum(column)
        for sessions in zip(*(area.values for area in areas), strict=True)
        for column in zip(*sessions, strict=True)
    ]
    return max(sums, default=0.0)


def _points(session: Session, value: Callable[[int], float]) -> Points:
    """A value at the session's points; of very many points a part, with the last one."""
    at = session.tracks.at
    step = max(1, len(at) // _POINTS_MOST)
    places = sorted({*range(0, len(at), step), len(at) - 1})
    return [(at[place], value(place)) for place in places]


def _cost(session: Session, place: int) -> float:
    return sum(tracks.cost[place] for tracks in session.tracks.datasets.values())


def _rows(area: Area) -> str:
    return f"up to {fmt.rate(max((max(v, default=0.0) for v in area.values), default=0.0))}"


def _count(value: float) -> str:
    return fmt.thousands(round(value)) if value >= 1 or value == 0 else f"{value:g}"
