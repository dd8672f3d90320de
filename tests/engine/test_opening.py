"""The snapshots around a session: a refused start shows what is on disk, not an empty run."""

from __future__ import annotations

from pathlib import Path

import orjson
from engine_parts import manifest_of

from engine.errors import EndpointError
from engine.plan import DatasetPlan, Options, Plan
from engine.view.opening import first_snapshot, left_early, refused, write_starting


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
    plan = plan_in(tmp_path)
    named = [{"name": plan.datasets[0].name, "ok": 2, key: "x"} for key in ("rows", "errors")]
    odd = [b"[]", b'{"datasets": 3}', b'{"datasets": [1, {"ok": 2}]}', b"torn"]
    for text in [*odd, *(orjson.dumps({"datasets": [view]}) for view in named)]:
        (tmp_path / "status.json").write_bytes(text)
        (view,) = first_snapshot(plan, 10.0).datasets
        assert view.ok == 0


def test_a_refused_start_keeps_the_counts_and_says_why_in_one_line(tmp_path: Path) -> None:
    first = first_snapshot(plan_in(tmp_path), 10.0)
    last = refused(first, EndpointError("nobody answers", hint="Check base_url."), 12.0, 4)
    assert (last.state, last.reason, last.exit_code) == ("stopped", "nobody answers", 4)
    assert last.datasets == first.datasets


def test_an_order_to_end_before_the_start_is_a_stop_with_nothing_lost(tmp_path: Path) -> None:
    first = first_snapshot(plan_in(tmp_path), 10.0)
    last = left_early(first, "SIGTERM", 12.0, 130)
    assert (last.state, last.exit_code, last.heartbeat_at) == ("stopped", 130, 12.0)
    assert last.reason == "ended before anything was sent, by order (SIGTERM)"
    assert last.datasets == first.datasets


def test_the_first_heartbeat_keeps_what_earlier_sessions_counted(tmp_path: Path) -> None:
    plan = plan_in(tmp_path)
    name = plan.datasets[0].name
    errors = [{"family": "rate_limit", "verdict": "RESOLVED", "count": 958}]
    counted = {"name": name, "state": "done", "ok": 2, "rows": 2, "errors": errors}
    status = tmp_path / "status.json"
    status.write_bytes(orjson.dumps({"state": "running", "datasets": [counted]}))
    snapshot = first_snapshot(plan, 10.0)
    for _ in range(2):
        write_starting(tmp_path, snapshot)
        record = orjson.loads(status.read_bytes())
        (view,) = record["datasets"]
        assert (record["state"], view["state"], view["ok"], view["rows"]) == (
            *("starting", "queued"),
            *(2, 2),
        )
        assert view["errors"] == errors
