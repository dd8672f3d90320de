"""What the files of run directories say of a fleet: who works on them, and how far they are."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from engine.disk.entries import moment
from engine.disk.rundir import STATUS, is_held, read_json
from engine.fleet.merge import Fleet, Part
from engine.fleet.runs import OpenRun, RunSet
from engine.fleet.shares import deal
from engine.fleet.view import Whole, all_known
from engine.past.history import picture
from engine.view.gone import ENDED
from engine.view.snapshot import Snapshot

FRESH_S: Final = 15.0
"""A heartbeat of another host that is younger stands for a live process: locks may end at hosts."""


def is_live(folder: Path, record: Mapping[str, Any] | None, wall: float) -> bool:
    """Whether a process does this run, by its lock, or by its heartbeat where that is elsewhere.

    A shared file system may keep locks to each host (flock on NFS before Linux 2.6.12, on Lustre
    without `-o flock`), and clocks of hosts may differ by some seconds.
    """
    if is_held(folder):
        return True
    if record is None or record.get("host") == socket.gethostname():
        return False
    try:
        age = wall - moment(record["heartbeat_at"])
    except (KeyError, ValueError):
        return False
    return record.get("state") not in ENDED and age < FRESH_S


def read_status(folder: Path) -> dict[str, Any] | None:
    """status.json's object; None where there is none yet."""
    record = read_json(folder / STATUS)
    return record if isinstance(record, dict) else None


def part_of(run: OpenRun, wall: float, note: str = "") -> Part:
    """A run as its status.json shows it; one that is not readable has not reported."""
    record = read_status(run.folder)
    live = is_live(run.folder, record, wall)
    try:
        snapshot = None if record is None else _told(picture(record, record["datasets"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        snapshot = None
    return Part(run.label, snapshot, live=live, note=note)


def _told(snapshot: Snapshot) -> Snapshot:
    """What status.json does not hold is unknown, not nothing (DESIGN §6 names its fields)."""
    views = (
        replace(view, exportable_tokens=None) if view.rows else view for view in snapshot.datasets
    )
    return replace(snapshot, datasets=tuple(views))


def parts_of(runs: RunSet, wall: float) -> list[Part]:
    """Every run of the set, and those of its shards that are missing."""
    return [*(part_of(run, wall) for run in runs.runs), *missing(runs)]


def missing(runs: RunSet) -> list[Part]:
    """The shards that are not among the folders."""
    return [Part(label, note=runs.absence, missing=True) for label in runs.missing]


def absent_prompts(runs: RunSet) -> tuple[int, int]:
    """Prompts of the shards that are missing, and those of the whole.

    What the shards that are there have of each dataset is known from their status.json, and is an
    even share where that does not tell.
    """
    total = there = 0
    for name in runs.names:
        whole = runs.prompts(name)
        total += whole
        there += min(whole, sum(_dealt(run, name, whole) for run in runs.runs))
    return total - there, total


def _dealt(run: OpenRun, name: str, whole: int) -> int:
    views = (read_status(run.folder) or {}).get("datasets")
    for view in views if isinstance(views, list) else ():
        if isinstance(view, dict) and view.get("name") == name and type(view.get("prompts")) is int:
            return int(view["prompts"])
    return deal(whole, run.index, run.count)


def fleet_of(runs: RunSet) -> Fleet:
    """What the manifests of a set say of the whole."""
    manifest = runs.manifest
    datasets = {
        name: Whole(runs.prompts(name), runs.asked(name), _budget(runs, name))
        for name in runs.names
    }
    caps = [run.manifest.limits.max_cost_usd for run in runs.runs]
    cap = manifest.limits.max_cost_usd if runs.sharded else all_known(caps)
    folders = {str(run.folder.parent if runs.sharded else run.folder) for run in runs.runs}
    return Fleet(
        run=runs.title,
        datasets=datasets,
        max_cost_usd=cap,
        output=", ".join(sorted(folders)),
        model=manifest.endpoint.model,
        endpoint=manifest.endpoint.base_url,
        ceiling=manifest.limits.concurrency,
    )


def _budget(runs: RunSet, name: str) -> int | None:
    """A dataset's token budget over all; None where one of them has none."""
    sets = [d for run in runs.runs for d in run.manifest.datasets if d.name == name]
    budgets = [dataset.token_budget for dataset in sets]
    return budgets[-1] if runs.sharded else all_known(budgets)
