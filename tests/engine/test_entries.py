"""Odd but valid JSON in a run's files: no record of its kind, never done, never a traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from engine_parts import reply_of
from export_cases import kit_of, row_of, run_folder, said, user
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledger_rows import bare_row

from engine.audits.survey import survey
from engine.audits.verify import verify_run
from engine.audits.workers import Inline
from engine.disk.entries import PROBLEMS, event_problem
from engine.disk.jsonlines import Position, dump_line, load_line, read_on
from engine.disk.ledger import ATTEMPTS, FAILURES, ROWS, SENT
from engine.disk.lost import lost_of
from engine.disk.records import row_record
from engine.disk.restore import read_ledger
from engine.disk.rundir import EVENTS
from engine.disk.runrecord import run_problem
from engine.export.catalogue import FORMATS
from engine.export.making import make_lines
from engine.export.selection import GRADES, Selection
from engine.feed.prompts import RowError, make_prompt, served_messages
from engine.journal import left_out, skipped_earlier
from engine.schedule import Job
from engine.tokens.layouts import answer_of_row
from engine.view.stats import DatasetStats
from engine.wire.reply import FLAGS

ID = "B6/0123456789abcdef.0#0"
AT = "2026-11-30T14:03:22.125Z"
GOOD: dict[str, dict[str, Any]] = {
    ROWS: bare_row(ID, usage={"prompt_tokens": 3, "completion_tokens": 5, "cost": 0.25}),
    SENT: {"id": ID, "attempt": 1, "at": AT, "ignore": ["a"]},
    ATTEMPTS: {
        "id": ID,
        "attempt": 1,
        "family": "deadline",
        "provider": None,
        "status": None,
        "message": "",
        "cost": None,
        "sent": True,
        "started_at": AT,
    },
    FAILURES: {"id": ID, "index": 0, "family": "f", "message": "no", "attempts": 1, "at": AT},
}
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([-1, 1 << 63, 1 << 64, 10**30])
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["#-1", "zzz", "B6/0123456789abcdef.0#99999999999", "x", AT[:-1], "10000-1"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "tool_calls", "cost", "completion_tokens", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
ODD_LINES = (b'{"a":1}', b"5", b"[]", b"null", b'"x"', b"\xff\xfe{}", b"\0\0\0\0", b"", b"{")


SOURCES = st.fixed_dictionaries(
    {
        "messages": st.lists(
            st.fixed_dictionaries(
                {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
                optional={
                    "content": st.text(min_size=1, max_size=4) | VALUES,
                    "tool_calls": VALUES,
                    "tool_call_id": VALUES,
                    "name": VALUES,
                    "reasoning": VALUES,
                },
            ),
            min_size=1,
            max_size=4,
        )
    },
    optional={"tools": VALUES, "system": VALUES},
)


@settings(deadline=None, max_examples=300)
@given(SOURCES)
def test_every_row_that_we_write_passes_whatever_stood_in_its_source(row: Any) -> None:
    """A row that did not pass would be paid for again at every resume."""
    try:
        prompt = make_prompt(row, dataset="B6", index=0, turns="last", occurrences={})
    except RowError:
        return
    job = Job(prompt, prompt.turns[0], attempt=1)
    messages = served_messages(prompt, job.turn, [])
    written = row_record(
        job,
        reply_of(),
        messages=messages,
        prompt_ids=[1],
        completion_ids=None,
        exactness="matched",
        latency_s=0.5,
    )
    assert PROBLEMS[ROWS](load_line(dump_line(written)), "B6") == ""
    answer_of_row(written)


def line_of(value: Any) -> bytes:
    """As a script of somebody else's would write it: NaN, escapes and all."""
    return json.dumps(value).encode() + b"\n"


