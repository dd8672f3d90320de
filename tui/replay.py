"""`eaglegen-tui replay`: an ended run, or a live one's past, on the screen that it was run with."""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from engine import format as fmt
from engine.clock import SystemClock, local_hms
from engine.disk.rundir import HISTORY
from engine.errors import ExitCode, UsageError
from engine.past.replay import Player, speed_words
from engine.past.tape import Tape, read_tape
from engine.settings import Settings, load_settings
from engine.view.snapshot import Snapshot
from tui import glyphs, keymap
from tui.app import EaglegenApp
from tui.desk import Desk
from tui.detach import divert
from tui.draw.paint import Line, Span
from tui.helm import Helm
from tui.jobs import Look, Watching, check_look
from tui.outlet import say
from tui.parting import Exits, Left, Parting
from tui.screens.overview import OverviewScreen
from tui.screens.steered import Steered
from tui.signals import routed

MARK = "REPLAY "
"""Stands before the run's name wherever it is shown: a replay is never taken for a live run."""
SPEED = 10.0
"""Recorded seconds per second, where nothing else is asked for."""
_LONG = 50_000_000
"""Bytes of history that take a while."""
_WITHOUT = frozenset(
    {"pause", "pause_run", "step", "number", "skip", "undo", "freeze", "retry", "exclude"}
)
"""Actions of a live run's screen."""
_SPEED, _STEP, _EDGE = Binding.Group("speed"), Binding.Group("1 min"), Binding.Group("start end")
_OURS = frozenset({"playing", "speed", "jump", "edge", "away"})
KEYS: list[BindingType] = [
    Binding("space", "playing", "pause", tooltip="pause the replay, or go on", priority=True),
    Binding("plus", "speed(1)", tooltip="play faster or slower", group=_SPEED, priority=True),
    Binding("minus", "speed(-1)", tooltip="play faster or slower", group=_SPEED, priority=True),
    Binding(
        "left",
        "jump(-60)",
        tooltip="back or forward by a minute of the run",
        group=_STEP,
        priority=True,
    ),
    Binding(
        "right",
        "jump(60)",
        tooltip="back or forward by a minute of the run",
        group=_STEP,
        priority=True,
    ),
    Binding(
        "home", "edge(False)", tooltip="to the run's beginning or end", group=_EDGE, priority=True
    ),
    Binding(
        "end", "edge(True)", tooltip="to the run's beginning or end", group=_EDGE, priority=True
    ),
    Binding("q", "away(False)", "quit", tooltip="leave the replay", priority=True),
    Binding("Q", "away(True)", tooltip="leave, with the summary in the scrollback", priority=True),
    Binding("ctrl+c", "interrupt", tooltip="leave the replay", priority=True),
]


def replay(folder: Path, *, speed: float, look: Look) -> int:
    """Play a run directory; raises UsageError where there is nothing to play, or no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("replay needs a terminal", hint="`report` writes a page instead.")
    settings = look.over(load_settings(Path.cwd()))
    check_look(settings, Watching())
    _say_long(folder)
    tape = read_tape(folder)
    left = _stand(ReplayApp(tape, speed=speed, settings=settings))
    if left.summary:
        from tui.headless import Reporter

        Reporter(as_json=False, err=say).summary(tape.last)
    return int(ExitCode.INTERNAL if left.parting is Parting.CRASHED else ExitCode.OK)


def _say_long(folder: Path) -> None:
    """Days of history take seconds to read."""
    with suppress(OSError):
        size = (folder / HISTORY).stat().st_size
        if size >= _LONG:
            say(f"reading {size // 1_000_000} MB of history\n")


def _stand(app: ReplayApp) -> Left:
    with routed(app.signalled, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        try:
            app.run(mouse=False)
        except Exception as error:  # noqa: BLE001 - told without locals, and the terminal restored
            app.failed(error)
        if app.driver_of_terminal is not None:
            app.driver_of_terminal.quiet()
    return app.left


class ReplayHelm(Helm):
    """Says on the message line where the playhead is."""

    player: Player
    tape: Tape

    def line(self, snapshot: Snapshot) -> Line:
        """A new message; else where the playhead is, and the journal's newest entry."""
        return super().line(snapshot) if self.fresh else (*self._where(), *_newest(snapshot))

    def overhear(self, snapshot: Snapshot) -> None:
        """Orders of the past are no news: they stand in the journal and on the axis."""

    def _where(self) -> Line:
        player, sessions = self.player, len(self.tape.sessions)
        if player.at_end:
            mark, word = glyphs.STOPPED, "end"
        elif player.paused:
            mark, word = glyphs.PAUSED, "paused"
        else:
            mark, word = glyphs.RUNNING, speed_words(player.speed)
        which = f" session {player.session} of {sessions}" if sessions > 1 else ""
        far = f" {fmt.duration(player.position)} of {fmt.duration(player.length)}{which}"
        return (
            Span(f"{mark} {local_hms(player.wall())} ", "accent", True),
            Span(f"{word:<6}", "text", True),
            Span(far, "dim"),
        )


def _newest(snapshot: Snapshot) -> Line:
    if not snapshot.journal:
        return ()
    entry = snapshot.journal[-1]
    text = f"  {local_hms(entry.at)} {fmt.safe_text(entry.text)}"
    return (Span(text, "dim"),)


class ReplayApp(EaglegenApp, inherit_bindings=False):
    """The app on a tape: the same screens, with keys for the playhead and none for the run."""

    BINDINGS: ClassVar[list[BindingType]] = KEYS

    def __init__(
        self,
        tape: Tape,
        *,
        speed: float = SPEED,
        settings: Settings,
        player: Player | None = None,
    ) -> None:
        """`player` is for tests; it plays `tape`."""
        self.player = player or Player(tape, SystemClock(), speed=speed, mark=MARK)
        exits = Exits(remote=True, steers=False, without=_WITHOUT, lost=lambda: divert((0, 1, 2)))
        super().__init__(
            self.player,
            theme=settings.theme,
            fps=settings.fps,
            clock=self.player,
            exits=exits,
            greeting=_greeting(tape),
            ascii=settings.ascii,
            bandwidth_kb=settings.bandwidth_kb,
            keymap=keymap.loaded(),
        )
        helm = ReplayHelm(self.player, self.player, self._answered)
        helm.player, helm.tape = self.player, tape
        self.helm = helm
        self._overview = OverviewScreen(Desk(self.palette, helm, self._leave, self))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The playhead's keys are a dialog's own letters while one is open."""
        if action in _OURS and not isinstance(self.screen, Steered):
            return False
        return super().check_action(action, parameters)

    def action_playing(self) -> None:
        """Pause the replay, go on, or begin anew at its end."""
        self.player.pause()
        self.poll()

    def action_speed(self, steps: int) -> None:
        """Faster or slower."""
        self.player.faster(steps)
        self.poll()

    def action_jump(self, seconds: float) -> None:
        """Move by recorded seconds."""
        self.player.jump(seconds)
        self.poll()

    def action_away(self, summary: bool) -> None:
        """Leave."""
        self.depart(Parting.AWAY, summary=summary)

    def action_edge(self, last: bool) -> None:
        """To the beginning or the end."""
        self.player.move(self.player.length if last else 0.0)
        self.poll()


def _greeting(tape: Tape) -> str:
    parts = [f"replay of {fmt.safe_text(str(tape.folder), 60)}"]
    if tape.live:
        parts.append("the run goes on; this is its past")
    odd = sum(tape.odd.values())
    if odd:
        parts.append(f"{fmt.plural(odd, 'unreadable line')} left out ({', '.join(tape.odd)})")
    return "; ".join(parts)
