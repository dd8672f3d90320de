"""The one line that is quiet while nothing is wrong, and else says what is worst."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from engine import format as fmt
from engine.errors import ExitCode
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
    short: str = ""
    """The same in fewer words, for where it does not fit."""
    kept: int = 0
    """Characters at its end that stay where it is cut: the next step."""


_LEAST = 20
"""Cells of a cut line's beginning without which its end says nothing."""
_ADDRESS = re.compile(r"(?: (?:at|from|to|by))? ?[(]?https?://[^\s)]*[^\s).,;:][)]?")
_HOPELESS = re.compile(r"(the first \d+ prompts all failed), the last with ([^:.]+): ([^.]+)")
_ENDED_BY = "the endpoint ends the run: "
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
    count = f"{fmt.thousands(failed)} of {fmt.plural(total, 'prompt')} failed"
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
        yield Alarm("warn", f"{word}{_held(snapshot)}{because}")
    elif snapshot.state == "draining":
        yield Alarm("info", f"{word}, {flying}, nothing new is sent{because}")
    elif snapshot.state == "paused":
        # the run's own resume leaves a dataset paused that was paused by itself
        key = "P resumes" if snapshot.paused else "p resumes them one by one"
        yield Alarm("info", f"{word}, {flying}, {key}{because}")
    elif snapshot.state == "starting":
        yield Alarm("info", f"{word}{because}")


def _held(snapshot: Snapshot) -> str:
    """What a waiting run needs: nothing, but for the datasets that were paused by order."""
    paused = [view for view in snapshot.datasets if view.state == "paused"]
    if not paused:
        return ", goes on by itself"
    names = fmt.safe_text(paused[0].name, 24)
    if len(paused) == 1:
        return f"; {names} is paused: p resumes; the rest goes on by itself"
    names += f" and {fmt.thousands(len(paused) - 1)} more"
    return f"; {names} are paused: p resumes them one by one; the rest goes on by itself"


def _ended(snapshot: Snapshot, because: str) -> Alarm:
    code = snapshot.exit_code or 0
    word = words.run_state(snapshot)
    levels = {0: "ok", 1: "bad", 4: "bad"}
    start = f"{word}, exit {code}: {_why_ended(snapshot, because)}"
    step = words.next_step(snapshot)
    end = f"; {step} {glyphs.DOT} q closes" if step else "; q closes"
    brief = end.replace(words.TAKEN_UP, "")
    return Alarm(levels.get(code, "warn"), start + end, short=start + brief, kept=len(brief))


def _why_ended(snapshot: Snapshot, because: str) -> str:
    """The ending with its reason; of the endpoint's refusal the cause first, without addresses."""
    if snapshot.exit_code != ExitCode.ENDPOINT or not because:
        return words.ending(snapshot) + because
    why = because.removeprefix(": ").removeprefix(_ENDED_BY)
    return _HOPELESS.sub(r"\3 (\2): \1", _ADDRESS.sub("", why)).rstrip(".")


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
    """Verdict, count and age first: they stay where the line is cut."""
    word = words.verdict(error, now)
    cure = error.action or error.evidence
    tail = f": {fmt.safe_text(cure)}" if cure else ""
    count = f"{fmt.thousands(error.count)}, last {fmt.ago(max(0.0, now - error.last_at))}"
    if error.verdict == "ACTIVE" and error.recent:
        count = word.text.removeprefix("ACTIVE ")
    what = f"{error.verdict} {words.cause(error)} {count}"
    text = f"{word.glyph} {what} {glyphs.DOT} {words.label(view)}{tail}"
    level = "bad" if error.verdict == "STRUCTURAL" else "warn"
    return Alarm(level, text, error.recent or error.count / 1e9)


def alarm_line(found: list[Alarm], cells: int, calm: str = "") -> Line:
    """The worst alarm as a strip of its colour, with the number of the others; else `calm`, dim."""
    if not found:
        return exactly((Span(f" {calm}", "dim"),), cells)
    worst, more = found[0], f" {_others(found[1:])} " if len(found) > 1 else " "
    room = max(0, cells - len(more) - 1)
    text = worst.text if fmt.width(worst.text) <= room else worst.short or worst.text
    if fmt.width(text) > room > worst.kept + _LEAST:
        start, end = text[: len(text) - worst.kept], text[len(text) - worst.kept :]
        text = fmt.clip(start, room - fmt.width(end)) + end
    text = fmt.pad(f" {text}", max(0, cells - len(more)))
    return exactly((Span(text + more, f"alarm_{worst.level}", bold=True),), cells)


def _others(found: list[Alarm]) -> str:
    causes = all(alarm.weight < math.inf for alarm in found)
    return f"+{fmt.plural(len(found), 'cause')}" if causes else f"+{fmt.thousands(len(found))} more"
