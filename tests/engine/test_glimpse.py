"""What the detail screens show of a dataset's rows and failures, in this session and resumed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from engine_parts import dataset_text
from hypothesis import given
from hypothesis import strategies as st
from ledger_rows import bare_row
from session_parts import clock_of, fail, read_all, session_of, start, succeed

from engine.disk.jsonlines import dump_line
from engine.disk.ledger import FAILURES, ROWS
from engine.disk.restore import fold_files
from engine.events import PromptFailed
from engine.faults.fault import fault
from engine.session import Session
from engine.view.frame import Framer
from engine.view.glimpse import FAILURES_KEPT, ROWS_KEPT, Glimpse, bucket, head_of
from engine.view.snapshot import DatasetView
from engine.view.stats import DatasetStats

ONE = dataset_text("A", 60)


def view_of(session: Session) -> DatasetView:
    frame = Framer(session, started_wall=0.0, started=session.clock.monotonic())
    return frame.snapshot(lag_s=0.0).datasets[0]


@given(st.integers(0, 10**9))
def test_a_bucket_is_the_power_of_two_that_holds_the_number(tokens: int) -> None:
    bound = bucket(tokens)
    assert bound & (bound - 1) == 0
    assert tokens <= bound
    assert bound == 1 or tokens > bound // 2


def test_the_head_of_an_answer_is_its_reasoning_where_it_has_no_content() -> None:
    assert head_of("I think", "Hello") == "Hello"
    assert head_of("I think", "") == head_of("I think", None) == "I think"
    assert len(head_of(None, "x" * 10_000)) == 120


async def test_rows_failures_and_ages_reach_the_snapshot(tmp_path: Path) -> None:
    async with session_of(tmp_path, ONE, {"A": 60}) as session:
        await read_all(session)
        jobs = start(session, 40)
        clock_of(session).advance(10.0)
        for n, job in enumerate(jobs[:30]):
            text = f"answer {n}\n\x1b[31m" + "x" * 300
            succeed(session, job, id=job.id, text=text, completion_tokens=100 * (n + 1))
        said = fault("moderation", "[flagged] by Novita", status=403, provider="Novita")
        fail(session, jobs[30], said)
        session.emit(PromptFailed("A", jobs[30].prompt.key, said, jobs[30].id, 1))
        clock_of(session).advance(5.0)
        view = view_of(session)
    assert [row.id for row in view.last_rows] == [job.id for job in reversed(jobs[18:30])]
    assert len(view.last_rows) == ROWS_KEPT
    newest = view.last_rows[0]
    assert newest.text.startswith("answer 29\\n\\e[31mxxx")
    assert len(newest.text) == 80
    assert newest.tokens == 3000
    assert view.lengths == ((128, 1), (256, 1), (512, 3), (1024, 5), (2048, 10), (4096, 10))
    assert view.finish_reasons == {"stop": 30}
    assert view.latency.p50 is not None
    assert abs(view.latency.p50 - 10) < 0.5
    assert [flying.age_s for flying in view.slowest] == [15.0] * 9
    (line,) = view.last_failures
    assert (line.family, line.message) == ("moderation", "[flagged] by Novita")
    assert [error.words for error in view.errors] == ["[flagged] by Novita"]


async def test_a_failed_prompt_that_got_its_row_is_no_failure_any_more(tmp_path: Path) -> None:
    async with session_of(tmp_path, ONE, {"A": 60}) as session:
        await read_all(session)
        jobs = start(session, 2)
        for job in jobs:
            said = fault("deadline")
            session.emit(PromptFailed("A", job.prompt.key, said, job.id, 8))
        succeed(session, jobs[0], id=jobs[0].id)
        assert [line.id for line in view_of(session).last_failures] == [jobs[1].id]


async def test_a_resumed_run_shows_what_is_on_disk(tmp_path: Path) -> None:
    folder = tmp_path / "A"
    folder.mkdir()
    ids = [f"A/{n:016x}.0#0" for n in range(40)]
    rows = [
        bare_row(name, finish_reason="length", usage={"completion_tokens": 700}) for name in ids[:3]
    ]
    given_up = [
        {"id": name, "family": "moderation", "message": f"no {n}", "attempts": 1,
         "at": "2026-11-30T14:03:22.125Z"}
        for n, name in enumerate(ids)
    ]  # fmt: skip

    def write() -> None:
        (folder / ROWS).write_bytes(b"".join(map(dump_line, rows)))
        (folder / FAILURES).write_bytes(b"".join(map(dump_line, given_up)))

    await asyncio.to_thread(write)
    stats = DatasetStats(0.0, worst_tokens=1.0, worst_cost=1.0)
    stats.restore(fold_files(folder))
    glimpse = stats.glimpse
    assert glimpse.histogram() == ((1024, 3),)
    assert dict(glimpse.finish_reasons) == {"length": 3}
    assert len(glimpse.failures) == FAILURES_KEPT
    assert glimpse.failures[-1].message == "no 39"
    assert glimpse.failures[-1].at == 1796047402.125


def test_nothing_known_is_nothing_shown() -> None:
    glimpse = Glimpse()
    assert glimpse.histogram() == ()
    assert glimpse.words("rate_limit", None) == ""
