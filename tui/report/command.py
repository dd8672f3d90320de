"""Writes the report: data (its path) on stdout, narration on stderr."""

from __future__ import annotations

import sys
from pathlib import Path

from engine import format as fmt
from engine.clock import SystemClock
from engine.disk.rundir import write_atomically
from engine.errors import ExitCode, UsageError
from engine.past.tape import read_tape
from engine.settings import load_settings
from tui.report.markup import Outside
from tui.report.page import GENERATOR, render

NAME = "report.html"
_HEAD = 1024
"""Bytes in which a report of ours says what it is."""


def report(folder: Path, out: Path | None, *, force: bool) -> int:
    """Write one page about a run; raises UsageError where nothing is recorded, or a file stands."""
    out = folder / NAME if out is None else out
    tape = read_tape(folder)
    _refuse_the_run_s_own(folder, out)
    _refuse_others(out, force=force)
    page = render(tape, SystemClock().wall(), Outside(_secrets()))
    try:
        write_atomically(out, page)
    except OSError as error:
        raise UsageError(f"{out}: cannot be written: {error}") from None
    sys.stdout.write(f"{out}\n")
    state = "a live run" if tape.live else "a run"
    points = sum(len(session) for session in tape.sessions)
    entries = fmt.plural(len(tape.journal), "journal entry", "journal entries")
    sys.stderr.write(
        f"report of {state}: {fmt.plural(len(tape.sessions), 'session')}, "
        f"{fmt.plural(points, 'point')} in time, {entries}, "
        f"{len(page) / 1000:.0f} KB{_odd(tape.odd)}\n"
    )
    return int(ExitCode.OK)


def _odd(odd: dict[str, int]) -> str:
    count = sum(odd.values())
    return f"; {fmt.plural(count, 'unreadable line')} left out ({', '.join(odd)})" if count else ""


def _refuse_the_run_s_own(folder: Path, out: Path) -> None:
    """What the run has paid for stays, whatever is forced: only a page of its own goes in there."""
    run, place = folder.resolve(), out.resolve()
    page = place.parent == run and place.suffix == ".html"
    if place.is_relative_to(run) and not page:
        raise UsageError(
            f"{out} is among the run's own files",
            hint="Name a .html file, in the run directory itself or outside it.",
        )


def _refuse_others(out: Path, *, force: bool) -> None:
    """A file that is there and no report of ours stays, unless it is told to go."""
    if force or not out.exists():
        return
    try:
        with out.open("rb") as file:
            ours = GENERATOR.encode() in file.read(_HEAD)
    except OSError as error:
        raise UsageError(f"{out}: cannot be replaced: {error}") from None
    if not ours:
        raise UsageError(f"{out} is there and no report of ours", hint="Use --force, or --out.")


def _secrets() -> list[str]:
    settings = load_settings(Path.cwd())
    keys = (settings.api_key, settings.openrouter_api_key)
    return [key.get_secret_value() for key in keys if key is not None]
