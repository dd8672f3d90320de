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

from tui.draw.paint import Line, Span, line_width
from tui.palette import Palette


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
        longest = max(len(before), len(self._lines))
        changed = [y for y in range(longest) if _at(before, y) != _at(self._lines, y)]
        if changed:
            self.refresh(*(self._region(before, y) for y in changed))

    def _region(self, before: tuple[Line, ...], y: int) -> Region:
        cells = max(line_width(_at(before, y)), line_width(_at(self._lines, y)))
        return Region(0, y, cells, 1)

    def render_line(self, y: int) -> Strip:
        """One line of the content region, for Textual's compositor."""
        merged = merge_blanks(_at(self._lines, y))
        segments = [Segment(span.text, self._palette.of(span)) for span in merged]
        strip = Strip(segments).adjust_cell_length(self.content_size.width)
        return strip.apply_style(self.visual_style.rich_style)


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