@pytest.mark.parametrize("name", GOOD)
def test_a_record_of_ours_passes_its_door(name: str) -> None:
    assert PROBLEMS[name](GOOD[name], "B6") == ""
    assert "another dataset" in PROBLEMS[name](GOOD[name], "B7")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *((name, {"id": value}) for name in GOOD for value in ("zzz", 5, "#-1", "B6/x.0#0", [])),
        *((ROWS, {"usage": value}) for value in ("x", None, [], {"cost": "x"}, {"cost": -1})),
        *((ROWS, {"usage": {"completion_tokens": v}}) for v in ("x", 1.5, True, -1, float("nan"))),
        (ROWS, {"turn": 1 << 60}),
        (ROWS, {"index": -1}),
        (ROWS, {"latency_s": float("nan")}),
        (ROWS, {"latency_s": 1e308}),
        (ROWS, {"latency_s": -1.0}),
        (ATTEMPTS, {"latency_s": 1e308}),
        (ATTEMPTS, {"latency_s": "x"}),
        (ATTEMPTS, {"started_at": "9999-12-31T23:59:59.999Z"}),
        (ROWS, {"flags": [[]]}),
        (ROWS, {"prompt_ids": ["1"]}),
        (ROWS, {"completion_ids": [1.0]}),
        (ROWS, {"messages": [{"role": "user", "content": 5}]}),
        (ROWS, {"messages": [{"content": "no role"}]}),
        *((name, {"at": value}) for name in (SENT, FAILURES) for value in (5, "now", AT[:-1])),
        (ATTEMPTS, {"started_at": "now"}),
        (ATTEMPTS, {"attempt": "1"}),
        (ATTEMPTS, {"cost": float("inf")}),
        (SENT, {"ignore": [5]}),
        (FAILURES, {"id": None, "index": None}),
    ],
)
def test_a_field_of_a_wrong_kind_makes_it_no_record(name: str, change: dict[str, Any]) -> None:
    assert PROBLEMS[name](GOOD[name] | change, "B6") != ""


@pytest.mark.parametrize("name", GOOD)
@given(value=VALUES)
def test_any_json_value_is_judged(name: str, value: Any) -> None:
    assert isinstance(PROBLEMS[name](value, "B6"), str)
    assert isinstance(run_problem(value), str)
    assert isinstance(event_problem(value), str)


@st.composite
def spoilt(draw: st.DrawFn, good: dict[str, Any]) -> Any:
    """A record with another value in one of its fields, or without it."""
    field = draw(st.sampled_from(sorted(good)))
    if draw(st.booleans()):
        return good | {field: draw(VALUES)}
    inner = good[field]
    if isinstance(inner, dict) and inner:
        return good | {field: inner | {draw(st.sampled_from(sorted(inner))): draw(VALUES)}}
    return {name: value for name, value in good.items() if name != field}


@settings(deadline=None, max_examples=150)
@given(data=st.data())
def test_a_resume_goes_on_over_any_line(tmp_path_factory: Any, data: Any) -> None:
    folder = tmp_path_factory.mktemp("run") / "B6"
    folder.mkdir()
    want: dict[str, int] = {}
    for name, good in GOOD.items():
        records = data.draw(st.lists(spoilt(good), max_size=3), label=name)
        lines = [*map(line_of, records), *data.draw(st.lists(st.sampled_from(ODD_LINES)))]
        lines = [line if line.endswith(b"\n") else line + b"\n" for line in lines]
        (folder / name).write_bytes(b"".join(lines) + dump_line(good))
        want[name] = sum(bool(PROBLEMS[name](loaded(line), "B6")) for line in lines)
    ledger = read_ledger(folder)
    assert {name: ledger.positions[name].odd for name in GOOD} == want
    assert ledger.done("0123456789abcdef.0", 0)
    assert ledger.rows + ledger.doubled == sum(1 for _ in rows_in(folder))
    DatasetStats(0.0, worst_tokens=1.0, worst_cost=1.0).restore(ledger)
    lost_of(ledger)


