"""The field names of DESIGN §6 and their types, written down once more, apart from the engine."""

from __future__ import annotations

import re
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
ROW = {
    "id": str,
    "prompt_hash": str,
    "dataset": str,
    "index": int,
    "turn": int,
    "messages": list,
    "tools": list | None,
    "reasoning": str | None,
    "content": str | None,
    "tool_calls": list | None,
    "prompt_ids": list | None,
    "completion_ids": list | None,
    "exactness": str,
    "flags": list,
    "finish_reason": str,
    "native_finish_reason": str | None,
    "model": str,
    "provider": str | None,
    "generation_id": str | None,
    "usage": dict,
    "attempts": int,
    "started_at": str,
    "latency_s": float,
}
ATTEMPT = {
    "id": str,
    "attempt": int,
    "family": str,
    "scope": str,
    "provider": str | None,
    "status": int | None,
    "message": str,
    "generation_id": str | None,
    "cost": float | int | None,
    "sent": bool,
    "started_at": str,
    "latency_s": float | int | None,
}
STATUS = {
    "schema": int,
    "run": str,
    "state": str,
    "reason": str,
    "pid": int,
    "host": str,
    "started_at": str,
    "heartbeat_at": str,
    "elapsed_s": float,
    "model": str,
    "limit": int,
    "limit_ceiling": int,
    "in_flight": int,
    "rows_per_s": float,
    "completion_tokens_per_s": float,
    "cost_usd": float | None,
    "cost_unknown_attempts": int,
    "max_cost_usd": float | None,
    "loop_lag_ms": float,
    "datasets": list,
}
DATASET = {
    "name": str,
    "state": str,
    "prompts": int,
    "ok": int,
    "failed": int,
    "invalid": int,
    "in_flight": int,
    "left": int,
    "rows": int,
    "attempt_errors": int,
    "completion_tokens": int,
    "token_budget": int | None,
    "cost_usd": float | None,
    "rows_per_s": float,
    "eta_s": float | None,
    "exactness": dict,
    "flags": dict,
    "errors": list,
}
ERROR = {
    "family": str,
    "provider": str | None,
    "count": int,
    "verdict": str | None,
    "first_at": str,
    "last_at": str,
    "evidence": str,
}
SENT = {"id": str, "attempt": int, "at": str}
FAILURE = {
    "id": str | None,
    "prompt_hash": str | None,
    "dataset": str,
    "index": int,
    "turn": int | None,
    "family": str,
    "message": str,
    "attempts": int,
    "at": str,
}


def assert_fields(record: dict[str, Any], fields: dict[str, Any]) -> None:
    assert list(record) == list(fields)
    for name, kind in fields.items():
        allowed = (kind, int) if kind is float else kind
        assert isinstance(record[name], allowed), (name, record[name])
