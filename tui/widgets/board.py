"""The overview's parts and how they share the screen; draws a View and decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Container

from engine import format as fmt
from engine.snapshot import DatasetView, Snapshot
from tui import glyphs
from tui.draw import keybar, rows
from tui.draw.alarm import Alarm, alarm_line, alarms, calm
from tui.draw.header import header
from tui.draw.paint import Line, Span, exactly, plain
from tui.draw.plan import Plan, plan
from tui.palette import Palette
from tui.widgets.canvas import Canvas
from tui.widgets.dataset_pane import DatasetPane


class View(NamedTuple):
    """All that the board draws from."""

    snapshot: Snapshot
    age_s: float
    """Seconds since the engine's last heartbeat."""
    frozen_at: str
    """The time of day at which the view was frozen; empty while it is not."""
    chosen: int
    message: Line
    fresh: bool
    """Whether the message is new: on a screen without its line it stands where alarms do."""
    keys: Sequence[keybar.Key]


class Board(Container):
    """Header, alarm line, datasets, message line and keys."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        self._panes: list[DatasetPane] = []
        self._view: View | None = None
        self._plan: Plan | None = None

    def compose(self) -> ComposeResult:
        """The fixed parts; the datasets' panes come with the first snapshot that names them."""
        yield Canvas(self._palette, name="header")
        yield Canvas(self._palette, name="alarm")
        yield Container(id="datasets")
        yield Canvas(self._palette, name="hidden")
        yield Canvas(self._palette, name="message")
        yield Canvas(self._palette, name="keys")

    def on_resize(self, _: events.Resize) -> None:
        """Share the screen out anew."""
        self._draw()

    def show(self, view: View) -> None:
        """Draw this view; what did not change is not sent to the terminal."""
        self._view = view
        self._draw()

    def _draw(self) -> None:
        view = self._view
        cells, lines = self.size
        if view is None or not self.is_mounted or not cells or not lines:
            return
        datasets = view.snapshot.datasets
        self._provide(len(datasets))
        wanted = plan(cells, lines, datasets, view.chosen)
        if wanted != self._plan:
            self._plan = wanted
            self._arrange(wanted)
        self._paint(view, wanted, cells)

    def _provide(self, count: int) -> None:
        missing = count - len(self._panes)
        if missing > 0:
            fresh = [DatasetPane(self._palette) for _ in range(missing)]
            self._panes += fresh
            self._plan = None
            self.query_one("#datasets", Container).mount(*fresh)

    def _arrange(self, wanted: Plan) -> None:
        heights = {
            "#header": wanted.header,
            "#alarm": wanted.alarm,
            "#hidden": wanted.hidden,
            "#message": wanted.message,
            "#keys": wanted.keys,
        }
        for name, height in heights.items():
            canvas = self.query_one(name, Canvas)
            canvas.display = height > 0
            canvas.styles.height = height
        places = {place.number: place for place in wanted.places}
        for index, pane in enumerate(self._panes):
            pane.put(places.get(index))

    def _paint(self, view: View, wanted: Plan, cells: int) -> None:
        snapshot, inner = view.snapshot, max(0, cells - 2)
        found = alarms(snapshot, view.age_s, view.frozen_at)
        if view.fresh and not wanted.message:
            found = [Alarm("info", plain(view.message)), *found]
        self._on("#header", header(snapshot, inner, wanted.header, view.age_s))
        self._on("#alarm", [alarm_line(found, cells, calm(snapshot))])
        self._on("#hidden", [_hidden(wanted, snapshot.datasets, inner)])
        self._on("#message", [exactly(view.message, inner)])
        self._on("#keys", [keybar.footer(view.keys, inner)])
        columns = rows.widths(snapshot.datasets, cells)
        for place in wanted.places:
            dataset = snapshot.datasets[place.number]
            chosen = place.number == view.chosen
            self._panes[place.number].show(dataset, snapshot, columns, chosen=chosen)

    def _on(self, name: str, lines: Sequence[Line]) -> None:
        self.query_one(name, Canvas).paint(lines)


def _hidden(wanted: Plan, datasets: Sequence[DatasetView], cells: int) -> Line:
    unseen = [*datasets[: wanted.above], *datasets[len(datasets) - wanted.below :]]
    trouble = sum(
        any(error.verdict in {"ACTIVE", "STRUCTURAL"} for error in view.errors) for view in unseen
    )
    text = f"{wanted.above} more above, {wanted.below} below (j k)"
    if trouble:
        text += f"  {glyphs.ACTIVE} errors in {fmt.thousands(trouble)} of them"
    return exactly((Span(text, "warn" if trouble else "dim"),), cells)
