"""The overview screen: all datasets at once; the picture itself is tui.widgets.board."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from engine import format as fmt
from engine.clock import local_hms
from tui import keys
from tui.desk import Desk
from tui.screens.steered import Steered
from tui.widgets.board import Board, View
from tui.widgets.dataset_pane import DatasetPane


class OverviewScreen(Steered, inherit_bindings=False):
    """The screen below all others."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.OVERVIEW]

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._board = Board(desk.palette)

    def compose(self) -> ComposeResult:
        """The board fills the screen."""
        yield self._board

    def refresh_view(self) -> None:
        """Draw the newest snapshot, or the frozen one."""
        desk, helm = self.desk, self.desk.helm
        frozen, snapshot = desk.frozen, desk.shown()
        view = View(
            snapshot=snapshot,
            age_s=0.0 if frozen else max(0.0, helm.clock.wall() - snapshot.heartbeat_at),
            frozen_at=local_hms(frozen.heartbeat_at) if frozen else "",
            chosen=desk.index(snapshot),
            listed=tuple(desk.listed(snapshot)),
            filter=desk.filter if len(desk.listed(snapshot)) < len(snapshot.datasets) else "",
            message=helm.line(snapshot),
            fresh=helm.fresh,
            keys=self.live_keys(),
        )
        self._board.show(view)

    def action_choose(self, step: int) -> None:
        """Select the next or the previous dataset."""
        self.action_neighbour(step)

    def on_dataset_pane_clicked(self, message: DatasetPane.Clicked) -> None:
        """Choose what was clicked on; open it where it was chosen before."""
        if message.number == self.desk.index(self.desk.helm.snapshot()):
            self.action_open()
        else:
            self.choose(message.number)

    def action_open(self) -> None:
        """The chosen dataset in full."""
        from tui.screens.dataset import DatasetScreen

        if self.desk.current() is not None:
            self.desk.pin()
            self.app.push_screen(DatasetScreen(self.desk))

    def as_text(self) -> str:
        """The chosen dataset's pane."""
        return self._board.pane_text(self.desk.index(self.desk.shown()))

    def action_filter(self) -> None:
        """Type what the names of the shown datasets hold; the list follows while typing."""
        from tui.screens.dialogs import LineScreen

        before = self.desk.filter

        def typed(text: str) -> None:
            self._filter(text)

        def decided(text: str | None) -> None:
            self._filter(before if text is None else text)
            self._say_filter()

        self.app.push_screen(
            LineScreen(self.desk.palette, "Show datasets whose name holds", "/", before, typed),
            decided,
        )

    def action_unfilter(self) -> None:
        """Show all datasets again."""
        if self.desk.filter:
            self._filter("")
            self._say_filter()

    def _filter(self, text: str) -> None:
        self.desk.filter = text.strip().lower()
        snapshot = self.desk.helm.snapshot()
        listed = self.desk.listed(snapshot)
        if listed and self.desk.index(snapshot) not in listed:
            self.desk.choose(listed[0])
        self.refresh_view()

    def _say_filter(self) -> None:
        snapshot, wanted = self.desk.helm.snapshot(), fmt.safe_text(self.desk.filter, 24)
        total = fmt.plural(len(snapshot.datasets), "dataset")
        found = sum(self.desk.filter in view.name.lower() for view in snapshot.datasets)
        if not wanted:
            self.desk.helm.say(f"all {total} are shown")
        elif not found:
            self.desk.helm.say(f"no name holds {wanted!r}: all {total} are shown", "warn")
        else:
            self.desk.helm.say(f"{found} of {total} shown, with {wanted!r} in their name; esc: all")
        self.refresh_view()
