"""A full screen of scrolled lines: run, worst alarm, a bordered body, message and keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content

from engine import format as fmt
from engine.view.snapshot import Snapshot
from tui.draw import keybar
from tui.draw.alarm import Alarm, alarm_line, alarms, calm
from tui.draw.header import header
from tui.draw.paint import Line, exactly, plain
from tui.palette import Palette
from tui.widgets.canvas import Canvas

_KEYS_FROM, _MESSAGE_FROM, _BORDER_FROM = 8, 10, 7
"""A smaller screen keeps its lines for the body."""


class Page(NamedTuple):
    """All that a sheet draws from."""

    snapshot: Snapshot
    age_s: float
    frozen_at: str
    title: str
    """Whose numbers the body holds; safe text."""
    message: Line
    fresh: bool
    keys: Sequence[keybar.Key]


class Sheet(Container):
    """Shows the lines from `top` on; the lines are as wide as `cells` says."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        # held, not looked up: the app may still poll while its widgets are going
        self._parts = {
            name: Canvas(palette, name=name) for name in ("header", "alarm", "message", "keys")
        }
        self._body = Canvas(palette, name="body", classes="boxed")
        self._lines: Sequence[Line] = ()
        self._page: Page | None = None
        self._titles = ("", "")
        self.top = 0

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        parts = self._parts
        yield from (parts["header"], parts["alarm"], self._body, parts["message"], parts["keys"])

    @property
    def cells(self) -> int:
        """How wide the body's lines are."""
        return max(1, self.size.width - (4 if self._boxed else 2))

    @property
    def rows(self) -> int:
        """How many of the body's lines are seen."""
        around = 2 + sum(self._has(part) for part in ("message", "keys"))
        return max(1, self.size.height - around - (2 if self._boxed else 0))

    @property
    def ready(self) -> bool:
        """Whether there is something to draw on."""
        return bool(self._body.is_mounted and self.is_attached and self.size.area)

    @property
    def lines(self) -> Sequence[Line]:
        """All lines of the body."""
        return self._lines

    def scroll_by(self, lines: int) -> None:
        """Move the body; the ends hold."""
        self.top = max(0, min(self.top + lines, len(self._lines) - self.rows))

    def reveal(self, first: int, last: int) -> None:
        """Move as little as shows these lines, the first one above all."""
        self.top = max(self.top, last - self.rows + 1)
        self.top = max(0, min(self.top, first))

    def show(self, page: Page, lines: Sequence[Line]) -> None:
        """Draw; what did not change is not sent to the terminal."""
        if not self.ready:
            return
        self._page, self._lines = page, lines
        self.scroll_by(0)
        self._arrange()
        self._paint(page)
        self._body.paint(
            [exactly(line, self.cells) for line in lines[self.top : self.top + self.rows]]
        )

    @property
    def _boxed(self) -> bool:
        return self.size.height >= _BORDER_FROM

    def _has(self, part: str) -> bool:
        least = {"message": _MESSAGE_FROM, "keys": _KEYS_FROM}.get(part, 0)
        return self.size.height >= least

    def _arrange(self) -> None:
        for name, canvas in self._parts.items():
            canvas.display = self._has(name)
        self._body.set_class(self._boxed, "boxed")
        self._body.styles.height = self.rows + (2 if self._boxed else 0)

    def _paint(self, page: Page) -> None:
        cells = max(1, self.size.width - 2)
        found = alarms(page.snapshot, page.age_s, page.frozen_at)
        if page.fresh and not self._has("message"):
            found = [Alarm("info", plain(page.message)), *found]
        parts = self._parts
        parts["header"].paint(header(page.snapshot, cells, 1, page.age_s))
        parts["alarm"].paint([alarm_line(found, self.size.width, calm(page.snapshot))])
        parts["message"].paint([exactly(page.message, cells)])
        parts["keys"].paint([keybar.footer(page.keys, cells)])
        self._entitle(page.title)

    def _entitle(self, title: str) -> None:
        last = min(len(self._lines), self.top + self.rows)
        below = len(self._lines) - last
        place = f"{self.top} lines above, {below} below" if self.top or below else ""
        titles = (self._palette.text(fmt.clip(title, self.cells - 2)), place)
        if titles != self._titles:
            self._titles = titles
            # Content, because a str would be read as markup and brackets would crash it
            self._body.border_title = Content(f" {titles[0]} ")
            self._body.border_subtitle = Content(f" {place} ") if place else None

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """The wheel, where the mouse is on."""
        event.stop()
        self._roll(3)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """The wheel, where the mouse is on."""
        event.stop()
        self._roll(-3)

    def _roll(self, lines: int) -> None:
        self.scroll_by(lines)
        if self._page is not None:
            self.show(self._page, self._lines)


def as_text(lines: Sequence[Line]) -> str:
    """The lines as plain text without blanks at their ends."""
    return "\n".join(plain(line).rstrip() for line in lines)
