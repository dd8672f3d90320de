"""Charts as inline SVG: bands, bars and steps on the shared time axis, from zero; no scripts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tui.report.axis import LEFT, RIGHT, WIDTH, TimeAxis
from tui.report.markup import Child, Element, el

_TOP, _BOTTOM = 12.0, 22.0
_LABEL_ROOM = 7.0
COLOURS = 8
"""Series colours in the style sheet, s0 to s7."""
Points = list[tuple[float, float]]
"""(epoch seconds, value)."""


@dataclass(frozen=True, slots=True)
class Area:
    """One band of a stack: per session its value in each bucket of the axis."""

    name: str
    values: list[list[float]]
    colour: int

    @property
    def total(self) -> float:
        """The sum of all values."""
        return sum(map(sum, self.values))


@dataclass(frozen=True, slots=True)
class Steps:
    """A level that holds until the next point, one list per session."""

    points: list[Points]
    style: str


@dataclass(frozen=True, slots=True)
class Flag:
    """A numbered place above the chart: what an operator ordered."""

    x: float
    text: str
    title: str


class Chart:
    """One chart under way: add what belongs on it, then take `svg()`."""

    def __init__(
        self,
        axis: TimeAxis,
        title: str,
        *,
        most: float,
        height: float = 150.0,
        show: Callable[[float], str],
    ) -> None:
        """`most` is the highest value; `show` puts a value of the vertical axis into words."""
        self._axis = axis
        self._height = height
        self._top = nice(most)
        self._show = show
        self._parts: list[Child] = []
        self._title = title

    def y(self, value: float) -> float:
        """The place of a value."""
        room = self._height - _TOP - _BOTTOM
        return _TOP + room * (1 - min(value, self._top) / self._top)

    def stack(self, areas: Sequence[Area]) -> None:
        """Bands on top of each other, the first one at the ground."""
        ground = [[0.0] * len(values) for values in areas[0].values] if areas else []
        for area in areas:
            lifted = [
                [low + value for low, value in zip(lows, values, strict=True)]
                for lows, values in zip(ground, area.values, strict=True)
            ]
            path = "".join(
                self._band(place, lows, highs)
                for place, (lows, highs) in enumerate(zip(ground, lifted, strict=True))
            )
            ground = lifted
            if path:
                title = el("title", area.name)
                self._parts.append(el("path", title, d=path, class_=f"band s{area.colour}"))

    def _band(self, place: int, lows: list[float], highs: list[float]) -> str:
        """Bars of one session that have a height, as one path."""
        stretch = self._axis.stretches[place]
        edges = self._axis.edges(stretch.session)
        bars = []
        for low, high, begin, end in zip(lows, highs, edges, edges[1:], strict=False):
            if high > low:
                x, wide = stretch.at(begin), max(0.6, stretch.at(end) - stretch.at(begin))
                y, tall = self.y(high), self.y(low) - self.y(high)
                bars.append(f"M{_n(x)} {_n(y)}h{_n(wide)}v{_n(tall)}h{_n(-wide)}z")
        return "".join(bars)

    def steps(self, steps: Steps) -> None:
        """A line that goes up and down at right angles."""
        for stretch, points in zip(self._axis.stretches, steps.points, strict=True):
            if not points:
                continue
            parts, last = [f"M{_n(stretch.at(points[0][0]))} {_n(self.y(points[0][1]))}"], None
            for moment, value in points[1:]:
                place = (_n(stretch.at(moment)), _n(self.y(value)))
                if place != last:
                    parts.append(f"H{place[0]}V{place[1]}")
                last = place
            self._parts.append(el("path", d="".join(parts), class_=f"line {steps.style}"))

    def cap(self, value: float, text: str) -> None:
        """A dashed line across, with its words."""
        y = _n(self.y(value))
        self._parts.append(el("path", d=f"M{LEFT} {y}H{WIDTH - RIGHT}", class_="cap"))
        words = el("text", text, x=WIDTH - RIGHT - 4, y=float(y) + 12, text_anchor="end")
        self._parts.append(words)

    def spans(self, spans: Sequence[tuple[float, float, str]]) -> None:
        """Spans (from x, to x, word) in which work was held."""
        for left, right, word in spans:
            box = {"x": _n(left), "y": _TOP, "width": _n(max(1.0, right - left))}
            tall = self._height - _TOP - _BOTTOM
            self._parts.append(el("rect", el("title", word), **box, height=tall, class_="held"))

    def flags(self, flags: Sequence[Flag]) -> None:
        """Numbered lines from top to ground; what would hide the one before shares its label."""
        last = -math.inf
        for flag in flags:
            ground = self._height - _BOTTOM
            path = f"M{_n(flag.x)} {_TOP}V{ground}"
            self._parts.append(el("path", el("title", flag.title), d=path, class_="mark"))
            if flag.x - last >= 2 * _LABEL_ROOM:
                words = el("text", flag.text, x=_n(flag.x), y=_TOP - 3, text_anchor="middle")
                self._parts.append(words)
                last = flag.x

    def svg(self) -> Element:
        """The chart with its axes."""
        return el(
            "svg",
            el("title", self._title),
            self._grid(),
            self._parts,
            self._times(),
            viewBox=f"0 0 {WIDTH:.0f} {self._height:.0f}",
            role="img",
            class_="chart",
        )

    def _grid(self) -> list[Element]:
        lines: list[Element] = []
        for share in (0.0, 0.5, 1.0):
            value = self._top * share
            y = _n(self.y(value))
            lines.append(el("path", d=f"M{LEFT} {y}H{WIDTH - RIGHT}", class_="grid"))
            text = self._show(value)
            lines.append(el("text", text, x=LEFT - 6, y=float(y) + 4, text_anchor="end"))
        return lines

    def _times(self) -> list[Element]:
        ground = self._height - _BOTTOM
        marks: list[Element] = []
        for left, right, _ in self._axis.breaks():
            box = {"x": _n(left), "y": _TOP, "width": _n(right - left), "height": ground - _TOP}
            marks.append(el("rect", **box, class_="gap"))
        for tick in self._axis.ticks():
            marks.append(el("path", d=f"M{_n(tick.x)} {ground}v4", class_="grid"))
            edge = tick.x > WIDTH - RIGHT - 40
            anchor = "end" if edge else "middle"
            marks.append(el("text", tick.text, x=_n(tick.x), y=ground + 16, text_anchor=anchor))
        return marks


def histogram(bars: Sequence[tuple[str, int]], title: str) -> Element:
    """A few labelled bars with their counts."""
    most = max((count for _, count in bars), default=0) or 1
    wide, tall = 46.0, 96.0
    parts: list[Child] = [el("title", title)]
    for place, (name, count) in enumerate(bars):
        height = max(1.0, count / most * tall) if count else 0.0
        x, middle = place * wide + 4, place * wide + wide / 2
        box = {"x": _n(x), "y": _n(14 + tall - height), "width": wide - 8, "height": _n(height)}
        parts.append(el("rect", **box, class_="band s0"))
        y = _n(10 + tall - height)
        parts.append(el("text", f"{count:,}", x=_n(middle), y=y, text_anchor="middle"))
        parts.append(el("text", name, x=_n(middle), y=_n(tall + 28), text_anchor="middle"))
    across = len(bars) * wide
    size = {"viewBox": f"0 0 {across:.0f} {tall + 34:.0f}", "style": f"max-width:{across:.0f}px"}
    return el("svg", parts, **size, role="img", class_="chart small")


def nice(most: float) -> float:
    """The smallest 1, 2, 2.5, 5 or 10 times a power of ten that is not below `most`."""
    if most <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(most))
    return next(power * step for step in (1.0, 2.0, 2.5, 5.0, 10.0) if power * step >= most * 0.999)


def _n(number: float) -> str:
    text = f"{number:.1f}"
    return text.removesuffix(".0")
