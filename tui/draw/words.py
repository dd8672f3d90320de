"""States, verdicts and endings in words, each with its glyph and the role of its colour."""

from __future__ import annotations

import math
from typing import NamedTuple

from engine import format as fmt
from engine.clock import local_hms
from engine.errors import ExitCode
from engine.view.snapshot import DatasetView, ErrorLine, Forecast, RunState, Snapshot
from tui import glyphs

_WHOLE_FROM = 9.95
STALL_S = 120.0
"""Seconds without a row, with requests in flight, after which a dataset is called stalled."""


class Word(NamedTuple):
    """A word that is told apart without its colour."""

    glyph: str
    text: str
    role: str

    def __str__(self) -> str:
        return f"{self.glyph} {self.text}"


_RUN = {
    "starting": Word(glyphs.STARTING, "STARTING", "running"),
    "running": Word(glyphs.RUNNING, "RUNNING", "running"),
    "paused": Word(glyphs.PAUSED, "PAUSED", "paused"),
    "waiting": Word(glyphs.WAITING, "WAITING", "warn"),
    "draining": Word(glyphs.DRAINING, "DRAINING", "warn"),
    "done": Word(glyphs.DONE, "DONE", "ok"),
    "stopped": Word(glyphs.STOPPED, "STOPPED", "warn"),
}
_DATASET = {
    "queued": Word(glyphs.QUEUED, "queued", "dim"),
    "running": Word(glyphs.RUNNING, "RUNNING", "running"),
    "paused": Word(glyphs.PAUSED, "PAUSED", "paused"),
    "skipped": Word(glyphs.SKIPPED, "SKIPPED", "paused"),
    "done": Word(glyphs.DONE, "DONE", "ok"),
    "budget": Word(glyphs.BUDGET, "BUDGET", "ok"),
}
_HELD: dict[RunState, Word] = {
    "paused": Word(glyphs.PAUSED, "PAUSED", "paused"),
    "waiting": Word(glyphs.WAITING, "WAITING", "warn"),
    "draining": Word(glyphs.DRAINING, "DRAIN", "warn"),
    "stopped": Word(glyphs.STOPPED, "STOPPED", "warn"),
}
_STALLED = Word(glyphs.STALLED, "STALLED", "warn")
_ENDED_BADLY = Word(glyphs.STOPPED, "STOPPED", "bad")
_DONE_WITH_LOSSES = Word(glyphs.SUSPECT, "DONE", "warn")


def run_state(snapshot: Snapshot) -> Word:
    """The run's state; a stop by a fault or by the endpoint is a bad one, as losses are."""
    word = _RUN[snapshot.state]
    if snapshot.state == "done" and snapshot.exit_code:
        return _DONE_WITH_LOSSES
    if snapshot.state == "stopped" and snapshot.exit_code in {ExitCode.INTERNAL, ExitCode.ENDPOINT}:
        return _ENDED_BADLY
    return word


def dataset_state(view: DatasetView, run: RunState = "running") -> Word:
    """The dataset's state; one that would run shows why it does not when the whole run does not.

    `STALLED` is one that runs and has got nothing for a while.
    """
    if view.state == "running" and run in _HELD:
        return _HELD[run]
    if view.state == "done" and (view.failed or view.invalid):
        return _DONE_WITH_LOSSES
    return _STALLED if silence_s(view) >= STALL_S else _DATASET[view.state]


def silence_s(view: DatasetView) -> float:
    """Seconds at the end of the rate series in which requests were out and no row came; 0 if none.

    Only after this session's first row: before it, nothing says how long replies take.
    """
    if view.state != "running" or not view.in_flight or view.rows <= view.restored_rows:
        return 0.0
    quiet = 0
    for value in reversed(view.rate.values):
        if value is None:
            return 0.0
        if value > 0:
            break
        quiet += 1
    return quiet * view.rate.width


_RANK = {"STRUCTURAL": 0, "ACTIVE": 1, None: 2, "RESOLVED": 3}


def worst_first(errors: tuple[ErrorLine, ...]) -> list[ErrorLine]:
    """Structural faults, then what still arrives, then bare counts, then what has ended."""
    return sorted(errors, key=lambda line: (_RANK[line.verdict], -line.recent, -line.last_at))


def moment(snapshot: Snapshot) -> float:
    """Up to when ages are counted, in epoch seconds; infinite once the run has ended."""
    return snapshot.heartbeat_at if snapshot.exit_code is None else math.inf


def verdict(line: ErrorLine, now: float) -> Word:
    """The verdict in words: `RESOLVED 4m ago`, `ACTIVE 12 in the last minute, rising`.

    `now` is the `moment`: where it has ended, an age would stand still, and a time of day is said.
    """
    if line.verdict == "STRUCTURAL":
        return Word(glyphs.STRUCTURAL, "STRUCTURAL", "bad")
    if line.verdict == "ACTIVE":
        trend = f", {line.trend}" if line.trend else ""
        count = fmt.thousands(line.recent)
        return Word(glyphs.ACTIVE, f"ACTIVE {count} in the last minute{trend}", "warn")
    last = f"at {local_hms(line.last_at)}"
    if now != math.inf:
        last = fmt.ago(max(0.0, now - line.last_at))
    if line.verdict == "RESOLVED":
        return Word(glyphs.RESOLVED, f"RESOLVED {last}", "ok")
    role = "warn" if line.recent else "dim"
    return Word(glyphs.DOT, f"{fmt.thousands(line.count)}, last {last}", role)


