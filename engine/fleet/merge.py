"""Several processes' snapshots as one: shards, or the workers of a fleet; pure.

Counts, rates and limits are summed, series aligned, quantiles the greatest of all; the verdict is
the worst with the name of who has it. Whoever does not answer is named, never left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from engine.errors import ExitCode
from engine.fleet import align
from engine.fleet.view import (
    Seen,
    Whole,
    all_known,
    known_sum,
    merge_events,
    merge_forecasts,
    merge_providers,
    merge_views,
)
from engine.view.gone import ENDED, at_rest
from engine.view.snapshot import DatasetView, RunState, Snapshot

_BUSIEST: Final[tuple[RunState, ...]] = ("running", "draining", "waiting", "paused", "starting")
_GRAVEST: Final = (
    *(ExitCode.INTERNAL, ExitCode.USAGE, ExitCode.HELD, ExitCode.INTERRUPTED),
    *(ExitCode.ENDPOINT, ExitCode.COST_CAP, ExitCode.INCOMPLETE),
)
"""The order of DESIGN §5; what kept a worker from its run stands with the faults of ours."""


@dataclass(frozen=True, slots=True)
class Part:
    """One process as it was last heard of."""

    label: str
    snapshot: Snapshot | None = None
    """None where it has not reported yet."""
    live: bool = False
    note: str = ""
    """What its supervisor or its files say of it: `restarted twice`."""
    missing: bool = False
    """It has not been given at all: what it does is unknown."""

    @property
    def ended(self) -> bool:
        """Whether its session has come to its end."""
        return self.snapshot is not None and self.snapshot.state in ENDED and not self.live

    @property
    def dead(self) -> bool:
        """Whether it went without an end."""
        return self.snapshot is not None and not self.live and not self.ended


@dataclass(frozen=True, slots=True)
class WorkerView:
    """One process as one line."""

    label: str
    state: str
    """A run's state, or `dead`, `missing`, `unheard`."""
    heartbeat_at: float | None
    """Epoch seconds."""
    rows_per_s: float = 0.0
    in_flight: int = 0
    finished: int = 0
    """Prompts that need nothing more."""
    prompts: int = 0
    """Prompts dealt to it, over all datasets."""
    attempt_errors: int = 0
    cost_usd: float | None = None
    host: str = ""
    pid: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class FleetSnapshot(Snapshot):
    """A whole that several processes do."""

    workers: tuple[WorkerView, ...] = ()


@dataclass(frozen=True, slots=True)
class Fleet:
    """What the manifest says of the whole."""

    run: str
    datasets: Mapping[str, Whole]
    """In manifest order."""
    max_cost_usd: float | None = None
    output: str = ""
    model: str = ""
    endpoint: str = ""
    ceiling: int = 0


def merge(fleet: Fleet, parts: Sequence[Part], wall: float) -> FleetSnapshot:
    """All parts as one run, at `wall` (epoch seconds); its journal is FleetJournal's to give."""
    heard = [_at_rest(part) for part in parts if part.snapshot is not None]
    seen = [snapshot for part in heard if (snapshot := part.snapshot) is not None]
    live = [s for part in heard if part.live and (s := part.snapshot) is not None]
    beats = [snapshot.heartbeat_at for snapshot in live]
    until = min(beats) if beats else max((s.heartbeat_at for s in seen), default=wall)
    views = _datasets(fleet, heard, until, len(parts))
    state, code = _state(parts), _exit_code(parts)
    return FleetSnapshot(
        run=fleet.run,
        state=state,
        reason=_reason(parts),
        pid=0,
        host=", ".join(dict.fromkeys(s.host for s in seen)),
        started_at=min((s.started_at for s in seen), default=wall),
        heartbeat_at=until,
        elapsed_s=max((s.elapsed_s for s in seen), default=0.0),
        model=fleet.model,
        limit=sum(s.limit for s in live),
        limit_ceiling=sum(s.limit_ceiling for s in seen) or fleet.ceiling,
        in_flight=sum(s.in_flight for s in seen),
        rows_per_s=sum(s.rows_per_s for s in seen),
        completion_tokens_per_s=sum(s.completion_tokens_per_s for s in seen),
        cost_usd=known_sum(s.cost_usd for s in seen),
        cost_unknown_attempts=sum(s.cost_unknown_attempts for s in seen),
        max_cost_usd=fleet.max_cost_usd,
        loop_lag_ms=max((s.loop_lag_ms for s in seen), default=0.0),
        datasets=views,
        output=fleet.output,
        endpoint=fleet.endpoint,
        limit_reason=_limit_reason(heard),
        in_flight_cost_usd=known_sum(s.in_flight_cost_usd for s in seen),
        projected_cost_usd=all_known(s.projected_cost_usd for s in seen),
        twice_attempts=sum(s.twice_attempts for s in seen),
        twice_usd=all_known(s.twice_usd for s in seen if s.twice_attempts),
        eta_s=_eta(heard, state),
        paused=bool(live) and all(s.paused for s in live),
        providers=merge_providers([s.providers for s in seen]),
        rate=align.rates([(s.rate, s.rows_per_s) for s in seen], until),
        tokens_rate=align.rates([(s.tokens_rate, s.completion_tokens_per_s) for s in seen], until),
        errors_rate=align.summed([s.errors_rate for s in seen], until),
        limit_series=align.summed([s.limit_series for s in seen], until),
        errors_by_family=align.families([s.errors_by_family for s in seen], until),
        events=merge_events([s.events for s in seen]),
        forecast=merge_forecasts([s.forecast for s in seen]),
        exit_code=code,
        workers=tuple(worker(part) for part in parts),
    )


