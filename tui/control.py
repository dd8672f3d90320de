"""`eaglegen-tui control` and `attach`: steer or watch a run that another process does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from engine import commands
from engine.commands import Command
from engine.errors import ExitCode, UsageError
from engine.remote import RemoteRun, ask
from engine.settings import load_settings

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
    """The full screen on a run of another process."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("attach needs a terminal", hint="`status --json` is for scripts.")
    settings = load_settings(Path.cwd())
    run = RemoteRun(folder, hz=max(2.0, settings.fps), read_only=read_only)
    try:
        from tui.app import run_app

        run_app(run, theme=theme or settings.theme, fps=settings.fps)
    finally:
        run.close()
    return int(ExitCode.OK)


def _number(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise UsageError(f"throttle: {value!r} is no whole number of at least 1")
    return int(value)
