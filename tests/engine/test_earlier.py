"""The error verdict over a resume: what earlier sessions saw counts, and is said to be theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from engine_parts import dataset_text, reply_of
from session_parts import clock_of, read_all, session_of, start, succeed

from engine.disk.earlier import read_earlier
from engine.disk.restore import read_ledger
from engine.faults.fault import Fault, fault
from engine.plan import Options
from engine.schedule import Job
from engine.session import Session
from engine.settle import fail, keep
from engine.verdicts.verdict import VerdictBook
from engine.view.snapshot import ErrorLine

PROMPTS, STUCK, HEALED = 1000, 958, 951
BURST_S = 420.0
A = dataset_text("A", PROMPTS)


@asynccontextmanager
async def session_at(folder: Path, after_s: float, again: bool = False) -> AsyncIterator[Session]:
    """A session that begins so many seconds after the first one, its sources read."""
    options = Options(retry_failed=again)
    async with session_of(folder, A, {"A": PROMPTS}, options=options) as session:
        clock_of(session).advance(after_s)
        writing = asyncio.create_task(session.sink.run())
        await read_all(session)
        yield session
        session.sink.close()
        await writing


def refusal() -> Fault:
    return fault("rate_limit", "too many", provider="SiliconFlow", status=429)


def failed(session: Session, job: Job, failure: Fault) -> None:
    fail(session, job, failure, 0.0)


def answered(session: Session, job: Job) -> None:
    job.attempt += 1
    job.started_at = session.clock.wall()
    clock_of(session).advance(0.25)
    keep(session, job, [], reply_of(), 0.25)


async def the_story(folder: Path) -> tuple[float, float]:
    """958 refusals within seven minutes, then 951 of these prompts and 42 others succeed."""
    async with session_at(folder, 0.0) as session:
        jobs = start(session, PROMPTS)
        first = session.clock.wall()
        for job in jobs[:STUCK]:
            job.started_at = last = session.clock.wall()
            failed(session, job, refusal())
            clock_of(session).advance(BURST_S / STUCK)
        for job in [*jobs[:HEALED], *jobs[STUCK:]]:
            answered(session, job)
    return first, last


def line_of(session: Session) -> ErrorLine:
    (line,) = session.stats.datasets["A"].verdicts.lines(session.clock.wall())
    return line


async def test_the_storys_burst_is_told_after_a_resume(tmp_path: Path) -> None:
    first, last = await the_story(tmp_path)
    async with session_at(tmp_path, 3600.0) as session:
        line = line_of(session)
        stats = session.stats.datasets["A"]
    assert (line.family, line.provider, line.count) == ("rate_limit", "SiliconFlow", STUCK)
    assert (line.first_at, line.last_at) == pytest.approx((first, last), abs=0.01)
    assert line.verdict == "RESOLVED"
    assert line.evidence.startswith("958 x rate_limit from SiliconFlow between ")
    assert " in an earlier session, none for " in line.evidence
    assert line.evidence.endswith("; 951 of these prompts have succeeded since, 7 wait")
    assert line.count == stats.totals.attempt_errors
    rate = stats.verdicts.rate(0.0)
    assert (rate.failed, rate.total) == (STUCK, STUCK + PROMPTS - 7)


async def test_its_prompts_heal_in_this_session(tmp_path: Path) -> None:
    await the_story(tmp_path)
    async with session_at(tmp_path, 3600.0) as session:
        jobs = start(session, PROMPTS)
        assert len(jobs) == 7
        for job in jobs:
            succeed(session, job)
        assert line_of(session).evidence.endswith("; all 958 prompts have succeeded since")


async def test_a_family_that_returns_is_a_burst_of_its_own(tmp_path: Path) -> None:
    await the_story(tmp_path)
    async with session_at(tmp_path, 3600.0) as session:
        for job in start(session, PROMPTS):
            failed(session, job, refusal())
        clock_of(session).advance(5.0)
        line = line_of(session)
    assert (line.verdict, line.count) == ("ACTIVE", 965)
    assert "958 in an earlier session, then 7 more since" in line.evidence


async def test_a_third_session_counts_both(tmp_path: Path) -> None:
    await the_story(tmp_path)
    async with session_at(tmp_path, 3600.0) as session:
        for job in start(session, PROMPTS):
            failed(session, job, refusal())
    async with session_at(tmp_path, 7200.0) as session:
        line = line_of(session)
    assert line.count == 965
    assert line.verdict == "ACTIVE"
    assert line.evidence.endswith("but nothing has been tried since")


async def test_a_burst_that_was_cut_by_the_end_is_no_burst_that_has_passed(tmp_path: Path) -> None:
    async with session_at(tmp_path, 0.0) as session:
        jobs = start(session, PROMPTS)
        for job in jobs[:500]:
            answered(session, job)
        for job in jobs[500:]:
            job.started_at = session.clock.wall()
            failed(session, job, refusal())
    async with session_at(tmp_path, 600.0) as session:
        line = line_of(session)
        assert (line.verdict, line.count) == ("ACTIVE", 500)
        for job in start(session, 500):
            succeed(session, job)
        assert line_of(session).verdict == "RESOLVED"


async def test_prompts_given_up_stay_structural_and_are_asked_again_by_order(
    tmp_path: Path,
) -> None:
    async with session_at(tmp_path, 0.0) as session:
        jobs = start(session, PROMPTS)
        for job in jobs[3:]:
            answered(session, job)
        for job in jobs[:3]:
            job.started_at = session.clock.wall()
            failed(session, job, fault("context_length", "too long", status=400))
    async with session_at(tmp_path, 600.0) as session:
        line = line_of(session)
    assert (line.verdict, line.count) == ("STRUCTURAL", 3)
    assert line.evidence.startswith("3 prompts were refused for what they are (context_length) at ")
    assert line.evidence.endswith(" in an earlier session, while 997 attempts succeeded")
    async with session_at(tmp_path, 900.0, again=True) as session:
        for job in start(session, PROMPTS):
            succeed(session, job)
        assert "but only 3 attempts since" in line_of(session).evidence


async def test_our_own_cancelling_is_no_error_of_an_earlier_session(tmp_path: Path) -> None:
    async with session_at(tmp_path, 0.0) as session:
        for job in start(session, 5):
            failed(session, job, Fault("cancelled", "cancelled by stop"))
    async with session_at(tmp_path, 60.0) as session:
        assert session.stats.datasets["A"].verdicts.lines(0.0) == ()


async def test_prompts_beyond_the_bound_are_counted_as_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await the_story(tmp_path)
    monkeypatch.setattr("engine.disk.earlier.MOST_PROMPTS", 100)
    folder = tmp_path / "out" / "A"
    (found,) = read_earlier(folder, read_ledger(folder), retry_failed=False)
    assert (found.count, len(found.fates), found.untracked) == (STUCK, 100, True)
    book = VerdictBook()
    book.restore([found], rows=PROMPTS - 7)
    (line,) = book.lines(found.last_at + 3600.0)
    assert line.evidence.endswith("; all at least 100 prompts have succeeded since")
