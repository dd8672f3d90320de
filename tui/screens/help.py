"""The help: the live keys, how to read the numbers, and what the screen costs the line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from tui.draw.keybar import Key, help_lines
from tui.draw.paint import Line, Span, exactly, line_width, plain, wrap
from tui.palette import Palette
from tui.screens.dialogs import box
from tui.widgets.canvas import Canvas

Measured = Callable[[], Sequence[tuple[str, str]]]
_SECOND = 1.0
_HEAD = 11
_INNER = 76
"""Cells of the text: the whole width of 80 columns, but for the frame."""
_BORDER = 2
_OWN_KEYS: Line = (
    Span(f"{'own keys':<{_HEAD}}", "text", True),
    Span("eaglegen-tui keys prints all of them, and where a keymap of yours goes", "dim"),
)


class HelpScreen(ModalScreen[None]):
    """Scrolls where the screen is too low, and says how much is above and below."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,n,enter", "leave", "close"),
        Binding("j,down", "scroll(1)"),
        Binding("k,up", "scroll(-1)"),
        Binding("space,pagedown", "scroll_page(1)"),
        Binding("b,pageup", "scroll_page(-1)"),
        Binding("g,home", "scroll(-999)"),
        Binding("G,end", "scroll(999)"),
    ]

    def __init__(
        self, palette: Palette, keys: list[Key], notes: Sequence[Line], measured: Measured
    ) -> None:
        """`measured` says what the screen has cost so far, as heads and sentences."""
        super().__init__()
        self._keys = help_lines(keys, _INNER)
        self._notes = [line for note in (*notes, _OWN_KEYS) for line in _wrapped(note)]
        self._measured = measured
        self._canvas = Canvas(palette)
        self._top = 0

    def compose(self) -> ComposeResult:
        """The box with one line per key."""
        with box("Keys (j k scroll, esc closes)"):
            yield self._canvas

    def on_mount(self) -> None:
        """Keep the figures fresh."""
        self.set_interval(_SECOND, self._draw)

    def on_resize(self) -> None:
        """As high as the screen allows."""
        self._draw()

    def action_scroll(self, lines: int) -> None:
        """Move by that many lines; the ends hold."""
        self._top += lines
        self._draw()

    def action_scroll_page(self, pages: int) -> None:
        """Move by pages; a line of the last one stays."""
        self.action_scroll(pages * max(1, self._rows(self._lines()) - 2))

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)

    def _lines(self) -> list[Line]:
        cost = [
            line
            for head, text in self._measured()
            for line in _wrapped((Span(f"{head:<{_HEAD}}", "text", True), Span(text, "dim")))
        ]
        return [*self._keys, (), *self._notes, *([(), *cost] if cost else [])]

    def _rows(self, lines: Sequence[Line]) -> int:
        return max(1, min(len(lines), self.app.size.height - _BORDER))

    def _draw(self) -> None:
        lines = self._lines()
        rows = self._rows(lines)
        scrolls = 1 < rows < len(lines)
        shown = rows - 1 if scrolls else rows
        self._top = max(0, min(self._top, len(lines) - shown))
        visible = lines[self._top : self._top + shown]
        if scrolls:
            visible = [*visible, _hidden(self._top, len(lines) - self._top - shown)]
        self._canvas.styles.height = rows
        self._canvas.paint(visible)


def _wrapped(note: Line) -> list[Line]:
    """A head and its text, the text in lines that fit."""
    head, *rest = note
    texts = wrap(plain(rest), _INNER - line_width((head,)))
    heads = [head, *(Span(" " * line_width((head,))) for _ in texts[1:])]
    return [(first, Span(text, rest[0].role)) for first, text in zip(heads, texts, strict=True)]


def _hidden(above: int, below: int) -> Line:
    counts = ((above, "above"), (below, "below"))
    text = ", ".join(f"{count} more {where}" for count, where in counts if count)
    return exactly((Span(text, "accent", True), Span("  (j k, space b)", "dim")), _INNER)
