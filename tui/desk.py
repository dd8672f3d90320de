"""What all full screens share: the helm, the chosen dataset, the frozen view, the filter."""

from __future__ import annotations

from collections.abc import Callable

from engine.view.snapshot import DatasetView, Snapshot
from tui.helm import Helm
from tui.palette import Palette
from tui.parting import Viewer

_LIVE = frozenset({"running", "paused"})


class Desk:
    """One viewer's place; `leave` is called when the user wants to go once the run has ended."""

    def __init__(
        self, palette: Palette, helm: Helm, leave: Callable[[], None], viewer: Viewer
    ) -> None:
        self.palette = palette
        self.helm = helm
        self.leave = leave
        self.viewer = viewer
        self.frozen: Snapshot | None = None
        self.filter = ""
        """Only datasets whose name holds this are shown; in lower case."""
        self._chosen: str | None = None
        self._pinned = False

    def shown(self) -> Snapshot:
        """The newest snapshot, or the frozen one; the chosen dataset follows the work."""
        snapshot = self.frozen or self.helm.snapshot()
        self._follow(snapshot)
        return snapshot

    def freeze(self) -> None:
        """Freeze the view, or thaw it."""
        self.frozen = None if self.frozen else self.helm.snapshot()

    # which dataset

    def listed(self, snapshot: Snapshot) -> list[int]:
        """The places of the datasets that the filter lets through; all where it lets none."""
        every = range(len(snapshot.datasets))
        found = [n for n in every if self.filter in snapshot.datasets[n].name.lower()]
        return found or list(every)

    def index(self, snapshot: Snapshot) -> int:
        """The place of the chosen dataset; 0 where there is none."""
        names = [view.name for view in snapshot.datasets]
        return names.index(self._chosen) if self._chosen in names else 0

    def view(self, snapshot: Snapshot) -> DatasetView | None:
        """The chosen dataset in a snapshot."""
        return snapshot.datasets[self.index(snapshot)] if snapshot.datasets else None

    def current(self) -> DatasetView | None:
        """The chosen dataset as it is now, even while the view is frozen."""
        snapshot = self.helm.snapshot()
        if self._chosen is None:
            self._follow(snapshot)
        return self.view(snapshot)

    def choose(self, place: int) -> None:
        """Choose a dataset by its place; a place that does not exist changes nothing."""
        datasets = self.helm.snapshot().datasets
        if 0 <= place < len(datasets):
            self._chosen = datasets[place].name
            self._pinned = True

    def choose_next(self, step: int) -> None:
        """Choose the next (1) or the previous (-1) of the datasets that are listed."""
        snapshot = self.helm.snapshot()
        listed, here = self.listed(snapshot), self.index(snapshot)
        if here not in listed:
            self.choose(listed[0] if listed else -1)
            return
        place = listed.index(here) + step
        if 0 <= place < len(listed):
            self.choose(listed[place])

    def pin(self) -> None:
        """Stay at the chosen dataset from now on."""
        self._pinned = True

    def _follow(self, snapshot: Snapshot) -> None:
        """Until the user chooses, the chosen dataset is the first one that still has work."""
        if self._pinned:
            return
        current = next((v for v in snapshot.datasets if v.name == self._chosen), None)
        if current is None or current.state not in _LIVE:
            live = [v for v in snapshot.datasets if v.state in _LIVE]
            first = live[0] if live else current or next(iter(snapshot.datasets), None)
            self._chosen = first.name if first else None
