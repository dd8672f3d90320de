"""The Textual app: its life from the first snapshot to the end of the run; polls, never blocks."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rich.console import RenderableType
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App
from textual.binding import BindingType, Keymap
from textual.screen import Screen

import themes
from engine import format as fmt
from engine.clock import Clock, SystemClock
from engine.errors import ExitCode
from engine.handle import RunHandle
from engine.view.snapshot import Snapshot
from tui import keys
from tui.desk import Desk
from tui.draw.title import title
from tui.driver import PatientDriver
from tui.governor import DEFAULT_KB
from tui.helm import Helm
from tui.interrupts import Interrupts, SignalBox
from tui.link import STALL_S, Link
from tui.palette import Palette
from tui.parting import Exits, Left, Parting
from tui.screens.dialogs import Standing
from tui.screens.overview import OverviewScreen
from tui.screens.steered import Steered
from tui.signals import routed
from tui.thrift import TightUpdate
from tui.widgets.canvas import Canvas

EFFECT_S = (0.3, 0.8)
"""When an order's effect is in the snapshot, which is made four times a second; then also late."""
OnEnd = Callable[[Snapshot], bool]


def run_app(
    handle: RunHandle,
    *,
    theme: str,
    fps: float = 2.0,
    on_end: OnEnd | None = None,
    bandwidth_kb: float = DEFAULT_KB,
) -> int:
    """Show the run until the user leaves; blocks the main thread and restores the terminal.

    When the run ends by itself the screen stays with the result, unless `on_end` (called once, with
    the last snapshot) returns True. Returns the run's exit code, or ExitCode.INTERNAL if the screen
    itself failed. Raises themes.ThemeError for an unknown theme.
    """
    left = show(handle, theme=theme, fps=fps, on_end=on_end, bandwidth_kb=bandwidth_kb)
    if left.parting is Parting.CRASHED:
        return ExitCode.INTERNAL
    code = handle.snapshot().exit_code
    return ExitCode.INTERRUPTED if code is None else code


