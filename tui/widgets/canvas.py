"""A widget that shows lines of styled text and repaints only those that differ.

One code per span and nothing for a line that stays the same: this is what keeps the screen under
8 KB/s over SSH (facts/terminal.md, 4). Text never passes through markup.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from engine import format as fmt
from tui.draw.paint import Line, Span
from tui.palette import Palette

_NEAR = 10
"""Cells between two changes that cost less to send again than to jump over."""


class Canvas(Widget):
    """Lines of text; `paint` replaces them."""

    can_focus = False

    def __init__(
        self, palette: Palette, *, name: str | None = None, classes: str | None = None
    ) -> None:
        super().__init__(id=name, classes=classes)
        self._palette = palette
        self._lines: tuple[Line, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """What is shown."""
        return self._lines

    def paint(self, lines: Sequence[Line]) -> None:
        """Show these lines; only those that differ from the last ones are sent to the terminal."""
        before, self._lines = self._lines, tuple(lines)
        regions = [
            Region(start, y, stop - start, 1)
            for y in range(max(len(before), len(self._lines)))
            for start, stop in changes(_at(before, y), _at(self._lines, y))
        ]
        if regions:
            self.refresh(*regions)

    def render_line(self, y: int) -> Strip:
        """One line of the content region, for Textual's compositor."""
        merged = merge_blanks(_at(self._lines, y))
        palette = self._palette
        segments = [Segment(palette.text(span.text), palette.of(span)) for span in merged]
        strip = Strip(segments).adjust_cell_length(self.content_size.width)
        return strip.apply_style(self.visual_style.rich_style)


def changes(before: Line, after: Line) -> list[tuple[int, int]]:
    """The runs of cells (first, one past the last) in which two lines differ, close ones as one."""
    if before == after:
        return []
    old, new = _cells(before), _cells(after)
    runs: list[tuple[int, int]] = []
    for place in range(max(len(old), len(new))):
        if place < len(old) and place < len(new) and old[place] == new[place]:
            continue
        if runs and place - runs[-1][1] < _NEAR:
            runs[-1] = (runs[-1][0], place + 1)
        else:
            runs.append((place, place + 1))
    return runs


def _cells(line: Line) -> list[tuple[str, Span]]:
    """One entry per cell; a wide character fills two alike, a mark joins the cell before it."""
    cells: list[tuple[str, Span]] = []
    for span in line:
        look = span._replace(text="")
        for char in span.text:
            width = fmt.char_width(char)
            if width == 0 and cells:
                cells[-1] = (cells[-1][0] + char, look)
            cells.extend([(char, look)] * width)
    return cells


def merge_blanks(line: Line) -> list[Span]:
    """The line with blanks taken into the span before them: a colour costs 40 bytes, a blank one.

    Blanks look the same in every role but a reversed or an alarm's one.
    """
    merged: list[Span] = []
    for span in line:
        last = merged[-1] if merged else None
        if last is not None and _joins(last, span):
            merged[-1] = last._replace(text=last.text + span.text)
        else:
            merged.append(span)
    return merged


def _joins(last: Span, span: Span) -> bool:
    if last._replace(text=span.text) == span:
        return True
    coloured = last.reverse or span.reverse or last.role.startswith("alarm_")
    return not span.text.strip(" ") and not coloured and not span.role.startswith("alarm_")


def _at(lines: tuple[Line, ...], y: int) -> Line:
    return lines[y] if y < len(lines) else ()
