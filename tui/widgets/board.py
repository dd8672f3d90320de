"""The overview's parts and how they share the screen; draws a View and decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual import events
from textual.app import ComposeResult
from textual.containers import Container

from engine import format as fmt
from engine.view.snapshot import DatasetView, Snapshot
from tui import glyphs
from tui.draw import keybar, rows, words
from tui.draw.alarm import Alarm, alarm_line, alarms, calm
from tui.draw.crew import crew, crew_rows
from tui.draw.header import header
from tui.draw.paint import Line, Span, exactly, plain
from tui.draw.plan import Plan, plan
from tui.palette import Palette
from tui.widgets.canvas import Canvas
from tui.widgets.dataset_pane import DatasetPane

_PARTS = ("header", "alarm", "hidden", "message", "keys")
"""From top to bottom, the datasets between the second and the third; fields of a Plan."""


class View(NamedTuple):
    """All that the board draws from."""

    snapshot: Snapshot
    age_s: float
    """Seconds since the engine's last heartbeat."""
    frozen_at: str
    """The time of day at which the view was frozen; empty while it is not."""
    chosen: int
    listed: Sequence[int]
    """Places of the datasets that are shown."""
    filter: str
    """What their names hold; empty where all are shown."""
    message: Line
    fresh: bool
    """Whether the message is new: on a screen without its line it stands where alarms do."""
    keys: Sequence[keybar.Key]


class Board(Container):
    """Header, alarm line, datasets, message line and keys."""

    def __init__(self, palette: Palette) -> None:
        super().__init__()
        self._palette = palette
        # held, not looked up: the app may still poll while its widgets are going
        self._parts = {name: Canvas(palette, name=name) for name in _PARTS}
        self._crew = Canvas(palette, name="crew")
        """The workers of a fleet; no lines where one process does the run."""
        self._area = Container(id="datasets")
        self._panes: list[DatasetPane] = []
        self._view: View | None = None
        self._plan: Plan | None = None

    def compose(self) -> ComposeResult:
        """The fixed parts; the datasets' panes come with the first snapshot that names them."""
        header, alarm, *below = self._parts.values()
        yield from (header, self._crew, alarm, self._area, *below)

    def on_resize(self, _: events.Resize) -> None:
        """Share the screen out anew."""
        self._draw()

    def show(self, view: View) -> None:
        """Draw this view; what did not change is not sent to the terminal."""
        self._view = view
        self._draw()

    def pane_text(self, place: int) -> str:
        """A dataset's pane as plain text, under its title."""
        if self._view is None or place >= len(self._panes):
            return ""
        title = words.label(self._view.snapshot.datasets[place])
        lines = [plain(line).rstrip() for line in self._panes[place].lines]
        return "\n".join([title, *lines]) + "\n"

    def _draw(self) -> None:
        view = self._view
        cells, lines = self.size
        ready = self._area.is_mounted and self.is_attached and cells and lines
        if view is None or not ready:
            return
        datasets = view.snapshot.datasets
        self._provide(len(datasets))
        workers = crew_rows(view.snapshot, lines)
        self._crew.display = workers > 0
        self._crew.styles.height = workers
        wanted = _plan(view, cells, lines - workers)
        if wanted != self._plan:
            self._plan = wanted
            self._arrange(wanted)
        wall = view.snapshot.heartbeat_at + view.age_s
        self._crew.paint(crew(view.snapshot, max(0, cells - 2), workers, wall))
        self._paint(view, wanted, cells)

    def _provide(self, count: int) -> None:
        missing = count - len(self._panes)
        if missing > 0:
            fresh = [DatasetPane(self._palette) for _ in range(missing)]
            self._panes += fresh
            self._plan = None
            self._area.mount(*fresh)

    def _arrange(self, wanted: Plan) -> None:
        for name, canvas in self._parts.items():
            height: int = getattr(wanted, name)
            canvas.display = height > 0
            canvas.styles.height = height
        places = {place.number: place for place in wanted.places}
        for index, pane in enumerate(self._panes):
            pane.put(places.get(index))

    def _paint(self, view: View, wanted: Plan, cells: int) -> None:
        snapshot, inner = view.snapshot, max(0, cells - 2)
        found = alarms(snapshot, view.age_s, view.frozen_at)
        if view.filter:
            count = f"{len(view.listed)} of {fmt.plural(len(snapshot.datasets), 'dataset')}"
            text = f"/ only {count}, with {fmt.safe_text(view.filter, 24)!r} in the name; esc: all"
            found.append(Alarm("info", text))
        if view.fresh and not wanted.message:
            found = [Alarm("info", plain(view.message)), *found]
        parts = self._parts
        parts["header"].paint(header(snapshot, inner, wanted.header, view.age_s))
        parts["alarm"].paint([alarm_line(found, cells, calm(snapshot))])
        listed = [snapshot.datasets[place] for place in view.listed]
        parts["hidden"].paint([_hidden(wanted, listed, inner)])
        parts["message"].paint([exactly(view.message, inner)])
        parts["keys"].paint([keybar.footer(view.keys, inner)])
        columns = rows.widths(snapshot.datasets, cells)
        for place in wanted.places:
            dataset = snapshot.datasets[place.number]
            chosen = place.number == view.chosen
            self._panes[place.number].show(dataset, snapshot, columns, chosen=chosen)


def _plan(view: View, cells: int, lines: int) -> Plan:
    """The places of the datasets that are listed, under their own numbers."""
    datasets, listed = view.snapshot.datasets, view.listed
    chosen = listed.index(view.chosen) if view.chosen in listed else 0
    made = plan(cells, lines, [datasets[place] for place in listed], chosen)
    places = tuple(place._replace(number=listed[place.number]) for place in made.places)
    return made._replace(places=places)


def _hidden(wanted: Plan, datasets: Sequence[DatasetView], cells: int) -> Line:
    unseen = [*datasets[: wanted.above], *datasets[len(datasets) - wanted.below :]]
    trouble = sum(
        any(error.verdict in {"ACTIVE", "STRUCTURAL"} for error in view.errors) for view in unseen
    )
    text = f"{wanted.above} more above, {wanted.below} below (j k)"
    if trouble:
        text += f"  {glyphs.ACTIVE} errors in {fmt.thousands(trouble)} of them"
    return exactly((Span(text, "warn" if trouble else "dim"),), cells)
