"""The snapshots around a session: before the endpoint has answered, and when it never did."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.commands import Command
from engine.disk.jsonlines import dump
from engine.disk.rundir import STATUS, read_json, write_atomically
from engine.errors import EaglegenError, UsageError
from engine.link.mailbox import LEFT_EARLY
from engine.plan import DatasetPlan, Plan
from engine.view.frame import status
from engine.view.snapshot import DatasetView, Snapshot

_LIKE: Mapping[str, Any] = {
    **dict.fromkeys(("ok", "failed", "invalid", "rows", "attempt_errors", "completion_tokens"), 0),
    "cost_usd": None,
    "exactness": {},
    "flags": {},
    "errors": [],
}
"""Of each key that is taken over a value of its type; None: an amount, or unknown."""
_KEPT = (
    *("ok", "failed", "invalid", "rows", "attempt_errors", "completion_tokens", "cost_usd"),
    *("exactness", "flags"),
)


def first_snapshot(plan: Plan, wall: float) -> Snapshot:
    """The run before the endpoint has answered: what the last session counted, at rest."""
    earlier = _counted(plan.folder)
    views = tuple(_view(dataset, earlier.get(dataset.name, {})) for dataset in plan.datasets)
    costs = [view.cost_usd for view in views if view.cost_usd is not None]
    return Snapshot(
        run=plan.manifest.run.name,
        state="starting",
        reason="asking the endpoint, reading what is on disk",
        pid=os.getpid(),
        host=socket.gethostname(),
        started_at=wall,
        heartbeat_at=wall,
        elapsed_s=0.0,
        model=plan.manifest.endpoint.model,
        limit=0,
        limit_ceiling=plan.concurrency,
        in_flight=0,
        rows_per_s=0.0,
        completion_tokens_per_s=0.0,
        cost_usd=sum(costs) if costs else None,
        cost_unknown_attempts=0,
        max_cost_usd=plan.manifest.limits.max_cost_usd,
        loop_lag_ms=0.0,
        datasets=views,
        output=str(plan.folder),
        endpoint=plan.manifest.endpoint.base_url,
    )


def refused(snapshot: Snapshot, error: BaseException, wall: float, code: int) -> Snapshot:
    """The last snapshot of a session that ended before it began; the counts on disk stay."""
    reason = error.message if isinstance(error, EaglegenError) else str(error)
    return replace(
        snapshot,
        state="stopped",
        reason=reason or type(error).__name__,
        heartbeat_at=wall,
        exit_code=code,
    )


def left_early(snapshot: Snapshot, origin: str, wall: float, code: int) -> Snapshot:
    """The last snapshot of a session that was told to end before its first request."""
    return replace(
        snapshot,
        state="stopped",
        reason=f"{LEFT_EARLY}, by order ({origin})",
        heartbeat_at=wall,
        exit_code=code,
    )


def write_starting(folder: Path, snapshot: Snapshot) -> None:
    """The heartbeat of a run that has not begun: `status` and `attach` find a live run.

    The verdicts of an earlier session stay until this one has read what is on disk.
    """
    record, earlier = status(snapshot), _counted(folder)
    for view in record["datasets"]:
        view["errors"] = earlier.get(view["name"], {}).get("errors", [])
    with suppress(OSError):  # a disk that refuses is reported once the run writes to it
        write_atomically(folder / STATUS, dump(record))


def check_order(plan: Plan, command: Command) -> None:
    """Refuse an order that cannot be carried out whatever the endpoint says; raises UsageError."""
    name = getattr(command, "dataset", None)
    known = [dataset.name for dataset in plan.datasets]
    if name is not None and name not in known:
        raise UsageError(f"no dataset is called {name!r}", hint=f"There are {', '.join(known)}.")


def _view(plan: DatasetPlan, earlier: Mapping[str, Any]) -> DatasetView:
    view = DatasetView(
        name=plan.name,
        state="queued",
        prompts=plan.prompts,
        token_budget=plan.dataset.token_budget,
        **{key: earlier[key] for key in _KEPT if key in earlier},
    )
    return replace(view, left=max(0, view.prompts - view.ok - view.failed - view.invalid))


def _counted(folder: Path) -> dict[str, Mapping[str, Any]]:
    """What the last session's status.json says of each dataset; nothing where it is not ours."""
    record = read_json(folder / STATUS)
    views = record.get("datasets") if isinstance(record, dict) else None
    if not isinstance(views, list):
        return {}
    return {str(v["name"]): v for v in views if isinstance(v, dict) and _is_view(v)}


def _is_view(value: Mapping[str, Any]) -> bool:
    """Whether this is a dataset as we write it: another program's file must not end the run."""
    return "name" in value and all(
        type(value.get(key, like)) in ({int, float, type(None)} if like is None else {type(like)})
        for key, like in _LIKE.items()
    )
