"""The Textual app: its life from the first snapshot to the end of the run; polls, never blocks."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rich.console import RenderableType
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.binding import BindingType
from textual.screen import Screen

import themes
from engine import format as fmt
from engine.clock import Clock, SystemClock
from engine.commands import Drain, Stop
from engine.errors import ExitCode
from engine.handle import RunHandle
from engine.snapshot import Snapshot
from tui import keys, questions
from tui.driver import PatientDriver
from tui.helm import Helm
from tui.palette import Palette
from tui.screens.overview import OverviewScreen
from tui.thrift import TightUpdate

REPEAT_S = 0.5
"""A second ctrl+c within this time is the first one's key repeat, not an order to stop."""
STALL_S = 2.0
"""Seconds of a stalled terminal that are worth a message."""
OnEnd = Callable[[Snapshot], bool]


def run_app(handle: RunHandle, *, theme: str, fps: float = 2.0, on_end: OnEnd | None = None) -> int:
    """Show the run until the user leaves; blocks the main thread and restores the terminal.

    When the run ends by itself the screen stays with the result, unless `on_end` (called once, with
    the last snapshot) returns True. Returns the run's exit code, or ExitCode.INTERNAL if the screen
    itself failed. Raises themes.ThemeError for an unknown theme.
    """
    app = EaglegenApp(handle, theme=theme, fps=fps, on_end=on_end)
    app.run(mouse=False)
    if app.return_code:
        return app.return_code
    code = handle.snapshot().exit_code
    return ExitCode.INTERRUPTED if code is None else code


class EaglegenApp(App[None], inherit_bindings=False):
    """Polls the handle `fps` times a second; `clock` is for tests."""

    CSS_PATH = Path(__file__).with_name("styles.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*keys.APP_BINDINGS]
    TITLE = "eaglegen-tui"
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        handle: RunHandle,
        *,
        theme: str = "dark",
        fps: float = 2.0,
        on_end: OnEnd | None = None,
        clock: Clock | None = None,
    ) -> None:
        # NO_COLOR counts when it is not empty (no-color.org)
        loaded = themes.load("mono" if os.environ.get("NO_COLOR") else theme)
        super().__init__(driver_class=PatientDriver, ansi_color=loaded.mono)
        self.palette = Palette(loaded)
        self.handle = handle
        self.helm = Helm(handle, clock or SystemClock(), self._answered)
        self._fps = fps
        self._on_end = on_end
        self._leaving = False
        self._end_seen = False
        self._interrupted_at: float | None = None
        self._stalled_at: float | None = None
        translated = self.palette.textual()
        self.register_theme(translated)
        self.theme = translated.name
        self._overview = OverviewScreen(self.palette, self.helm, self._leave)

    def get_default_screen(self) -> OverviewScreen:
        """The overview is the screen below all others."""
        return self._overview

    def on_mount(self) -> None:
        """Start to poll."""
        self._watch_signals()
        self.set_interval(1 / self._fps, self.poll)
        self.call_after_refresh(self.poll)

    def poll(self) -> None:
        """Draw the newest snapshot, and see whether the run has ended."""
        if not self.is_running:
            return
        self._catch_up()
        self._overview.refresh_view()
        if not self.handle.ended:
            return
        if not self._end_seen:
            self._end_seen = True
            asked = self._on_end is not None and self._on_end(self.handle.snapshot())
            self._leaving = self._leaving or asked
        if self._leaving:
            self.exit()

    def _answered(self) -> None:
        if self.is_running:
            self._overview.refresh_view()

    def _leave(self) -> None:
        """Close as soon as the run has ended."""
        self._leaving = True
        if self.handle.ended:
            self.exit()

    # interrupts

    def action_interrupt(self) -> None:
        """Drain; a second time stop at once (DESIGN §5, exit code 130)."""
        helm, now = self.helm, self.helm.clock.monotonic()
        if self.handle.ended:
            self._leave()
            return
        before, self._interrupted_at = self._interrupted_at, now
        self._leaving = True
        if before is None and helm.snapshot().state != "draining":
            helm.order(Drain())
        elif before is None:
            stake = questions.at_stake(helm.snapshot())
            helm.say(f"already draining; ctrl+c again stops at once: {stake}", "warn")
        elif now - before >= REPEAT_S:
            helm.order(Stop())
        self._overview.refresh_view()

    def _watch_signals(self) -> None:
        """SIGTERM would leave the alternate screen on (textual#5140); here it means ctrl+c."""
        if self.is_headless:
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.action_interrupt)

    # the terminal

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Textual's way to the terminal, with updates made small (tui.thrift)."""
        if self._behind():
            self._stalled_at = self._stalled_at or self.helm.clock.monotonic()
            return
        if isinstance(renderable, ChopsUpdate | LayoutUpdate):
            renderable = TightUpdate(renderable)
        super()._display(screen, renderable)

    def _behind(self) -> bool:
        return isinstance(self._driver, PatientDriver) and self._driver.behind

    def _catch_up(self) -> None:
        """One full repaint once a stalled terminal reads again."""
        since = self._stalled_at
        if since is None or self._behind():
            return
        self._stalled_at = None
        away = self.helm.clock.monotonic() - since
        if away >= STALL_S:
            text = f"the terminal stalled for {fmt.duration(away)}; the engine went on"
            self.helm.say(text, "warn")
        self.screen.refresh()

    def _fatal_error(self) -> None:
        """Textual's own report prints every local variable, keys included; ours prints none."""
        from rich.segment import Segments
        from rich.traceback import Traceback

        self.bell()
        report = Traceback(show_locals=False)
        self._exit_renderables.append(Segments(self.console.render(report, self.console.options)))
        self._close_messages_no_wait()
