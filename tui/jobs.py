"""Starts a run and gives it a front end: the screen in a terminal, lines otherwise."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from engine.errors import UsageError
from engine.manifest import Manifest, load_manifest
from engine.plan import Options, Shard, make_plan
from engine.readers import reader_for
from engine.runner import EngineThread
from engine.settings import Settings, key_for, load_settings


@dataclass(frozen=True, slots=True)
class Watching:
    """How the person or script wants to watch; None: what the settings say."""

    headless: bool = False
    as_json: bool = False
    interval_s: float | None = None
    theme: str | None = None

    @property
    def on_screen(self) -> bool:
        """Textual draws on stderr and reads stdin, so both must be a terminal."""
        wanted = not self.headless and not self.as_json
        return wanted and sys.stdin.isatty() and sys.stderr.isatty()


def parse_shard(text: str | None) -> Shard:
    """`2/8` is the second of eight shares."""
    if text is None:
        return Shard()
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise UsageError(f"--shard {text}: write I/N with I from 1 to N, such as 2/8")
    return Shard(int(index), int(count))


def run_manifest(path: Path, options: Options, watching: Watching) -> int:
    """`eaglegen-tui run`: returns the exit code."""
    manifest = load_manifest(path)
    settings = load_settings(path.parent, Path.cwd())
    return perform(manifest, options, settings, watching)


def perform(manifest: Manifest, options: Options, settings: Settings, watching: Watching) -> int:
    """Plan, then run and watch until it ends."""
    plan = make_plan(manifest, options)
    key = key_for(settings, plan.manifest.endpoint.base_url)
    run = EngineThread(plan, key=key, reader=reader_for(plan.manifest, settings))
    code = watch(run, settings, watching)
    if run.error is not None:
        raise run.error
    return code


def watch(run: EngineThread, settings: Settings, watching: Watching) -> int:
    """Start an engine and show it until it ends or the person leaves."""
    from tui.headless import Reporter, start_and_watch

    if not watching.on_screen:
        interval_s = watching.interval_s or settings.interval_s
        return start_and_watch(run, interval_s=interval_s, as_json=watching.as_json)
    from tui.app import run_app

    run.start()
    theme = watching.theme or settings.theme
    code = run_app(run, theme=theme, fps=settings.fps)
    if run.ended:
        Reporter(as_json=False).summary(run.snapshot())
    return code


def quiet_environment() -> None:
    """Keep libraries from writing progress bars into our stderr."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