def show(  # noqa: PLR0913 - what a person may choose of a screen, each by its name
    handle: RunHandle,
    *,
    theme: str,
    fps: float,
    exits: Exits | None = None,
    greeting: str = "",
    on_end: OnEnd | None = None,
    ascii: bool = False,  # noqa: A002 - the word that people know
    bandwidth_kb: float = DEFAULT_KB,
    keymap: Keymap | None = None,
) -> Left:
    """Show the run until the screen is left in one way or another; restores the terminal.

    `greeting` is the first message; `bandwidth_kb` in kilobytes per second, see tui.governor;
    `keymap` as tui.keymap loads it. Call it in the main thread: SIGINT, SIGTERM and SIGHUP are
    the screen's for as long as it is there.
    """
    app = EaglegenApp(
        handle,
        theme=theme,
        fps=fps,
        on_end=on_end,
        exits=exits,
        greeting=greeting,
        ascii=ascii,
        bandwidth_kb=bandwidth_kb,
        keymap=keymap,
    )
    with routed(app.signalled, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        try:
            app.run(mouse=False)
        except Exception as error:  # noqa: BLE001 - the screen's fault must not end the run
            app.failed(error)
        if app.driver_of_terminal is not None:
            app.driver_of_terminal.quiet()
    for number in app.missed:
        signal.raise_signal(number)
    return app.left


class EaglegenApp(App[None], inherit_bindings=False):
    """Polls the handle `fps` times a second; `clock` is for tests."""

    CSS_PATH = Path(__file__).with_name("styles.tcss")
    BINDINGS: ClassVar[list[BindingType]] = [*keys.APP_BINDINGS]
    TITLE = "eaglegen-tui"
    ENABLE_COMMAND_PALETTE = False

    def __init__(  # noqa: PLR0913 - as above
        self,
        handle: RunHandle,
        *,
        theme: str = "dark",
        fps: float = 2.0,
        on_end: OnEnd | None = None,
        clock: Clock | None = None,
        exits: Exits | None = None,
        greeting: str = "",
        ascii: bool = False,  # noqa: A002 - the option's name
        bandwidth_kb: float = DEFAULT_KB,
        keymap: Keymap | None = None,
    ) -> None:
        # NO_COLOR counts when it is not empty (no-color.org)
        loaded = themes.load("mono" if os.environ.get("NO_COLOR") else theme)
        super().__init__(driver_class=PatientDriver, ansi_color=loaded.mono)
        self.palette = Palette(loaded, ascii=ascii)
        self.set_class(ascii, "ascii")
        self.handle = handle
        clock = clock or SystemClock()
        remote = exits is not None and exits.remote
        # attached screens share the socket's origin with `control`
        self.helm = Helm(handle, clock, self._answered, own="" if remote else "screen")
        # a line's own time is real time, also where `clock` plays a tape
        self.link = Link(
            lambda: self.driver_of_terminal, SystemClock(), fps=fps, bandwidth_kb=bandwidth_kb
        )
        self.set_keymap(keymap or {})
        self._fps = fps
        self._on_end = on_end
        self._leaving = False
        self._end_seen = False
        self._mouse_on = False
        self.exits = exits or Exits()
        self._greeting = greeting
        self._parting: Parting | None = None
        self._summary = False
        self._signals = SignalBox(self._obey)
        self._interrupts = Interrupts(self.helm, self.exits)
        translated = self.palette.textual()
        self.register_theme(translated)
        self.theme = translated.name
        self._overview = OverviewScreen(Desk(self.palette, self.helm, self._leave, self))

    def get_default_screen(self) -> OverviewScreen:
        """The overview is the screen below all others."""
        return self._overview

    def on_mount(self) -> None:
        """Start to poll."""
        if self._greeting:
            self.helm.say(self._greeting)
        self._signals.listen()
        self.set_interval(1 / self._fps, self.poll)
        self.call_after_refresh(self.poll)

    def poll(self) -> None:
        """Draw the newest snapshot, and see whether the run has ended."""
        if not self.is_running:
            return
        if self.link.hung_up:
            self.depart(Parting.LOST)
            return
        self._catch_up()
        self._look_around()
        if self.link.frame_due():
            self._redraw()
        self.link.name(lambda: title(self.helm.snapshot()))
        if not self.handle.ended:
            return
        if not self._end_seen:
            self._end_seen = True
            self._redraw()
            self._say_loss()
            asked = self._on_end is not None and self._on_end(self.handle.snapshot())
            self._leaving = self._leaving or asked
        if self._leaving:
            self.exit()

    def _look_around(self) -> None:
        """Say what others ordered; close a question that has answered itself."""
        self.helm.overhear(self.handle.snapshot())
        if isinstance(self.screen, Standing):
            self.screen.close_if_moot()

    def _redraw(self) -> None:
        """Draw the full screen that is on top; dialogs stand over it."""
        if not self.is_running:
            return
        full = [screen for screen in self.screen_stack if isinstance(screen, Steered)]
        if full:
            full[-1].refresh_view()

    def _say_loss(self) -> None:
        """An end without an exit code: another process did the run, and has gone."""
        last = self.handle.snapshot()
        if last.exit_code is None:
            self.helm.say(fmt.safe_text(last.reason) or "the run's process has gone", "bad")
            self._redraw()

    def _answered(self) -> None:
        if self.is_running:
            self._redraw()
            for seconds in EFFECT_S:
                self.set_timer(seconds, self._redraw)

    def _leave(self) -> None:
        """Close as soon as the run has ended."""
        self._leaving = True
        if self.handle.ended:
            self.exit()

    # leaving

    @property
    def left(self) -> Left:
        """How the screen was left; valid once it is gone."""
        parting = self._parting or Parting.ENDED
        if self.return_code and self._parting is None:
            parting = Parting.LOST if self.link.hung_up else Parting.CRASHED
        return Left(parting, self._summary)

    def depart(self, parting: Parting, *, summary: bool = False) -> None:
        """Leave the screen while the run goes on."""
        self._parting = parting
        self._summary = summary
        if parting is Parting.LOST:
            self.exits.lost()
        self.exit()

    def failed(self, error: Exception) -> None:
        """A fault that Textual itself did not catch; its report holds no locals."""
        self._return_code = int(ExitCode.INTERNAL)
        traceback.print_exception(error)

    def action_interrupt(self) -> None:
        """The key: drain; a second time stop at once."""
        if self.exits.remote:
            self._overview.action_leave()
        else:
            self._interrupt(self._interrupts.pressed)

    def _interrupt(self, how: Callable[[], None]) -> None:
        self._leave()
        if not self.handle.ended:
            how()
            self._redraw()

    def signalled(self, number: int) -> None:
        """Take a signal in the main thread."""
        self._signals.take(number)

    @property
    def missed(self) -> list[int]:
        """Signals that came before the screen was there, or after."""
        return self._signals.missed

    def _obey(self, number: int) -> None:
        """SIGTERM would leave the alternate screen on (textual#5140); here it means ctrl+c."""
        if number == signal.SIGHUP:
            self.depart(Parting.LOST)
        elif self.exits.remote:
            self.depart(Parting.AWAY)
        else:
            self._interrupt(self._interrupts.step)

    # how it looks

    def use_theme(self, name: str) -> None:
        """Draw everything in another theme from now on; raises themes.ThemeError."""
        self.palette.change(themes.load(name))
        translated = self.palette.textual()
        self.register_theme(translated)
        self.ansi_color = self.palette.theme.mono
        self.theme = translated.name
        for screen in self.screen_stack:
            for canvas in screen.query(Canvas):
                canvas.refresh()

    def toggle_mouse(self) -> bool:
        """Mouse on or off; off at the start, so that the terminal selects text."""
        driver = self.driver_of_terminal
        self._mouse_on = not self._mouse_on
        if driver is not None:
            driver.mouse(on=self._mouse_on)
        return self._mouse_on

    # the terminal

    def measured(self) -> list[tuple[str, str]]:
        """What the screen has cost so far, for the help."""
        return self.link.measured()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Textual's way to the terminal, with updates made small (tui.thrift)."""
        if self.link.behind:
            self.link.refused()
            return
        if isinstance(renderable, ChopsUpdate | LayoutUpdate):
            renderable = TightUpdate(renderable)
        super()._display(screen, renderable)

    @property
    def driver_of_terminal(self) -> PatientDriver | None:
        """The driver, where there is a terminal."""
        return self._driver if isinstance(self._driver, PatientDriver) else None

    def _catch_up(self) -> None:
        """One full repaint once a stalled terminal reads again."""
        away = self.link.back_after()
        if away is None:
            return
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
