"""A dataset's place on the screen: a pane with its title in the border, or a few dense lines."""

from __future__ import annotations

from textual.content import Content
from textual.message import Message

from engine import format as fmt
from engine.view.snapshot import DatasetView, Snapshot
from tui.draw import rows, words
from tui.draw.pane import pane
from tui.draw.plan import Place
from tui.palette import Palette
from tui.widgets.canvas import Canvas


class DatasetPane(Canvas):
    """Shows one dataset at the place that the plan gives it."""

    class Clicked(Message):
        """A dataset was clicked on; `number` is its place, from 0."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self, palette: Palette) -> None:
        super().__init__(palette, classes="dataset")
        self.display = False
        self._place: Place | None = None
        self._titles: tuple[str, str, str, bool] = ("", "", "", False)

    def put(self, place: Place | None) -> None:
        """Move to that place; None hides the pane."""
        if place == self._place:
            return
        self._place = place
        self.display = place is not None
        if place is None:
            return
        self.set_class(place.boxed, "boxed")
        self.styles.offset = (place.x, place.y)
        self.styles.width = place.width
        self.styles.height = place.height

    def on_click(self) -> None:
        """Where the mouse is on, a click chooses the dataset, and a second one opens it."""
        if self._place is not None:
            self.post_message(self.Clicked(self._place.number))

    def show(self, view: DatasetView, run: Snapshot, columns: rows.Widths, *, chosen: bool) -> None:
        """Draw the dataset; ages are counted from the snapshot's own time."""
        place = self._place
        if place is None:
            return
        self.set_class(chosen, "chosen")
        cells, lines = place.inner
        if not place.boxed:
            row = rows.Row(place.number + 1, columns, chosen, run.state)
            self.paint(rows.dense(view, cells, lines, words.moment(run), row))
            return
        self._entitle(view, place, chosen=chosen)
        self.paint(pane(view, cells, lines, words.moment(run), run.state))

    def _entitle(self, view: DatasetView, place: Place, *, chosen: bool) -> None:
        key = f" {words.key_of(place.number + 1)} "
        title = words.label(view, place.width - 8 - len(key))
        pilot = f"pilot: the first {fmt.thousands(view.pilot)}" if view.pilot is not None else ""
        reason = " · ".join(part for part in (fmt.safe_text(view.reason), pilot) if part)
        text = self._palette.text
        titles = (text(key), text(title), text(fmt.clip(reason, place.width - 8)), chosen)
        if titles != self._titles:
            self._titles = titles
            # Content, because a str would be read as markup and brackets would crash it
            badge = (titles[0], "reverse") if chosen else titles[0]
            self.border_title = Content.assemble(badge, f" {titles[1]}")
            self.border_subtitle = Content(titles[2]) if titles[2] else None
