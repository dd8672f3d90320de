"""Nothing in flight and all that is left waits: the run says `waiting`, why, and until when."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from e2e_desk import Desk
from e2e_provider import playing
from engine_parts import dataset_text
from session_parts import clock_of, read_all, session_of, start

from engine.clock import local_hm
from engine.faults.fault import Fault, fault
from engine.session import Session
from engine.settle import fail
from engine.view.frame import Framer
from engine.view.snapshot import Snapshot

A = dataset_text("A", 3)
LOST = fault("disconnected", "reset by peer")
BUSY = Fault("rate_limit", "slow down", status=429, retry_after_s=300.0)


def picture(session: Session) -> Snapshot:
    session.course.started = True
    began, wall = session.clock.monotonic(), session.clock.wall()
    return Framer(session, started=began, started_wall=wall).snapshot(lag_s=0.0)


@pytest.mark.parametrize(
    ("failed", "count", "words"),
    [
        (LOST, 1, "1 reply never seen; asked again at {} (in 30m 00s), when the response cache "),
        (LOST, 3, "3 replies never seen; asked again at {} (in 30m 00s), when the response cache "),
        (BUSY, 1, "the last prompt waits for a retry; asked again at {} (in 5m "),
        (BUSY, 3, "the last 3 prompts wait for a retry; asked again at {} (in 5m "),
    ],
)
async def test_the_state_is_waiting_until_the_first_is_due(
    tmp_path: Path, failed: Fault, count: int, words: str
) -> None:
    async with session_of(tmp_path, A.replace("= 3", f"= {count}"), {"A": count}) as session:
        await read_all(session)
        assert picture(session).state == "running"
        for job in start(session, count):
            fail(session, job, failed, 0.0)
        session.limiter.release()
        due = session.schedule.next_due()
        assert due is not None
        left = due - session.clock.monotonic()
        snapshot = picture(session)
        assert (snapshot.state, snapshot.in_flight) == ("waiting", 0)
        at = local_hm(session.clock.wall() + left)
        assert snapshot.reason.startswith(words.format(at))
        clock_of(session).advance(left)
        assert picture(session).state == "running"
        assert len(start(session, count)) >= 1


async def test_a_short_wait_and_one_beside_other_work_are_no_state(tmp_path: Path) -> None:
    async with session_of(tmp_path, A, {"A": 3}) as session:
        await read_all(session)
        first, second, third = start(session, 3)
        fail(session, first, LOST, 0.0)
        assert picture(session).state == "running"  # two are in flight
        fail(session, second, LOST, 0.0)
        fail(session, third, fault("bad_gateway", status=502), 0.0)
        assert picture(session).state == "running"  # the third is asked again in a moment


async def test_what_is_paused_by_order_does_not_wait(tmp_path: Path) -> None:
    async with session_of(tmp_path, A, {"A": 3}) as session:
        await read_all(session)
        for job in start(session, 3):
            fail(session, job, LOST, 0.0)
        session.schedule.paused = True
        assert (picture(session).state, picture(session).reason) == ("paused", "paused by order")


def test_a_lost_reply_is_told_in_every_place(tmp_path: Path) -> None:
    """A real run: its only prompt's reply is lost, and the resend waits for the deadline."""
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        source = desk.source("A.jsonl", [{"prompt": "Say it [[sim:reset_late]]"}])
        desk.manifest(
            {"name": "A", "source": source, "prompts": 1},
            endpoint={"api": "openrouter", "tokenizer": "none"},
            limits={"request_timeout_s": 200},
        )
        process = desk.begin()
        process.says(" → waiting: 1 reply never seen; asked again at ")
        process.until(lambda: desk.files.status()["state"] == "waiting", "status.json says it too")
        status = desk.files.status()
        assert status["reason"].startswith("1 reply never seen; asked again at ")
        told = desk.run("status", desk.files.folder).out
        assert "e2e  waiting: 1 reply never seen; asked again at " in told
        assert "a reply was lost on its way: it is asked for again in 3m " in process.err
        process.signal(signal.SIGTERM)
        assert process.wait(15).code == 130
