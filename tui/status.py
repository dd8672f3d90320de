"""`eaglegen-tui status`: the state of a live or ended run, from its files."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.clock import SystemClock
from engine.errors import ExitCode, UsageError
from engine.format import ago, coarse, compact, money, safe_text, thousands
from engine.jsonlines import dump_line
from engine.rundir import RUN, STATUS, is_held, read_json

_ENDED = frozenset({"done", "stopped"})
_MOVING = frozenset({"running", "paused"})


def show_status(folder: Path, *, as_json: bool) -> int:
    """Print what status.json says and how old it is; a dead process is called dead."""
    record = read_json(folder / STATUS)
    if not isinstance(record, dict):
        known = (folder / RUN).exists()
        raise UsageError(
            f"{folder} holds a run that has not reported yet"
            if known
            else f"{folder} is no run directory (it has no {STATUS})"
        )
    try:
        data = _told(record, live=is_held(folder), as_json=as_json)
    except (KeyError, TypeError, ValueError):
        raise UsageError(f"{folder / STATUS} is no status of a run") from None
    sys.stdout.buffer.write(data)
    return int(ExitCode.OK)


def _told(record: dict[str, Any], *, live: bool, as_json: bool) -> bytes:
    age = SystemClock().wall() - datetime.fromisoformat(record["heartbeat_at"]).timestamp()
    lines = "\n".join(_lines(record, age, live=live)) + "\n"
    if as_json:
        return dump_line(record | {"heartbeat_age_s": round(age, 1), "live": live})
    return lines.encode("utf-8", "backslashreplace")


def _lines(record: dict[str, Any], age: float, *, live: bool) -> list[str]:
    reason = f": {safe_text(record['reason'])}" if record["reason"] else ""
    money_line = f"cost {money(record['cost_usd'])}{_cap(record)}"
    flying = f"in flight {record['in_flight']}/{record['limit']}"
    lines = [
        f"{safe_text(record['run'])}  {_life(record, live=live)}{reason}",
        f"heartbeat {ago(age)} from process {record['pid']} on {record['host']}",
        f"model {safe_text(record['model'])}  {flying}  {money_line}",
        "",
    ]
    over = not live or record["state"] in _ENDED
    return lines + [line for view in record["datasets"] for line in _dataset(view, over=over)]


def _life(record: dict[str, Any], *, live: bool) -> str:
    state = str(record["state"])
    if live or state in _ENDED:
        return state
    return f"DEAD while {state}: its process is gone; `run` goes on where it ended"


def _cap(record: dict[str, Any]) -> str:
    cap = record["max_cost_usd"]
    return "" if cap is None else f" of {money(cap)}"


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
