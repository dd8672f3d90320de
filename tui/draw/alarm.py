"""The one line that is quiet while nothing is wrong, and else says what is worst."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from engine import format as fmt
from engine.view.snapshot import DatasetView, ErrorLine, Snapshot
from tui import glyphs
from tui.draw import words
from tui.draw.paint import Line, Span, exactly

SILENT_S = 10.0
"""Seconds without a heartbeat after which the numbers are called old."""


class Alarm(NamedTuple):
    """A sentence with its severity: `bad`, `warn`, `ok` or `info`."""

    level: str
    text: str
    weight: float = math.inf
    """How much of it there is: of one level the heaviest is said; what concerns the run is."""


_ORDER = ("bad", "warn", "ok", "info")


def alarms(snapshot: Snapshot, age_s: float, frozen_at: str = "") -> list[Alarm]:
    """All that deserves a word now, the worst first."""
    found = list(_run_alarms(snapshot, age_s, frozen_at))
    for view in snapshot.datasets:
        found.extend(_dataset_alarms(view, snapshot))
    return sorted(found, key=lambda alarm: (_ORDER.index(alarm.level), -alarm.weight))


def calm(snapshot: Snapshot) -> str:
    """What stands in the alarm's place while there is none."""
    failed = sum(view.failed + view.invalid for view in snapshot.datasets)
    total = sum(view.prompts for view in snapshot.datasets)
    if not total:
        return ""
    recent = sum(error.recent for view in snapshot.datasets for error in view.errors)
    count = f"{fmt.thousands(failed)} of {fmt.thousands(total)} prompts failed"
    now = f"{glyphs.DONE} no errors in the last minute"
    if recent:
        now = f"{fmt.plural(recent, 'failed attempt')} in the last minute"
    said = [now, count]
    if snapshot.state == "running" and snapshot.reason:  # its last prompts, with their age
        said.insert(0, fmt.safe_text(snapshot.reason))
    return f" {glyphs.DOT} ".join(said)


def _run_alarms(snapshot: Snapshot, age_s: float, frozen_at: str) -> Iterator[Alarm]:
    reason = fmt.safe_text(snapshot.reason)
    because = f": {reason}" if reason else ""
    if snapshot.exit_code is not None:
        yield _ended(snapshot, because)
    elif age_s >= SILENT_S:
        silent = fmt.duration(age_s)
        text = f"{glyphs.STRUCTURAL} ENGINE SILENT for {silent}: the numbers are that old"
        yield Alarm("bad", text)
    if frozen_at:
        yield Alarm("warn", f"{glyphs.FROZEN} VIEW FROZEN at {frozen_at}: the run goes on; f thaws")
    if snapshot.exit_code is None:
        yield from _state_alarm(snapshot, because)


def _state_alarm(snapshot: Snapshot, because: str) -> Iterator[Alarm]:
    word = words.run_state(snapshot)
    flying = f"{fmt.thousands(snapshot.in_flight)} in flight finish"
    if not snapshot.in_flight:
        flying = "nothing is in flight"
    if snapshot.state == "waiting":
        yield Alarm("warn", f"{word}, goes on by itself{because}")
    elif snapshot.state == "draining":
        yield Alarm("info", f"{word}, {flying}, nothing new is sent{because}")
    elif snapshot.state == "paused":
        yield Alarm("info", f"{word}, {flying}, P resumes{because}")
    elif snapshot.state == "starting":
        yield Alarm("info", f"{word}{because}")


def _ended(snapshot: Snapshot, because: str) -> Alarm:
    code = snapshot.exit_code or 0
    word = words.run_state(snapshot)
    levels = {0: "ok", 1: "bad", 4: "bad"}
    text = f"{word}, exit {code}: {words.ending(snapshot)}{because}; q closes"
    return Alarm(levels.get(code, "warn"), text)


def _dataset_alarms(view: DatasetView, snapshot: Snapshot) -> Iterator[Alarm]:
    silent = words.silence_s(view)
    if silent >= words.STALL_S and snapshot.state == "running":
        waited = fmt.duration(silent)
        text = f"{glyphs.STALLED} {words.label(view)}: no row for {waited}"
        yield Alarm("warn", text, view.in_flight)
    if snapshot.exit_code is not None:
        return
    for error in words.worst_first(view.errors):
        if error.verdict in {"STRUCTURAL", "ACTIVE"}:
            yield _error(view, error, snapshot.heartbeat_at)


def _error(view: DatasetView, error: ErrorLine, now: float) -> Alarm:
    word = words.verdict(error, now)
    cure = error.action or error.evidence
    tail = f": {fmt.safe_text(cure)}" if cure else ""
    verdict, _, count = word.text.partition(" ")
    what = f"{verdict} {words.cause(error)}{', ' + count if count else ''}"
    text = f"{word.glyph} {words.label(view)}: {what}{tail}"
    level = "bad" if error.verdict == "STRUCTURAL" else "warn"
    return Alarm(level, text, error.recent or error.count / 1e9)


def alarm_line(found: list[Alarm], cells: int, calm: str = "") -> Line:
    """The worst alarm as a strip of its colour, with the number of the others; else `calm`, dim."""
    if not found:
        return exactly((Span(f" {calm}", "dim"),), cells)
    worst = found[0]
    more = f" and {fmt.plural(len(found) - 1, 'other')} " if len(found) > 1 else " "
    text = fmt.pad(f" {worst.text}", max(0, cells - len(more)))
    return exactly((Span(text + more, f"alarm_{worst.level}", bold=True),), cells)
