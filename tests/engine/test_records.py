"""The records on disk: their field names are the contract, what is unknown is null."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from engine_parts import MODEL, job_of, reply_of
from virtual_clock import EPOCH

from engine.disk.jsonlines import dump
from engine.disk.records import (
    attempt_record,
    failure_record,
    invalid_record,
    row_record,
    sent_record,
    unknown_record,
)
from engine.faults.fault import fault
from engine.feed.prompts import InvalidRow
from engine.schedule import Job
from engine.wire.usage import UNKNOWN

STAMP = "2026-11-30T14:03:22.125Z"
ROW_FIELDS = [
    "id",
    "prompt_hash",
    "dataset",
    "index",
    "turn",
    "messages",
    "tools",
    "reasoning",
    "content",
    "tool_calls",
    "prompt_ids",
    "completion_ids",
    "exactness",
    "flags",
    "finish_reason",
    "native_finish_reason",
    "model",
    "provider",
    "generation_id",
    "usage",
    "attempts",
    "started_at",
    "latency_s",
]
ATTEMPT_FIELDS = [
    "id",
    "attempt",
    "family",
    "scope",
    "provider",
    "status",
    "message",
    "generation_id",
    "cost",
    "sent",
    "started_at",
    "latency_s",
]
FAILURE_FIELDS = [
    "id",
    "prompt_hash",
    "dataset",
    "index",
    "turn",
    "family",
    "message",
    "attempts",
    "at",
]


def job() -> Job:
    made = job_of({"turns": ["a", "b"]}, index=7)
    made.turn, made.attempt, made.started_at = 1, 3, EPOCH
    return made


def row(**more: Any) -> dict[str, Any]:
    ids = {"prompt_ids": [1, 2], "completion_ids": [3], "exactness": "matched"}
    messages = [{"role": "user", "content": "b"}]
    return row_record(job(), reply_of(**more), messages=messages, latency_s=1.23456, **ids)  # type: ignore[arg-type]


def test_a_row_has_the_contracts_fields_in_its_order() -> None:
    record = row()
    assert list(record) == ROW_FIELDS
    assert record["id"] == f"B6/{job().prompt.hash[:16]}.0#1"
    assert (record["index"], record["turn"], record["attempts"]) == (7, 1, 3)
    assert (record["model"], record["provider"]) == (MODEL, "SiliconFlow")
    assert (record["started_at"], record["latency_s"]) == (STAMP, 1.235)
    assert record["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "reasoning_tokens": None,
        "cost": 0.001,
    }
    assert record["messages"] == [{"role": "user", "content": "b"}]
    assert record["tools"] is None


def test_what_the_server_did_not_say_is_null_and_never_zero() -> None:
    record = row(usage=UNKNOWN, provider=None, generation_id=None, flags=("no_usage",))
    assert set(record["usage"].values()) == {None}
    assert (record["provider"], record["generation_id"], record["flags"]) == (
        None,
        None,
        ["no_usage"],
    )


def test_an_attempt_says_whom_it_concerns_and_whether_it_was_sent() -> None:
    record = attempt_record(job(), fault("connect", "refused"), 0.5)
    assert list(record) == ATTEMPT_FIELDS
    assert (record["family"], record["scope"], record["sent"]) == ("connect", "account", False)
    assert (record["attempt"], record["cost"], record["started_at"]) == (3, 0.0, STAMP)
    billed = attempt_record(job(), fault("disconnected"), 0.5)
    assert (billed["sent"], billed["cost"]) == (True, None)


def test_a_request_whose_end_a_kill_hid_is_of_unknown_cost() -> None:
    record = unknown_record(sent_record(job(), EPOCH))
    assert list(record) == ATTEMPT_FIELDS
    assert (record["family"], record["sent"], record["cost"]) == ("unknown", True, None)
    assert (record["attempt"], record["started_at"], record["latency_s"]) == (3, STAMP, None)


def test_what_is_sent_is_noted_before_it_leaves() -> None:
    assert sent_record(job(), EPOCH) == {"id": job().id, "attempt": 3, "at": STAMP}


def test_a_failure_names_its_turn_and_keeps_the_servers_words() -> None:
    record = failure_record(job(), fault("moderation", "flagged: violence"), EPOCH)
    assert list(record) == FAILURE_FIELDS
    assert (record["id"], record["turn"], record["attempts"]) == (job().id, 1, 3)
    assert (record["message"], record["at"]) == ("flagged: violence", STAMP)


def test_an_unreadable_row_stands_among_the_failures_without_an_id() -> None:
    record = invalid_record(InvalidRow("B6", 4, 9, "not valid JSON"), EPOCH)
    assert list(record) == FAILURE_FIELDS
    assert (record["id"], record["family"], record["index"]) == (None, "invalid_row", 4)
    assert record["message"] == "line 9: not valid JSON"


@pytest.mark.parametrize("text", ["\ud83d", "\x00", "\x1b[31m", "👩‍🚀", "a" * 100_000])
def test_any_text_of_a_paid_reply_can_be_written_and_read(text: str) -> None:
    line = dump(row(content=text, reasoning=text))
    assert b"\n" not in line
    try:
        found = orjson.loads(line)
    except orjson.JSONDecodeError:  # a lone surrogate is an escape that orjson does not read
        import json

        found = json.loads(line)
    assert found["content"] == found["reasoning"] == text
