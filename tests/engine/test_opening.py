"""The snapshots around a session: a refused start shows what is on disk, not an empty run."""

from __future__ import annotations

from pathlib import Path

import orjson
from engine_parts import manifest_of

from engine.errors import EndpointError
from engine.opening import first_snapshot, refused
from engine.plan import DatasetPlan, Options, Plan


def plan_in(folder: Path) -> Plan:
    manifest = manifest_of()
    parts = tuple(DatasetPlan(d, d.prompts, d.prompts, {}) for d in manifest.datasets)
    return Plan(manifest, Options(), folder, parts)


def test_a_new_run_starts_with_nothing_counted(tmp_path: Path) -> None:
    plan = plan_in(tmp_path)
    (view,) = first_snapshot(plan, 10.0).datasets
    assert (view.state, view.ok, view.rows, view.left) == ("queued", 0, 0, view.prompts)
    assert first_snapshot(plan, 10.0).cost_usd is None


def test_a_resumed_run_starts_with_what_the_last_session_counted(tmp_path: Path) -> None:
    plan = plan_in(tmp_path)
    name, prompts = plan.datasets[0].name, plan.datasets[0].prompts
    counted = {"name": name, "state": "running", "ok": 1, "failed": 1, "rows": 4, "cost_usd": 0.5}
    (tmp_path / "status.json").write_bytes(orjson.dumps({"datasets": [counted]}))
    snapshot = first_snapshot(plan, 10.0)
    (view,) = snapshot.datasets
    assert (view.state, view.ok, view.failed, view.rows) == ("queued", 1, 1, 4)
    assert view.left == max(0, prompts - 2)
    assert snapshot.cost_usd == 0.5


def test_a_status_that_is_none_of_ours_counts_nothing(tmp_path: Path) -> None:
    for text in (b"[]", b'{"datasets": 3}', b'{"datasets": [1, {"ok": 2}]}', b"torn"):
        (tmp_path / "status.json").write_bytes(text)
        (view,) = first_snapshot(plan_in(tmp_path), 10.0).datasets
        assert view.ok == 0


def test_a_refused_start_keeps_the_counts_and_says_why_in_one_line(tmp_path: Path) -> None:
    first = first_snapshot(plan_in(tmp_path), 10.0)
    last = refused(first, EndpointError("nobody answers", hint="Check base_url."), 12.0, 4)
    assert (last.state, last.reason, last.exit_code) == ("stopped", "nobody answers", 4)
    assert last.datasets == first.datasets
