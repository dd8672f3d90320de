"""The workers of a fleet, a line each: who does which shard, how far, how fast, and who is dead."""

from __future__ import annotations

from collections.abc import Sequence

from engine import format as fmt
from engine.fleet.merge import FleetSnapshot, WorkerView
from engine.view.snapshot import Snapshot
from tui.draw.paint import Line, Span, exactly
from tui.draw.table import Column, table

_LEAST_ROWS = 16
"""Lines of a screen from which workers have lines at all; on a smaller one the alarm names them."""
_SHARE = 4
"""They take at most one line in so many."""
_STALE_S = 5.0
_ROLES = {"dead": "bad", "missing": "bad", "unheard": "bad", "waiting": "warn", "paused": "warn"}
_GRAVE = ("dead", "missing", "unheard", "stopped", "waiting", "draining", "paused", "starting")


def crew_rows(snapshot: Snapshot, rows: int) -> int:
    """Lines for the workers on a screen of so many lines; 0 where there are none."""
    workers = _workers(snapshot)
    if not workers or rows < _LEAST_ROWS:
        return 0
    return min(len(workers) + 1, max(2, rows // _SHARE))


def crew(snapshot: Snapshot, cells: int, rows: int, wall: float) -> list[Line]:
    """A line of titles and one per worker; where there are too many, those in trouble first."""
    if rows <= 0:
        return []
    workers, room = list(_workers(snapshot)), rows - 1
    unseen: list[WorkerView] = []
    if len(workers) > room:
        workers.sort(key=lambda each: _GRAVE.index(each.state) if each.state in _GRAVE else 99)
        workers, unseen = workers[: room - 1], workers[room - 1 :]
    columns = (
        Column("worker"),
        Column("state"),
        Column("prompts", right=True, rank=1),
        Column("req/s", right=True),
        Column("in flight", right=True, rank=3),
        Column("err", right=True, rank=2),
        Column("cost", right=True, rank=4),
        Column("heartbeat", right=True, rank=1),
        Column("note", rank=5, grow=True),
    )
    lines = table(columns, [_row(each, wall) for each in workers], cells, indent=0)
    if unseen:
        word = f"{fmt.plural(len(unseen), 'more worker')}: {', '.join(_states(unseen))}"
        lines.append(exactly((Span(word, "dim"),), cells))
    return lines


def _workers(snapshot: Snapshot) -> Sequence[WorkerView]:
    return snapshot.workers if isinstance(snapshot, FleetSnapshot) else ()


def _states(workers: Sequence[WorkerView]) -> list[str]:
    states = dict.fromkeys(worker.state for worker in workers)
    return [f"{sum(w.state == state for w in workers)} {state}" for state in states]


def _row(worker: WorkerView, wall: float) -> tuple[Span, ...]:
    age = None if worker.heartbeat_at is None else max(0.0, wall - worker.heartbeat_at)
    stale = age is not None and age >= _STALE_S and worker.state not in {"done", "stopped"}
    where = f"process {worker.pid} on {worker.host}" if worker.pid else ""
    note = "  ".join(filter(None, (worker.note, where)))
    return (
        Span(fmt.safe_text(worker.label, 40)),
        Span(worker.state, _ROLES.get(worker.state, "text"), bold=worker.state == "dead"),
        Span(f"{fmt.thousands(worker.finished)} of {fmt.thousands(worker.prompts)}"),
        Span(f"{worker.rows_per_s:.1f}"),
        Span(fmt.thousands(worker.in_flight)),
        Span(fmt.thousands(worker.attempt_errors), "warn" if worker.attempt_errors else "dim"),
        Span(fmt.money(worker.cost_usd)),
        Span("?" if age is None else fmt.duration(age), "bad" if stale else "dim"),
        Span(fmt.safe_text(note), "warn" if worker.note else "dim"),
    )
