"""The records of the run's JSON-lines files; their field names are the contract (DESIGN §6)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.clock import iso
from engine.faults.fault import Fault
from engine.feed.prompts import InvalidRow, Message
from engine.schedule import Job
from engine.wire.reply import Reply


def sent_record(job: Job, at: float, ignore: Sequence[str] = ()) -> dict[str, Any]:
    """One line of sent.jsonl, written before the request leaves.

    `ignore`, where hosts were left out, makes a resend possible that is the same to the byte.
    """
    record = {"id": job.id, "attempt": job.attempt, "at": iso(at)}
    return {**record, "ignore": list(ignore)} if ignore else record


def row_record(
    job: Job,
    reply: Reply,
    *,
    messages: list[Message],
    prompt_ids: list[int] | None,
    completion_ids: list[int] | None,
    exactness: str,
    latency_s: float,
) -> dict[str, Any]:
    """One line of rows.jsonl."""
    usage = reply.usage
    return {
        "id": job.id,
        "prompt_hash": job.prompt.hash,
        "dataset": job.prompt.dataset,
        "index": job.prompt.index,
        "turn": job.turn,
        "messages": messages,
        "tools": job.prompt.tools,
        "reasoning": reply.reasoning,
        "content": reply.content,
        "tool_calls": reply.tool_calls,
        "prompt_ids": prompt_ids,
        "completion_ids": completion_ids,
        "exactness": exactness,
        "flags": list(reply.flags),
        "finish_reason": reply.finish_reason,
        "native_finish_reason": reply.native_finish_reason,
        "model": reply.model,
        "provider": reply.provider,
        "generation_id": reply.generation_id,
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "reasoning_tokens": usage.reasoning_tokens,
            "cost": usage.cost,
        },
        "attempts": job.attempt,
        "started_at": iso(job.started_at),
        "latency_s": round(latency_s, 3),
    }


def attempt_record(job: Job, fault: Fault, latency_s: float) -> dict[str, Any]:
    """One line of attempts.jsonl: a request that was sent and did not become a row."""
    return {
        "id": job.id,
        "attempt": job.attempt,
        "family": fault.family,
        "scope": str(fault.scope),
        "provider": fault.provider,
        "status": fault.status,
        "message": fault.message,
        "generation_id": fault.generation_id,
        "cost": fault.cost,
        "sent": fault.sent,
        "started_at": iso(job.started_at),
        "latency_s": round(latency_s, 3),
    }


def unknown_record(sent: dict[str, Any]) -> dict[str, Any]:
    """The attempts.jsonl line of a request whose end a kill hid."""
    return {
        "id": sent["id"],
        "attempt": sent["attempt"],
        "family": "unknown",
        "scope": "attempt",
        "provider": None,
        "status": None,
        "message": "the process ended before this request did",
        "generation_id": None,
        "cost": None,
        "sent": True,
        "started_at": sent["at"],
        "latency_s": None,
    }


def failure_record(job: Job, fault: Fault, at: float) -> dict[str, Any]:
    """One line of failures.jsonl: a prompt that was given up."""
    return {
        "id": job.id,
        "prompt_hash": job.prompt.hash,
        "dataset": job.prompt.dataset,
        "index": job.prompt.index,
        "turn": job.turn,
        "family": fault.family,
        "message": fault.message,
        "attempts": job.attempt,
        "at": iso(at),
    }


def invalid_message(row: InvalidRow) -> str:
    """What failures.jsonl and the screen say of an unreadable source row."""
    return f"line {row.line}: {row.reason}"


def invalid_record(row: InvalidRow, at: float) -> dict[str, Any]:
    """One line of failures.jsonl: an unreadable source row."""
    return {
        "id": None,
        "prompt_hash": None,
        "dataset": row.dataset,
        "index": row.index,
        "turn": None,
        "family": "invalid_row",
        "message": invalid_message(row),
        "attempts": 0,
        "at": iso(at),
    }
