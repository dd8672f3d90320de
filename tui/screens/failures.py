"""The failures screen: causes of failed attempts, prompts given up, and what can be done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import BindingType

from engine.view.snapshot import Snapshot
from tui import keys
from tui.desk import Desk
from tui.draw import failures, words
from tui.draw.failures import Item
from tui.draw.paint import Line
from tui.screens.paged import Paged
from tui.screens.providers import turned


class FailuresScreen(Paged, inherit_bindings=False):
    """The cursor stands on a dataset or on one of its causes."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.FAILURES]

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._cursor = Item("")
        self._reveal = True

    def title_of(self, snapshot: Snapshot) -> str:
        """All datasets are shown, whatever is chosen."""
        del snapshot
        return "Errors and failed prompts"

    def lines_of(self, snapshot: Snapshot, cells: int) -> Sequence[Line]:
        """Every dataset with its causes."""
        self._follow(snapshot)
        if not snapshot.datasets:
            return failures.nothing(cells)
        drawn = failures.body(snapshot, cells, self._cursor)
        if self._reveal:
            self._reveal = False
            self.sheet.reveal(drawn.first, drawn.last)
        return drawn.lines

    def action_choose(self, step: int) -> None:
        """Move the cursor."""
        snapshot = self.desk.shown()
        self._follow(snapshot)
        items = failures.items(snapshot)
        if not items:
            return
        place = items.index(self._cursor) + step
        self._stand_on(snapshot, items[max(0, min(place, len(items) - 1))])
        self.refresh_view()

    def action_exclude(self) -> None:
        """Leave the provider under the cursor out (asks) or let it in; without one, pick."""
        snapshot = self.desk.shown()
        self._follow(snapshot)
        name = self._cursor.provider
        if name is None:
            super().action_exclude()
        else:
            self.turn(turned(self.desk.helm.snapshot(), name))

    def _stand_on(self, snapshot: Snapshot, item: Item) -> None:
        self._cursor = item
        self._reveal = True
        self.desk.choose([view.name for view in snapshot.datasets].index(item.dataset))

    def _follow(self, snapshot: Snapshot) -> None:
        """Stand where the chosen dataset is, also when a cause has gone."""
        view = self.desk.view(snapshot)
        if view is None:
            return
        if self._cursor.dataset != view.name:
            worst = words.worst_first(view.errors)[:1]
            cause = [Item(view.name, error.family, error.provider) for error in worst]
            self._cursor, self._reveal = (cause or [Item(view.name)])[0], True
        elif self._cursor not in failures.items(snapshot):
            self._cursor = Item(view.name)
