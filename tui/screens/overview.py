"""The overview screen: what its keys mean; the picture itself is tui.widgets.board."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from engine import format as fmt
from engine.clock import local_hms
from engine.commands import Command, Drain, Skip, Stop, Throttle
from engine.snapshot import DatasetView, Snapshot
from tui import keys, questions, steering
from tui.draw import notes
from tui.helm import Helm
from tui.palette import Palette
from tui.parting import Parting, Viewer
from tui.widgets.board import Board, View

if TYPE_CHECKING:
    from collections.abc import Callable


class OverviewScreen(Screen[None], inherit_bindings=False):
    """Holds what the keys act on: the chosen dataset, and the frozen snapshot if there is one."""

    AUTO_FOCUS = None
    BINDINGS: ClassVar[list[BindingType]] = [*keys.BINDINGS]

    def __init__(
        self, palette: Palette, helm: Helm, leave: Callable[[], None], viewer: Viewer
    ) -> None:
        """`leave` is called when the user has asked to go once the run has ended."""
        super().__init__()
        self._palette = palette
        self._helm = helm
        self._leave = leave
        self._viewer = viewer
        self._board = Board(palette)
        self._frozen: Snapshot | None = None
        self._chosen: str | None = None
        self._pinned = False

    def compose(self) -> ComposeResult:
        """The board fills the screen."""
        yield self._board

    def refresh_view(self) -> None:
        """Draw the newest snapshot, or the frozen one."""
        frozen = self._frozen
        snapshot = frozen or self._helm.snapshot()
        self._follow(snapshot)
        live = [active.binding for active in self.active_bindings.values() if active.enabled]
        view = View(
            snapshot=snapshot,
            age_s=0.0 if frozen else max(0.0, self._helm.clock.wall() - snapshot.heartbeat_at),
            frozen_at=local_hms(frozen.heartbeat_at) if frozen else "",
            chosen=self._index(snapshot),
            message=self._helm.line(snapshot),
            fresh=self._helm.fresh,
            keys=keys.live(live, every_key=False),
        )
        self._board.show(view)

    # which dataset

    def _follow(self, snapshot: Snapshot) -> None:
        """Until the user chooses, the chosen dataset is the first one that still has work."""
        if self._pinned:
            return
        current = next((v for v in snapshot.datasets if v.name == self._chosen), None)
        if current is None or current.state not in {"running", "paused"}:
            live = [v for v in snapshot.datasets if v.state in {"running", "paused"}]
            first = live[0] if live else current or next(iter(snapshot.datasets), None)
            self._chosen = first.name if first else None

    def _index(self, snapshot: Snapshot) -> int:
        names = [view.name for view in snapshot.datasets]
        return names.index(self._chosen) if self._chosen in names else 0

    def _current(self) -> DatasetView | None:
        """The chosen dataset as it is now, even while the view is frozen."""
        snapshot = self._helm.snapshot()
        if self._chosen is None:
            self._follow(snapshot)
        return snapshot.datasets[self._index(snapshot)] if snapshot.datasets else None

    def action_choose(self, step: int) -> None:
        """Select the next or the previous dataset."""
        self.action_choose_at(self._index(self._helm.snapshot()) + step)

    def action_choose_at(self, place: int) -> None:
        """Select a dataset by its place."""
        datasets = self._helm.snapshot().datasets
        if 0 <= place < len(datasets):
            self._chosen = datasets[place].name
            self._pinned = True
            self.refresh_view()

    # steering

    def action_pause(self) -> None:
        """Pause or resume the chosen dataset."""
        view = self._current()
        if view is not None:
            self._pinned = True
            now = self._helm.clock.monotonic()
            self._helm.obey(steering.toggled(view, self._helm.wishes, now))
        self.refresh_view()

    def action_pause_run(self) -> None:
        """Pause or resume the run."""
        helm = self._helm
        now = helm.clock.monotonic()
        helm.obey(steering.toggled_run(helm.snapshot(), helm.wishes, now))
        self.refresh_view()

    def action_step(self, direction: int) -> None:
        """Raise or lower the ceiling by a step."""
        before = self._helm.ceiling()
        after = steering.stepped(before, direction)
        if after != before:
            self._helm.order(Throttle(after))
        self.refresh_view()

    def action_number(self) -> None:
        """Ask for the ceiling."""
        from tui.screens.dialogs import NumberScreen

        def decided(limit: int | None) -> None:
            if limit is not None:
                self._helm.order(Throttle(limit))
            self.refresh_view()

        snapshot = self._helm.snapshot()
        note = (
            f"now {fmt.thousands(snapshot.limit_ceiling)}, in use {fmt.thousands(snapshot.limit)}"
        )
        self.app.push_screen(
            NumberScreen(self._palette, "Ceiling of requests in flight", note), decided
        )

    def action_skip(self) -> None:
        """Ask whether to skip the chosen dataset, or to take its skip back."""
        view = self._current()
        if view is None:
            return
        self._pinned = True
        decision = steering.skipping(view)
        if isinstance(decision, str):
            self._helm.obey(decision)
            self.refresh_view()
            return
        skips = isinstance(decision, Skip)
        question = questions.skip(view) if skips else questions.unskip(view)
        self._ask(question, {"yes": lambda: self._helm.order(decision)})

    def action_freeze(self) -> None:
        """Freeze the view, or thaw it."""
        self._frozen = None if self._frozen else self._helm.snapshot()
        self.refresh_view()

    def action_leave(self, summary: bool = False) -> None:
        """Leave an ended run; ask what becomes of one that goes on."""
        if self._helm.handle.ended:
            self._leave()
            return

        def leave_with(command: Command) -> None:
            self._leave()
            self._helm.order(command)

        def away() -> None:
            self._viewer.depart(Parting.AWAY, summary=summary)

        exits = self._viewer.exits
        if not exits.steers:
            away()
            return
        self._ask(
            questions.leave(self._helm.snapshot(), exits),
            {
                "drain": lambda: leave_with(Drain()),
                "stop": lambda: leave_with(Stop()),
                "away": away,
            },
        )

    def action_help(self) -> None:
        """The live keys, and how to read the screen."""
        from tui.screens.dialogs import HelpScreen

        live = [active.binding for active in self.active_bindings.values() if active.enabled]
        entries = keys.live(live, every_key=True)
        self.app.push_screen(HelpScreen(self._palette, entries, notes.LEGEND))

    def _ask(self, question: questions.Question, answers: dict[str, Callable[[], None]]) -> None:
        from tui.screens.dialogs import AskScreen

        def answered(answer: str | None) -> None:
            act = answers.get(answer or "")
            if act is not None:
                act()
            self.refresh_view()

        self.app.push_screen(AskScreen(self._palette, question), answered)
