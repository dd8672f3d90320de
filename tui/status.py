"""`eaglegen-tui status`: the state of live or ended runs, from their files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from engine.clock import SystemClock
from engine.disk.entries import moment
from engine.disk.jsonlines import dump_line
from engine.disk.rundir import RUN, STATUS
from engine.errors import ExitCode, UsageError
from engine.fleet.files import fleet_of, is_live, parts_of, read_status
from engine.fleet.merge import FleetSnapshot, Part, WorkerView, merge
from engine.fleet.runs import RunSet, open_runs
from engine.format import ago, coarse, compact, money, safe_text, thousands
from engine.view.frame import status
from engine.view.gone import ENDED

_MOVING = frozenset({"running", "paused"})


def show_statuses(folders: Sequence[Path], *, as_json: bool) -> int:
    """Print one run, or several as one: shards, or what the same model answers elsewhere."""
    if len(folders) == 1 and read_status(folders[0]) is not None:
        return show_status(folders[0], as_json=as_json)
    if len(folders) == 1 and (folders[0] / RUN).exists():
        raise UsageError(f"{folders[0]} holds a run that has not reported yet")
    sys.stdout.buffer.write(_fleet(open_runs(folders), as_json=as_json))
    return int(ExitCode.OK)


def show_status(folder: Path, *, as_json: bool) -> int:
    """Print what status.json says and how old it is; a dead process is called dead."""
    record = read_status(folder)
    if record is None:
        raise UsageError(f"{folder} is no run directory (it has no {STATUS})")
    try:
        data = _told(folder, record, as_json=as_json)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UsageError(f"{folder / STATUS} is no status of a run") from None
    sys.stdout.buffer.write(data)
    return int(ExitCode.OK)


def _told(folder: Path, record: dict[str, Any], *, as_json: bool) -> bytes:
    wall = SystemClock().wall()
    age, live = wall - moment(record["heartbeat_at"]), is_live(folder, record, wall)
    lines = _lines(record, age, live=live)
    if as_json:
        return dump_line(record | {"heartbeat_age_s": round(age, 1), "live": live})
    return _encoded(lines)


def _fleet(runs: RunSet, *, as_json: bool) -> bytes:
    wall = SystemClock().wall()
    parts = parts_of(runs, wall)
    whole = merge(fleet_of(runs), parts, wall)
    if not as_json:
        return _encoded(_fleet_lines(whole, wall))
    shards = [_part_record(part, wall) for part in parts]
    folders = [str(run.folder) for run in runs.runs]
    live = any(part.live for part in parts)
    return dump_line({**status(whole), "live": live, "folders": folders, "shards": shards})


def _part_record(part: Part, wall: float) -> dict[str, Any]:
    record: dict[str, Any] = {"label": part.label, "live": part.live, "missing": part.missing}
    if part.snapshot is None:
        return record
    age = round(wall - part.snapshot.heartbeat_at, 1)
    return {**record, "dead": part.dead, "heartbeat_age_s": age, **status(part.snapshot)}


def _fleet_lines(whole: FleetSnapshot, wall: float) -> Iterator[str]:
    record = status(whole)
    yield _head(record, whole.state)
    yield _work(record)
    yield ""
    yield from (_worker(worker, wall) for worker in whole.workers)
    yield ""
    over = whole.state in ENDED
    for view in record["datasets"]:
        yield from _dataset(view, over=over)


def _worker(worker: WorkerView, wall: float) -> str:
    name = safe_text(worker.label)
    if worker.heartbeat_at is None:
        return f"{name}  {worker.state}{f': {worker.note}' if worker.note else ''}"
    state = worker.state.upper() if worker.state == "dead" else worker.state
    beat = ago(wall - worker.heartbeat_at)
    return (
        f"{name}  {state}, heartbeat {beat} from process {worker.pid} on {worker.host}, "
        f"{thousands(worker.finished)} of {thousands(worker.prompts)} prompts, "
        f"{worker.rows_per_s:.1f} req/s, {thousands(worker.in_flight)} in flight, "
        f"{thousands(worker.attempt_errors)} err, {money(worker.cost_usd)}"
    )


def _lines(record: dict[str, Any], age: float, *, live: bool) -> list[str]:
    lines = [
        _head(record, _life(record, live=live)),
        f"heartbeat {ago(age)} from process {record['pid']} on {record['host']}",
        _work(record),
        "",
    ]
    over = not live or record["state"] in ENDED
    return lines + [line for view in record["datasets"] for line in _dataset(view, over=over)]


def _head(record: dict[str, Any], state: str) -> str:
    reason = f": {safe_text(record['reason'])}" if record["reason"] else ""
    return f"{safe_text(record['run'])}  {state}{reason}"


def _work(record: dict[str, Any]) -> str:
    cap = "" if record["max_cost_usd"] is None else f" of {money(record['max_cost_usd'])}"
    flying = f"in flight {record['in_flight']}/{record['limit']}"
    return f"model {safe_text(record['model'])}  {flying}  cost {money(record['cost_usd'])}{cap}"


def _life(record: dict[str, Any], *, live: bool) -> str:
    state = str(record["state"])
    if live or state in ENDED:
        return state
    return f"DEAD while {state}: its process is gone; `run` goes on where it ended"


def _dataset(view: dict[str, Any], *, over: bool) -> list[str]:
    state = "stopped" if over and view["state"] in _MOVING else view["state"]
    forecast = "" if over or view["eta_s"] is None else f", ETA {coarse(view['eta_s'])}"
    budget = f" of {compact(view['token_budget'])}" if view["token_budget"] else ""
    head = (
        f"{view['name']} · {thousands(view['prompts'])} prompts: {state}, "
        f"{thousands(view['ok'])} ok, {thousands(view['failed'])} failed, "
        f"{thousands(view['invalid'])} invalid, {thousands(view['in_flight'])} in flight, "
        f"{thousands(view['left'])} left; {thousands(view['rows'])} rows, "
        f"{compact(view['completion_tokens'])}{budget} tok, {money(view['cost_usd'])}{forecast}"
    )
    errors = [
        f"  {line['verdict'] or 'counted'}: {safe_text(line['evidence'] or line['family'])}"
        for line in view["errors"]
    ]
    return [head, *errors]


def _encoded(lines: Iterator[str] | list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode("utf-8", "backslashreplace")
