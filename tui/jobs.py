"""Starts a run and gives it a front end: the screen in a terminal, lines otherwise."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engine.clock import SystemClock
from engine.errors import UsageError
from engine.handle import OwnRun
from engine.manifest import load_manifest
from engine.plan import Options, Plan, Shard, make_plan
from engine.readers import reader_for
from engine.runner import EngineThread
from engine.settings import Settings, key_for, load_settings
from engine.view.snapshot import Snapshot
from tui.detach import UNTETHERED, Tether, tether
from tui.digest import seen_now
from tui.memory import Recent, look, remember
from tui.outlet import say
from tui.parting import AGAIN, Parting

if TYPE_CHECKING:
    from tui.background import Background


@dataclass(frozen=True, slots=True)
class Look:
    """How the screen shall look this time; None: what the settings say."""

    theme: str | None = None
    fps: float | None = None
    bandwidth_kb: float | None = None
    ascii: bool = False

    def over(self, settings: Settings) -> Settings:
        """The settings with what was asked for this time."""
        asked = {name: value for name, value in asdict(self).items() if value}
        return settings.model_copy(update=asked)


@dataclass(frozen=True, slots=True)
class Watching:
    """How the person or script wants to watch; None: what the settings say."""

    headless: bool = False
    as_json: bool = False
    interval_s: float | None = None
    look: Look = Look()
    notify: str | None = None
    """A command to run when the run is done, waits, or stops."""
    again: str = AGAIN
    """How to go on with the run after it was drained or stopped."""

    @property
    def on_screen(self) -> bool:
        """Textual draws on stderr and reads stdin, so both must be a terminal."""
        wanted = not self.headless and not self.as_json
        return wanted and sys.stdin.isatty() and sys.stderr.isatty()


_LONGEST_SHARD = 40
"""Characters; int() refuses thousands of digits with an error of its own."""


def parse_shard(text: str | None) -> Shard:
    """`2/8` is the second of eight shares."""
    if text is None:
        return Shard()
    index, _, count = text.partition("/")
    numbers = (
        text.isascii() and len(text) <= _LONGEST_SHARD and index.isdecimal() and count.isdecimal()
    )
    if not (numbers and 1 <= int(index) <= int(count)):
        raise UsageError(
            f"--shard {text[:_LONGEST_SHARD]}: write I/N with I from 1 to N, such as 2/8",
            hint="For a Slurm array: --array=1-N and --shard $SLURM_ARRAY_TASK_ID/N.",
        )
    return Shard(int(index), int(count))


def run_manifest(path: Path, options: Options, watching: Watching) -> int:
    """`eaglegen-tui run`: returns the exit code."""
    manifest = load_manifest(path)
    settings = watching.look.over(load_settings(path.parent, Path.cwd()))
    check_look(settings, watching)
    plan = make_plan(manifest, options)  # refuses what it can before there are two processes
    line = tether() if watching.on_screen else UNTETHERED
    return perform(plan, settings, watching, line, path)


def perform(
    plan: Plan, settings: Settings, watching: Watching, line: Tether, path: Path | None = None
) -> int:
    """Run and watch until the end; `path` is the manifest's, where it can be started again."""
    from tui.headless import leave_soon

    key = key_for(settings, plan.manifest.endpoint.base_url)
    run = EngineThread(plan, key=key, reader=reader_for(plan.manifest, settings))
    code = watch(run, settings, watching, line, lambda: remember(_recent(plan, path)))
    if run.error is not None:
        raise run.error
    if run.left_early:
        leave_soon(code)  # a thread may still be reading what is on disk
    return code


def watch(
    run: OwnRun,
    settings: Settings,
    watching: Watching,
    line: Tether,
    started: Callable[[], None],
) -> int:
    """Start an engine and watch it until it ends, whatever becomes of the terminal."""
    from tui import headless
    from tui.background import Background
    from tui.notify import notifying

    on_screen = watching.on_screen
    back = Background(run, line, on_screen=on_screen)
    interval_s = watching.interval_s or settings.interval_s
    with (
        back.surviving_hangup(),
        notifying(run, watching.notify),
        headless.draining_signals(run),
    ):
        run.start()
        started()
        if on_screen:
            parting = _show(run, back, settings, watching.again)
            if parting is Parting.ENDED:
                return run.exit_code
            _go_on(back, parting, run.snapshot())
        return headless.watch(
            run, interval_s=interval_s, as_json=watching.as_json, lost=back.by_hangup
        )


def _show(run: OwnRun, back: Background, settings: Settings, again: str) -> Parting:
    """The screen, from its start to its end, and what it leaves in the scrollback."""
    from tui import keymap
    from tui.app import show
    from tui.headless import Reporter, leave_at_once
    from tui.parting import Exits

    exits = Exits(
        background=back.possible, again=again, lost=back.lose, abandon=lambda: leave_at_once(run)
    )
    left = show(
        run,
        theme=settings.theme,
        fps=settings.fps,
        exits=exits,
        ascii=settings.ascii,
        bandwidth_kb=settings.bandwidth_kb,
        keymap=keymap.loaded(),
    )
    look(Path(run.snapshot().output), seen_now(run.snapshot()))
    if run.ended or left.summary:
        Reporter(as_json=False, err=say).summary(run.snapshot())
    return Parting.ENDED if run.ended else left.parting


def _go_on(back: Background, parting: Parting, snapshot: Snapshot) -> None:
    """The screen is gone and the run is not."""
    if parting is Parting.CRASHED:
        back.by_crash()
        where = shlex.quote(snapshot.output)
        say(
            f"the screen failed; the run goes on without it (process {os.getpid()}).\n"
            "ctrl+c drains it, twice stops it; in another terminal:\n"
            f"  eaglegen-tui attach {where}\n"
        )
    elif parting is Parting.LOST:
        back.by_hangup()
    else:
        back.by_key()


def check_look(settings: Settings, watching: Watching) -> None:
    """Refuse an unknown theme or a broken keymap before anything starts; raises UsageError."""
    check_theme(settings.theme)
    if watching.on_screen:
        from tui import keymap

        keymap.loaded()


def check_theme(name: str) -> None:
    """Refuse an unknown theme before anything starts; raises UsageError."""
    import themes

    try:
        themes.load(name)
    except (themes.ThemeError, OSError) as error:
        raise UsageError(f"theme: {error}") from None


def _recent(plan: Plan, path: Path | None) -> Recent:
    output = str(plan.folder.resolve())
    added = asdict(replace(plan.options, limit=None, retry_failed=False))
    return Recent(
        folder=output,
        manifest="" if path is None else str(path.resolve()),
        name=plan.manifest.run.name,
        started_at=SystemClock().wall(),
        options={**added, "output": output},
    )
