"""A snapshot goes over the socket and comes back whole; older and newer ones are understood."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import orjson
import pytest

from engine.jsonlines import load_line
from engine.picture import from_wire, to_line
from engine.snapshot import (
    AttemptRate,
    DatasetView,
    ErrorLine,
    FailureLine,
    Flying,
    JournalEntry,
    Latency,
    ProviderView,
    RowLine,
    Series,
    Snapshot,
)

VIEW = DatasetView(
    name="B6",
    state="running",
    prompts=15_000,
    ok=3888,
    exactness={"matched": 3871, "mismatch": 1},
    flags={"truncated": 3},
    errors=(ErrorLine("rate_limit", "Novita", 9, "ACTIVE", 1.0, 2.0, "9", 9, "rising", "", "429"),),
    attempts=AttemptRate(1, 2, 300.0, 3, 4),
    rate=Series(1.0, 5.0, (0.0, None, 2.5)),
    latency=Latency(12.5, 40.0, 118.0),
    lengths=((512, 3), (1024, 0), (2048, 9)),
    finish_reasons={"stop": 3885, "length": 3},
    slowest=(Flying("B6/0123456789abcdef.0#0", 318.5, 2),),
    last_rows=(
        RowLine("B6/0123456789abcdef.1#0", 5.0, None, None, "matched", ("truncated",), "length",
                30.0, "lone \\udc80"),
    ),
    last_failures=(FailureLine("B6/0123456789abcdef.2#0", 6.0, "moderation", "[no]", 1),),
)  # fmt: skip
SNAPSHOT = Snapshot(
    run="story",
    state="running",
    reason="",
    pid=1,
    host="h",
    started_at=1.0,
    heartbeat_at=2.0,
    elapsed_s=1.0,
    model="m",
    limit=1,
    limit_ceiling=2,
    in_flight=1,
    rows_per_s=1.0,
    completion_tokens_per_s=1.0,
    cost_usd=None,
    cost_unknown_attempts=0,
    max_cost_usd=None,
    loop_lag_ms=0.0,
    datasets=(VIEW,),
    providers=(ProviderView("Novita", rows=3),),
    journal=(JournalEntry(1.0, "note", "text", "B6"),),
    rate=Series(1.0, 5.0, (1.0,)),
)


def test_what_is_sent_is_what_comes_back() -> None:
    assert from_wire(load_line(to_line(SNAPSHOT))) == SNAPSHOT


def test_every_field_of_a_dataset_is_tried() -> None:
    """A field that is added and left at its default here would not be seen to be lost."""
    plain = DatasetView("B6", "running", 15_000)
    new = {"latency", "lengths", "finish_reasons", "slowest", "last_rows", "last_failures"}
    assert new <= {field.name for field in fields(DatasetView)}
    assert all(getattr(VIEW, name) != getattr(plain, name) for name in new)


@pytest.mark.parametrize(
    "name", ["latency", "lengths", "finish_reasons", "slowest", "last_rows", "last_failures"]
)
def test_a_run_of_an_earlier_version_can_be_attached_to(name: str) -> None:
    record: dict[str, Any] = load_line(to_line(SNAPSHOT))
    del record["screen"]["datasets"][0][name]
    default = getattr(DatasetView("B6", "running", 1), name)
    assert from_wire(record).datasets[0] == replace(VIEW, **{name: default})


def test_fields_of_a_later_version_are_left_out() -> None:
    record = load_line(to_line(SNAPSHOT))
    record["screen"]["datasets"][0]["last_rows"][0]["mood"] = "good"
    record["screen"]["datasets"][0]["mood"] = "good"
    assert from_wire(record) == SNAPSHOT


def test_a_record_of_something_else_is_refused() -> None:
    with pytest.raises((KeyError, ValueError)):
        from_wire(orjson.loads(b'{"screen": {}}'))
