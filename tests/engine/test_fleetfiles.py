"""Who works on a run, as its files tell: a lock here, a heartbeat where locks do not reach."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from engine_parts import HEAD, dataset_text, manifest_of

from engine.clock import iso
from engine.disk.jsonlines import dump_line
from engine.disk.rundir import claim, hold
from engine.fleet.files import FRESH_S, fleet_of, is_live, part_of
from engine.fleet.runs import open_runs
from engine.view.frame import status
from engine.view.snapshot import DatasetView
from tui.picture import story

NOW = 1_000_000.0


def beat(host: str, age: float, state: str = "running") -> dict[str, Any]:
    return {"host": host, "heartbeat_at": iso(NOW - age), "state": state}


@pytest.mark.parametrize(
    ("record", "live"),
    [
        (beat("elsewhere", 2.0), True),
        (beat("elsewhere", FRESH_S + 1), False),
        (beat("elsewhere", 2.0, "done"), False),
        (beat(socket.gethostname(), 2.0), False),
        ({"host": "elsewhere"}, False),
        (None, False),
    ],
)
def test_a_fresh_heartbeat_of_another_host_is_a_live_process(
    tmp_path: Path, record: dict[str, Any] | None, live: bool
) -> None:
    assert is_live(tmp_path, record, NOW) is live


def test_a_lock_is_a_live_process_whatever_the_heartbeat_says(tmp_path: Path) -> None:
    with hold(tmp_path, iso(NOW)):
        assert is_live(tmp_path, beat(socket.gethostname(), 999.0), NOW)
    assert not is_live(tmp_path, beat(socket.gethostname(), 999.0), NOW)


def shard(folder: Path, index: int, **more: Any) -> Path:
    manifest = manifest_of(
        HEAD
        + "[limits]\nconcurrency = 9\nmax_cost_usd = 8.0\n"
        + dataset_text("A", 100, token_budget=500)
        + dataset_text("B", 7),
        folder,
    )
    place = folder / f"shard-{index}-of-3"
    place.mkdir()
    claim(place, manifest, {"index": index, "count": 3, "prompts": {"A": 90, "B": 7}} | more)
    return place


def test_a_run_that_has_not_reported_is_unheard(tmp_path: Path) -> None:
    shard(tmp_path, 1)
    (run,) = open_runs([tmp_path]).runs
    part = part_of(run, NOW)
    assert (part.label, part.snapshot, part.live, part.dead) == ("shard 1/3", None, False, False)
    (run.folder / "status.json").write_text('{"schema": 1, "datasets": 5}')
    assert part_of(run, NOW).snapshot is None


def test_the_whole_is_the_manifests_though_shards_are_missing(tmp_path: Path) -> None:
    for index in (1, 3):
        shard(tmp_path, index)
    runs = open_runs([tmp_path])
    fleet = fleet_of(runs)
    assert runs.missing == ("shard 2/3",)
    assert (fleet.run, fleet.max_cost_usd, fleet.ceiling) == ("story", 8.0, 9)
    assert fleet.output == str(tmp_path)
    wholes = {name: (w.prompts, w.asked, w.token_budget) for name, w in fleet.datasets.items()}
    assert wholes == {"A": (90, 100, 500), "B": (7, 7, None)}


def test_what_status_json_does_not_hold_is_unknown(tmp_path: Path) -> None:
    shard(tmp_path, 1)
    (run,) = open_runs([tmp_path]).runs
    views = (DatasetView("A", "running", prompts=90, rows=7), DatasetView("B", "queued", prompts=7))
    (run.folder / "status.json").write_bytes(dump_line(status(replace(story(), datasets=views))))
    snapshot = part_of(run, NOW).snapshot
    assert snapshot is not None
    assert [each.exportable_tokens for each in snapshot.datasets] == [None, 0]