def cause(line: ErrorLine) -> str:
    """Which family, and whose: `rate_limit SiliconFlow`."""
    family = fmt.safe_text(line.family, 28)
    return f"{family} {fmt.safe_text(line.provider, 24)}" if line.provider else family


def label(view: DatasetView, cells: int | None = None) -> str:
    """What every number of a dataset stands beside: `B6_ultrachat · 15,000 prompts`.

    Where `cells` is short the name is cut, never the total.
    """
    total = f" {glyphs.DOT} {fmt.plural(view.prompts, 'prompt')}"
    if view.manifest_prompts is not None and view.manifest_prompts != view.prompts:
        total += f" (manifest {fmt.thousands(view.manifest_prompts)})"
    room = None if cells is None else max(1, cells - fmt.width(total))
    return fmt.safe_text(view.name, room) + total


_ENDINGS = {
    ExitCode.OK: "every dataset is complete",
    ExitCode.INTERNAL: "a fault of this program",
    ExitCode.ENDPOINT: "the endpoint refused the run",
    ExitCode.COST_CAP: "the cost cap is reached",
}


def ending(snapshot: Snapshot) -> str:
    """What the run's exit code says (DESIGN §5), with the prompts that it is about."""
    code = snapshot.exit_code
    total = fmt.plural(sum(view.prompts for view in snapshot.datasets), "prompt")
    if code == ExitCode.INCOMPLETE:
        return _losses(snapshot, total)
    if code == ExitCode.INTERRUPTED:
        left = sum(view.left + view.in_flight for view in snapshot.datasets)
        return f"{fmt.thousands(left)} of {total} are left"
    if code == ExitCode.OK and _pilot(snapshot):
        finished = fmt.thousands(sum(map(done, snapshot.datasets)))
        return f"the pilot is complete: {finished} of {total}"
    known = {int(member): text for member, text in _ENDINGS.items()}
    return known.get(code or 0, "ended")


def _losses(snapshot: Snapshot, total: str) -> str:
    failed = sum(view.failed for view in snapshot.datasets)
    invalid = sum(view.invalid for view in snapshot.datasets)
    if not invalid:
        return f"{fmt.thousands(failed)} of {total} failed"
    return f"{fmt.thousands(failed + invalid)} of {total} failed or were invalid"


TAKEN_UP = " takes them up"


def next_step(snapshot: Snapshot) -> str:
    """What an ended run leaves to do, and how; empty where it is complete."""
    code = snapshot.exit_code
    if code == ExitCode.OK:
        return "`run` without --limit goes on" if _pilot(snapshot) else ""
    lost = any(view.failed for view in snapshot.datasets)
    if code == ExitCode.INCOMPLETE or (code == ExitCode.ENDPOINT and lost):
        return f"`run --retry-failed`{TAKEN_UP}" if lost else ""
    if code == ExitCode.COST_CAP:
        return "raise max_cost_usd: the next run goes on"
    return "the next run goes on"


def _pilot(snapshot: Snapshot) -> bool:
    """Whether prompts are left because only the first ones were asked for."""
    return any(view.pilot is not None and view.left for view in snapshot.datasets)


def expected_usd(known: Forecast) -> str:
    """`$80 to $120`: the estimate of the whole run's or dataset's cost; empty without prices."""
    if known.usd_low is None or known.usd_high is None:
        return ""
    low, high = _dollars(known.usd_low), _dollars(known.usd_high)
    return low if low == high else f"{low}-{high}"


def expected_time(known: Forecast) -> str:
    """`1h 40m-3h 05m`: the estimate of this session's length."""
    low, high = fmt.duration(known.seconds_low), fmt.duration(known.seconds_high)
    return low if low == high else f"{low}-{high}"


def estimated(known: Forecast | None) -> tuple[str, str]:
    """What stands beside the cost and the time at the end: ` (estimated $58-$97)`."""
    if known is None:
        return "", ""
    usd = expected_usd(known)
    return f" (estimated {usd})" if usd else "", f" (estimated {expected_time(known)})"


def _dollars(usd: float) -> str:
    """Whole dollars from ten on: an estimate knows no cents."""
    return f"${usd:,.0f}" if usd >= _WHOLE_FROM else fmt.money(usd)


def seconds(span: float) -> str:
    """How long a reply took: tenths below ten seconds, where they matter."""
    return f"{span:.1f}s" if 0 <= span < _WHOLE_FROM else fmt.duration(span)


def key_of(number: int) -> str:
    """The digit that selects the dataset of this number (from 1); a dot where there is none."""
    return str(number) if number in range(1, 10) else glyphs.DOT


def limit_of(view: DatasetView) -> str:
    """What ends the dataset first, where it is not the prompts: `by tokens`, `by dollars`."""
    return f" by {view.rate_limited_by}" if view.rate_limited_by in {"tokens", "dollars"} else ""


def done(view: DatasetView) -> int:
    """Prompts of the dataset that need nothing more: ok, failed or invalid."""
    return view.ok + view.failed + view.invalid