def loaded(line: bytes) -> Any:
    try:
        return load_line(line)
    except ValueError:
        return None


def rows_in(folder: Path) -> Any:
    return read_on(folder / ROWS, Position(), lambda row: PROBLEMS[ROWS](row, "B6"))


RICH = row_of(
    messages=(
        user("Hi"),
        said(None, tool_calls=[{"id": "f:0", "function": {"name": "f", "arguments": "{}"}}]),
        {"role": "tool", "tool_call_id": "f:0", "content": "ok"},
    ),
    tools=[{"type": "function", "function": {"name": "f"}}],
    tool_calls=[{"id": "functions.f:1", "function": {"name": "f", "arguments": "{}"}}],
    reasoning="So.",
)


@settings(
    deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_verify_names_each_such_line_and_export_leaves_it_out(
    tmp_path_factory: Any, data: Any
) -> None:
    folder = tmp_path_factory.mktemp("run") / "run"
    tools_mode = data.draw(st.sampled_from(["raw", "api"]))
    kit, work = kit_of(tools_mode=tools_mode), Inline(kit_of(tools_mode=tools_mode))
    rows = data.draw(st.lists(spoilt(RICH) | spoilt(row_of()), min_size=1, max_size=3))
    manifest = run_folder(folder, {"B6": [row_of(index=9)]})
    with (folder / "B6" / ROWS).open("ab") as file:
        file.writelines(map(line_of, rows))
    bad = [n for n, row in enumerate(rows, 2) if PROBLEMS[ROWS](loaded(line_of(row)), "B6")]
    report = verify_run(folder, manifest, work, live=False)
    told = {fault.place for fault in report.faults}
    assert {f"B6/{ROWS}:{number}" for number in bad} <= told
    found = survey(folder, manifest, work)
    (dataset,) = found.datasets
    assert dataset.unreadable == len(bad)
    everything = Selection(frozenset(GRADES), frozenset(FLAGS), cut=True)
    for name in FORMATS:
        for batch in found.batches(dataset, range(len(dataset))):
            made = make_lines(name, everything, kit, batch)
            assert len(made.lines) + made.left_out.total() == len(batch.places)


@settings(deadline=None)
@given(st.lists(st.builds(line_of, VALUES) | st.sampled_from([line + b"\n" for line in ODD_LINES])))
def test_a_journal_of_any_lines_is_read(tmp_path_factory: Any, lines: list[bytes]) -> None:
    folder = tmp_path_factory.mktemp("run")
    order = {"kind": "command", "command": "skip", "dataset": "A"}
    (folder / EVENTS).write_bytes(b"".join(lines) + dump_line(order))
    read = Position()
    assert skipped_earlier(folder, read) == {"A"}
    assert read.lines == len(lines) + 1
    assert read.odd == len(lines)


def test_what_is_left_out_is_said_once_with_the_first_lines() -> None:
    read = Position()
    assert left_out("A/rows.jsonl", read) == ""
    read.lines = 7
    read.leave_out()
    words = "A/rows.jsonl: 1 line is no record and was left out (line 7); `verify` says why"
    assert left_out("A/rows.jsonl", read) == words
    for number in range(8, 14):
        read.lines = number
        read.leave_out()
    words = "A/rows.jsonl: 7 lines are no records and were left out (lines 7, 8, 9, 10, 11, …);"
    assert left_out("A/rows.jsonl", read).startswith(words)


def test_verify_looks_at_the_journal_too(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    manifest = run_folder(folder, {"B6": [row_of(index=1)]})
    (folder / EVENTS).write_bytes(b'{"kind":"note"}\n5\n{"kind":"st')
    report = verify_run(folder, manifest, Inline(kit_of()), live=False)
    told = [(fault.place, fault.what) for fault in report.faults]
    assert told == [("events.jsonl:2", "no journal entry"), ("events.jsonl:3", "a torn last line")]
