"""`eaglegen-tui control` and `attach`: steer or watch a run that another process does."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from engine import commands
from engine.commands import Command
from engine.disk.rundir import RUN
from engine.errors import EaglegenError, ExitCode, UsageError
from engine.fleet.neighbours import shards_in
from engine.fleet.orders import Answer, share, together
from engine.fleet.runs import RunSet, open_runs
from engine.fleet.watch import FleetWatch
from engine.handle import RunHandle
from engine.link.remote import RemoteRun, ask
from engine.settings import Settings, load_settings
from tui.detach import divert
from tui.digest import digest, read_journal, seen_now
from tui.headless import Reporter
from tui.jobs import Look, Watching, check_look
from tui.memory import last_look
from tui.memory import look as remember_look
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
    "include-provider": commands.IncludeProvider,
}
ACTIONS = (*_PLAIN, *_NAMED)
_AS_SET = Look()


def control(folder: Path, action: str, value: str | None) -> int:
    """Send one order and print what was done; the folder of all shards passes it to each."""
    command = parse(action, value)
    if (folder / RUN).exists() or not shards_in(folder):
        sys.stdout.write(ask(folder, command) + "\n")
    else:
        sys.stdout.write(_ask_all(open_runs([folder]), command) + "\n")
    return int(ExitCode.OK)


def _ask_all(runs: RunSet, command: Command) -> str:
    """Each shard's share of an order; raises UsageError where none of them took it."""
    told: dict[str, Answer] = {}
    for run in runs.runs:
        try:
            order = commands.from_wire(share(command, run.index, run.count))
            told[run.label] = True, ask(run.folder, order)
        except EaglegenError as error:
            told[run.label] = False, error.message
    if not any(done for done, _ in told.values()):
        raise UsageError(together(told))
    return together(told)


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


def attach(folder: Path, *, read_only: bool, look: Look = _AS_SET) -> int:
    """The full screen on a run of another process; leaving it leaves the run alone."""
    settings = _settings(look)
    run = RemoteRun(folder, hz=max(2.0, settings.fps), read_only=read_only)
    try:
        left = _look_at(run, folder, settings, read_only=read_only)
    finally:
        run.close()
    return int(ExitCode.INTERNAL if left.parting is Parting.CRASHED else ExitCode.OK)


def attach_all(folders: Sequence[Path], *, read_only: bool, look: Look = _AS_SET) -> int:
    """The screen on one run, or read-only on several as one: shards, or the folder of all."""
    if len(folders) == 1 and (folders[0] / RUN).exists():
        return attach(folders[0], read_only=read_only, look=look)
    runs = open_runs(folders)
    if not read_only:
        raise UsageError(
            "several runs can only be watched together: add --read-only",
            hint="`control RUN_DIR ACTION` steers one of them.",
        )
    settings = _settings(look)
    run = FleetWatch(runs, hz=max(2.0, settings.fps))
    names = " ".join(shlex.quote(str(folder)) for folder in folders)
    greeting = f"read-only: {len(runs.runs)} runs as one; latencies are those of the slowest"
    try:
        left = _screen(run, settings, greeting, steers=False)
        if left.parting in {Parting.ENDED, Parting.AWAY}:
            _say_farewell(run, f"--read-only {names}", summary=left.summary)
    finally:
        run.close()
    return int(ExitCode.INTERNAL if left.parting is Parting.CRASHED else ExitCode.OK)


def _settings(look: Look) -> Settings:
    """How the screen is to look; raises UsageError where there is no terminal for it."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("attach needs a terminal", hint="`status --json` is for scripts.")
    settings = look.over(load_settings(Path.cwd()))
    check_look(settings, Watching())
    return settings


def _look_at(run: RemoteRun, folder: Path, settings: Settings, *, read_only: bool) -> Left:
    told = digest(run.snapshot(), last_look(folder), read_journal(folder))
    greeting = f"read-only: no key sends anything; {told}" if read_only else told
    left = _screen(run, settings, greeting, steers=not read_only)
    remember_look(folder, seen_now(run.snapshot()))
    if left.parting in {Parting.ENDED, Parting.AWAY}:
        _say_farewell(run, shlex.quote(str(folder)), summary=left.summary)
    return left


def _screen(run: RunHandle, settings: Settings, greeting: str, *, steers: bool) -> Left:
    from tui import keymap
    from tui.app import show

    exits = Exits(remote=True, steers=steers, lost=lambda: divert((0, 1, 2)))
    return show(
        run,
        theme=settings.theme,
        fps=settings.fps,
        exits=exits,
        greeting=greeting,
        ascii=settings.ascii,
        bandwidth_kb=settings.bandwidth_kb,
        keymap=keymap.loaded(),
    )


def _say_farewell(run: RunHandle, where: str, *, summary: bool) -> None:
    """What stays in the scrollback: how the run ended, or that it goes on."""
    if run.ended or summary:
        Reporter(as_json=False, err=say).summary(run.snapshot())
    if not run.ended:
        say(f"the run goes on; eaglegen-tui attach {where} shows it again\n")


def _number(value: str) -> int:
    if not value.isdecimal() or int(value) < 1:
        raise UsageError(f"throttle: {value!r} is no whole number of at least 1")
    return int(value)
