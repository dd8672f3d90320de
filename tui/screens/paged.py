"""A full screen of scrolled lines: what scrolling and copying mean on each of them."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events
from textual.app import ComposeResult

from engine.clock import local_hms
from engine.view.snapshot import Snapshot
from tui.desk import Desk
from tui.draw.paint import Line
from tui.screens.steered import Steered
from tui.widgets.sheet import Page, Sheet, as_text


class Paged(Steered, inherit_bindings=False):
    """Subclasses say the title and the lines."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.sheet = Sheet(desk.palette)

    def title_of(self, snapshot: Snapshot) -> str:
        """What the body is about; safe text."""
        raise NotImplementedError

    def lines_of(self, snapshot: Snapshot, cells: int) -> Sequence[Line]:
        """The whole body."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """The sheet fills the screen."""
        yield self.sheet

    def on_mount(self) -> None:
        """Draw as soon as there is a size."""
        self.call_after_refresh(self.refresh_view)

    def on_resize(self, _: events.Resize) -> None:
        """Draw for the new size."""
        self.call_after_refresh(self.refresh_view)

    def refresh_view(self) -> None:
        """Draw the newest snapshot, or the frozen one."""
        if not self.sheet.ready:
            return
        desk, helm = self.desk, self.desk.helm
        frozen, snapshot = desk.frozen, desk.shown()
        page = Page(
            snapshot=snapshot,
            age_s=0.0 if frozen else max(0.0, helm.clock.wall() - snapshot.heartbeat_at),
            frozen_at=local_hms(frozen.heartbeat_at) if frozen else "",
            title=self.title_of(snapshot),
            message=helm.line(snapshot),
            fresh=helm.fresh,
            keys=self.live_keys(),
        )
        self.sheet.show(page, self.lines_of(snapshot, self.sheet.cells))

    def action_scroll(self, lines: int) -> None:
        """Scroll by lines."""
        self.sheet.scroll_by(lines)
        self.refresh_view()

    def action_scroll_page(self, pages: int) -> None:
        """Scroll by pages; two lines of the last one stay."""
        self.action_scroll(pages * max(1, self.sheet.rows - 2))

    def action_scroll_edge(self, last: bool) -> None:
        """To the first or the last line."""
        self.action_scroll(len(self.sheet.lines) if last else -len(self.sheet.lines))

    def as_text(self) -> str:
        """The whole body as plain text, under its title."""
        return f"{self.title_of(self.desk.shown())}\n{as_text(self.sheet.lines)}\n"
