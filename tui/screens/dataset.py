"""The dataset screen: everything about one dataset, and the way to its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from engine.view.snapshot import Snapshot
from tui import keys
from tui.draw import detail, words
from tui.draw.paint import Line
from tui.screens.paged import Paged


class DatasetScreen(Paged, inherit_bindings=False):
    """Shows the chosen dataset; scrolling holds while another one is chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.DATASET]

    def title_of(self, snapshot: Snapshot) -> str:
        """The dataset's number, name and manifest's total."""
        view = self.desk.view(snapshot)
        number = words.key_of(self.desk.index(snapshot) + 1)
        return f"{number} {words.label(view)}" if view else ""

    def lines_of(self, snapshot: Snapshot, cells: int) -> Sequence[Line]:
        """Every section."""
        view = self.desk.view(snapshot)
        return detail.body(snapshot, view, cells) if view else ()

    def action_rows(self) -> None:
        """Read the newest rows."""
        from tui.screens.row import RowScreen

        view = self.desk.view(self.desk.shown())
        if view is None:
            return
        newest = view.last_rows[0].id if view.last_rows else None
        self.app.push_screen(RowScreen(self.desk, view.name, newest))