def worker(part: Part) -> WorkerView:
    """One part as a line."""
    snapshot = part.snapshot
    if snapshot is None:
        state = "missing" if part.missing else "starting" if part.live else "unheard"
        return WorkerView(part.label, state, None, note=part.note)
    rested = _at_rest(part).snapshot or snapshot
    return WorkerView(
        label=part.label,
        state="dead" if part.dead else snapshot.state,
        heartbeat_at=snapshot.heartbeat_at,
        rows_per_s=rested.rows_per_s,
        in_flight=rested.in_flight,
        finished=sum(view.ok + view.failed + view.invalid for view in snapshot.datasets),
        prompts=sum(view.prompts for view in snapshot.datasets),
        attempt_errors=sum(view.attempt_errors for view in snapshot.datasets),
        cost_usd=snapshot.cost_usd,
        host=snapshot.host,
        pid=snapshot.pid,
        note=part.note,
    )


def gravest(codes: Iterable[int]) -> int:
    """The exit code of the whole: where several apply, the order of DESIGN §5."""
    found = set(codes)
    return next((int(code) for code in _GRAVEST if code in found), max(found, default=0))


def _at_rest(part: Part) -> Part:
    """Nothing of a process that is gone is in flight."""
    if part.snapshot is None or part.live:
        return part
    return replace(part, snapshot=at_rest(part.snapshot))


def _datasets(
    fleet: Fleet, heard: Sequence[Part], until: float, parts: int
) -> tuple[DatasetView, ...]:
    seen: dict[str, list[Seen]] = {name: [] for name in fleet.datasets}
    for part in heard:
        for view in part.snapshot.datasets if part.snapshot else ():
            seen.setdefault(view.name, []).append(Seen(part.label, view))
    unnamed = {
        name: Whole(sum(s.view.prompts for s in found), sum(s.view.prompts for s in found))
        for name, found in seen.items()
        if name not in fleet.datasets
    }
    wholes = {**fleet.datasets, **unnamed}
    return tuple(
        merge_views(name, found, wholes[name], until, unheard=len(found) < parts)
        for name, found in seen.items()
    )


def _state(parts: Sequence[Part]) -> RunState:
    """The busiest state of those that work; once none does, how they ended."""
    states = {part.snapshot.state for part in parts if part.live and part.snapshot is not None}
    for word in _BUSIEST:
        if word in states:
            return word
    if any(part.live for part in parts):
        return "starting"
    done = all(part.snapshot is not None and part.snapshot.state == "done" for part in parts)
    return "done" if parts and done else "stopped"


def _exit_code(parts: Sequence[Part]) -> int | None:
    """None while a part goes on, or where one has gone without saying how it ended."""
    codes = [part.snapshot.exit_code for part in parts if part.snapshot is not None]
    if len(codes) < len(parts) or any(part.live for part in parts):
        return None
    known = [code for code in codes if code is not None]
    return gravest(known) if known and len(known) == len(parts) else None


def _reason(parts: Sequence[Part]) -> str:
    """Who does not work and why; the same reason of several is told once."""
    why: dict[str, list[str]] = {}
    for part in parts:
        if words := _why(part):
            why.setdefault(words, []).append(part.label)
    return "; ".join(f"{_several(labels, len(parts))}{words}" for words, labels in why.items())


def _several(labels: Sequence[str], total: int) -> str:
    if len(labels) == total and total > 1:
        return f"all {total}: "
    return f"{', '.join(labels)}: "


def _why(part: Part) -> str:
    if part.snapshot is None:
        if part.missing:
            return part.note or "is not among the folders given"
        return part.note or ("" if part.live else "has not reported yet")
    if part.dead:
        return f"DEAD while {part.snapshot.state}{f' ({part.note})' if part.note else ''}"
    if part.snapshot.state == "running":
        return part.note
    return part.snapshot.reason


def _limit_reason(heard: Sequence[Part]) -> str:
    reasons = [(p.label, p.snapshot.limit_reason) for p in heard if p.live and p.snapshot]
    said = [(label, words) for label, words in reasons if words]
    if not said:
        return ""
    label, words = said[0]
    same = len({each for _, each in said}) == 1 and len(said) == len(reasons)
    return words if same else f"{label}: {words}"


def _eta(heard: Sequence[Part], state: RunState) -> float | None:
    """When the last one is through; unknown where a live one does not know, or one is dead."""
    if state in ENDED or any(part.dead for part in heard):
        return None
    etas = [part.snapshot.eta_s for part in heard if part.live and part.snapshot is not None]
    return max((eta for eta in etas if eta is not None), default=None) if None not in etas else None
