"""`eaglegen-tui control` and `attach`: steer or watch a run that another process does."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path

from engine import commands
from engine.commands import Command
from engine.errors import ExitCode, UsageError
from engine.remote import RemoteRun, ask
from engine.settings import Settings, load_settings
from tui.detach import divert
from tui.digest import digest, read_journal, seen_now
from tui.headless import Reporter
from tui.jobs import check_theme
from tui.memory import last_look, look
from tui.outlet import say
from tui.parting import Exits, Left, Parting

_PLAIN: dict[str, Callable[[str | None], Command]] = {
    "pause": commands.Pause,
    "resume": commands.Resume,
    "retry-failed": commands.RetryFailed,
    "drain": lambda _: commands.Drain(),
    "stop": lambda _: commands.Stop(),
}
_NAMED: dict[str, Callable[[str], Command]] = {
    "throttle": lambda value: commands.Throttle(_number(value)),
    "skip": commands.Skip,
    "unskip": commands.Unskip,
    "exclude-provider": commands.ExcludeProvider,
}
ACTIONS = (*_PLAIN, *_NAMED)


def control(folder: Path, action: str, value: str | None) -> int:
    """Send one order and print what was done."""
    sys.stdout.write(ask(folder, parse(action, value)) + "\n")
    return int(ExitCode.OK)


def parse(action: str, value: str | None) -> Command:
    """`throttle 500` as a command; raises UsageError."""
    name = action.replace("_", "-")
    if name in _PLAIN:
        if name in {"drain", "stop"} and value is not None:
            raise UsageError(f"{name} takes no name: it concerns the whole run")
        return _PLAIN[name](value)
    if name not in _NAMED:
        raise UsageError(f"unknown action {action!r}", hint=f"known: {', '.join(ACTIONS)}")
    if value is None:
        raise UsageError(f"{name} needs a {'number' if name == 'throttle' else 'name'}")
    return _NAMED[name](value)


def attach(folder: Path, *, read_only: bool, theme: str | None) -> int:
    """The full screen on a run of another process; leaving it leaves the run alone."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("attach needs a terminal", hint="`status --json` is for scripts.")
    settings = load_settings(Path.cwd())
    theme = theme or settings.theme
    check_theme(theme)
    run = RemoteRun(folder, hz=max(2.0, settings.fps), read_only=read_only)
    try:
        left = _look_at(run, folder, theme, settings, read_only=read_only)
    finally:
        run.close()
    return int(ExitCode.INTERNAL if left.parting is Parting.CRASHED else ExitCode.OK)


def _look_at(
    run: RemoteRun, folder: Path, theme: str, settings: Settings, *, read_only: bool
) -> Left:
    from tui.app import show

    told = digest(run.snapshot(), last_look(folder), read_journal(folder))
    greeting = f"read-only: no key sends anything; {told}" if read_only else told
    exits = Exits(remote=True, steers=not read_only, lost=lambda: divert((0, 1, 2)))
    left = show(
        run,
        theme=theme,
        fps=settings.fps,
        exits=exits,
        greeting=greeting,
        ascii=settings.ascii,
    )
    look(folder, seen_now(run.snapshot()))
    if left.parting in {Parting.ENDED, Parting.AWAY}:
        _say_farewell(run, folder, summary=left.summary)
    return left


def _say_farewell(run: RemoteRun, folder: Path, *, summary: bool) -> None:
    """What stays in the scrollback: how the run ended, or that it goes on."""
    if run.ended or summary:
        Reporter(as_json=False, err=say).summary(run.snapshot())
    if not run.ended:
        where = shlex.quote(str(folder))
        say(f"the run goes on; eaglegen-tui attach {where} shows it again\n")


def _number(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise UsageError(f"throttle: {value!r} is no whole number of at least 1")
    return int(value)
