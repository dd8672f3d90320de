"""Snapshots and status.json: the contract's fields, numbers that add up, estimates that hold."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from engine_parts import dataset_text
from playing import until
from session_parts import OPENROUTER, clock_of, fail, read_all, session_of, start, succeed
from virtual_clock import EPOCH

from engine.commands import Pause, Skip
from engine.disk.rundir import HISTORY, LOCK, STATUS, hold, read_json
from engine.faults.fault import fault
from engine.plan import EndpointFacts, Options
from engine.session import Session
from engine.steering import apply
from engine.view.frame import Framer, dataset_status, status
from engine.view.outlook import within_cap
from engine.view.publish import HISTORY_S, STATUS_S, Publisher
from engine.view.snapshot import DatasetView, Snapshot

STATUS_FIELDS = (
    "schema run state reason pid host started_at heartbeat_at elapsed_s model limit limit_ceiling "
    "in_flight rows_per_s completion_tokens_per_s cost_usd cost_unknown_attempts max_cost_usd "
    "loop_lag_ms datasets"
)
DATASET_FIELDS = (
    "name state prompts ok failed invalid in_flight left rows attempt_errors completion_tokens "
    "token_budget cost_usd rows_per_s eta_s exactness flags errors"
)
ERROR_FIELDS = "family provider count verdict first_at last_at evidence"
TWO = dataset_text("A", 40, token_budget=1_000_000) + dataset_text("B", 60)
SHORT = "[sampling]\nmax_tokens = 400\n"
ROWS = {"A": 40, "B": 60}


def framer(session: Session) -> Framer:
    return Framer(session, started_wall=session.clock.wall(), started=session.clock.monotonic())


def picture(frame: Framer) -> Snapshot:
    snapshot = frame.snapshot(lag_s=0.002)
    for view in snapshot.datasets:
        done = view.ok + view.failed + view.invalid
        assert view.prompts == done + view.in_flight + view.left
    return snapshot


def view_of(snapshot: Snapshot, name: str = "A") -> DatasetView:
    return next(view for view in snapshot.datasets if view.name == name)


async def test_status_has_exactly_the_contracts_fields(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        frame = framer(session)
        session.course.started = True
        first, second = start(session, 2)
        clock_of(session).advance(2.0)
        succeed(session, first)
        fail(session, second, fault("rate_limit", "slow down", status=429, provider="Novita"))
        record: dict[str, Any] = orjson.loads(orjson.dumps(status(picture(frame))))
    assert list(record) == STATUS_FIELDS.split()
    assert list(record["datasets"][0]) == DATASET_FIELDS.split()
    (error,) = record["datasets"][0]["errors"]
    assert list(error) == ERROR_FIELDS.split()
    assert (record["schema"], record["run"], record["pid"]) == (1, "story", os.getpid())
    assert (record["state"], record["elapsed_s"], record["loop_lag_ms"]) == ("running", 2.0, 2.0)
    assert record["started_at"] == "2026-11-30T14:03:22.125Z"
    assert record["heartbeat_at"] == "2026-11-30T14:03:24.125Z"
    assert error["last_at"] == "2026-11-30T14:03:24.125Z"
    assert (error["family"], error["provider"], error["count"]) == ("rate_limit", "Novita", 1)


async def test_unknown_cost_is_null_and_never_zero(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS, facts=EndpointFacts(api="vllm")) as session:
        await read_all(session)
        frame = framer(session)
        (job,) = start(session, 1)
        succeed(session, job, cost=None)
        snapshot = picture(frame)
        assert view_of(snapshot).cost_usd is None
        assert snapshot.cost_unknown_attempts == 1
        assert snapshot.projected_cost_usd is None
        assert dataset_status(view_of(snapshot))["cost_usd"] is None


async def test_numbers_follow_prompts_through_their_states(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        frame = framer(session)
        assert [v.state for v in picture(frame).datasets] == ["queued", "queued"]
        jobs = start(session, 10)
        view = view_of(picture(frame))
        assert (view.state, view.in_flight, view.left) == ("running", 10, 30)
        for job in jobs[:6]:
            succeed(session, job)
        fail(session, jobs[6], fault("moderation"))
        session.schedule.retry(jobs[7], due=1e9)
        view = view_of(picture(frame))
        assert (view.ok, view.failed, view.in_flight, view.left) == (6, 1, 2, 31)
        assert (view.waiting, view.rows, view.completion_tokens) == (1, 6, 600)
        assert view.cost_usd == pytest.approx(0.006)
        assert view.mean_completion_tokens == 100
        assert view.attempt_errors == 1


async def test_states_of_the_run(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        frame = framer(session)
        assert picture(frame).state == "starting"
        session.course.started = True
        assert picture(frame).state == "running"
        apply(session, Pause(), origin="test")
        snapshot = picture(frame)
        assert (snapshot.state, snapshot.reason, snapshot.paused) == (
            "paused",
            "paused by order",
            True,
        )
        session.schedule.paused = False
        apply(session, Pause("A"), origin="test")
        assert picture(frame).state == "running"
        apply(session, Pause("B"), origin="test")
        assert picture(frame).reason == "every dataset with prompts left is paused"
        session.limiter.hold(session.clock.monotonic() + 60, "credits: short")
        snapshot = picture(frame)
        assert (snapshot.state, snapshot.reason) == ("waiting", "credits: short; goes on in 60 s")
        session.course.drain("drained by order")
        snapshot = picture(frame)
        assert (snapshot.state, snapshot.reason) == ("draining", "drained by order")
        assert snapshot.exit_code is None
        session.course.ended = session.course.ordered = True
        snapshot = picture(frame)
        assert (snapshot.state, snapshot.exit_code) == ("stopped", 130)


async def test_a_disk_in_trouble_is_the_reason_on_screen(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        (session.plan.folder / "events.jsonl").symlink_to("/dev/full")
        session.course.started = True
        writing = asyncio.create_task(session.sink.run())
        session.journal.note("note", "anything")
        await until(lambda: bool(session.sink.trouble))
        snapshot = picture(framer(session))
        assert snapshot.state == "waiting"
        assert snapshot.reason.startswith("disk: events.jsonl: No space left on device")
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


async def test_a_pilot_keeps_the_manifests_total_and_a_short_source_its_number(
    tmp_path: Path,
) -> None:
    options = Options(limit=5)
    async with session_of(tmp_path, TWO, ROWS, options=options) as session:
        view = view_of(picture(framer(session)))
        assert (view.prompts, view.pilot, view.manifest_prompts) == (40, 5, None)
    options = Options(allow_short=True)
    async with session_of(tmp_path, TWO, {"A": 7, "B": 60}, options=options) as session:
        view = view_of(picture(framer(session)))
        assert (view.prompts, view.pilot, view.manifest_prompts) == (7, None, 40)


async def test_panes_say_so_when_two_datasets_run_at_once(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        frame = framer(session)
        assert view_of(picture(frame), "B").reason == "waits for the datasets before it"
        start(session, 45)
        first, second = picture(frame).datasets
        last = "its last prompts are in flight"
        assert first.reason == f"{last}; the next dataset takes the free slots"
        assert second.reason == "runs in the slots that the dataset before leaves free"
        for job in list(session.schedule.queues["A"].in_flight):
            succeed(session, job)
        start(session, 99)
        second = view_of(picture(frame), "B")
        assert second.reason == last


# --- estimates --------------------------------------------------------------------------------


async def work(session: Session, jobs: int, *, rows_per_s: int, **more: Any) -> None:
    """Let rows come in at a steady rate for some time."""
    for _ in range(jobs // rows_per_s):
        for job in start(session, rows_per_s):
            succeed(session, job, **more)
        clock_of(session).advance(1.0)


async def test_the_eta_is_by_prompts_where_they_come_first(
    tmp_path: Path,
) -> None:
    datasets = dataset_text("A", 100, token_budget=1_000_000)
    async with session_of(tmp_path, datasets, {"A": 100}) as session:
        await read_all(session)
        frame = framer(session)
        assert view_of(picture(frame)).eta_s is None
        await work(session, 40, rows_per_s=4)
        view = view_of(picture(frame))
        assert (view.rows_per_s, view.rate_limited_by) == (4.0, "prompts")
        assert view.eta_s == pytest.approx(60 / 4)
        assert picture(frame).eta_s == pytest.approx(60 / 4)


async def test_the_eta_is_by_the_token_budget_where_that_comes_first(tmp_path: Path) -> None:
    datasets = SHORT + dataset_text("A", 1000, token_budget=8000)
    async with session_of(tmp_path, datasets, {"A": 1000}) as session:
        await read_all(session)
        await work(session, 40, rows_per_s=4)
        snapshot = picture(framer(session))
        view = view_of(snapshot)
        assert (view.rows_per_s, view.rate_limited_by) == (4.0, "tokens")
        assert view.eta_s == pytest.approx(4000 / 100 / 4)
        assert snapshot.eta_s == pytest.approx(4000 / 100 / 4)


async def test_conversations_need_a_row_for_each_turn(tmp_path: Path) -> None:
    async with session_of(tmp_path, dataset_text("A", 100), {"A": 100}, turns=2) as session:
        await read_all(session)
        await work(session, 80, rows_per_s=4)
        snapshot = picture(framer(session))
        view = view_of(snapshot)
        assert (view.ok, view.rows) == (40, 80)
        assert view.eta_s == pytest.approx(120 / 4)
        assert snapshot.eta_s == pytest.approx(120 / 4)
        assert snapshot.projected_cost_usd == pytest.approx(0.2)


async def test_the_projected_cost_ends_at_token_budgets_and_covers_what_is_queued(
    tmp_path: Path,
) -> None:
    datasets = SHORT + dataset_text("A", 40, token_budget=10_000) + dataset_text("B", 60)
    async with session_of(tmp_path, datasets, ROWS) as session:
        await read_all(session)
        await work(session, 20, rows_per_s=2, completion_tokens=400, cost=0.01)
        snapshot = picture(framer(session))
        # A: 8,000 of 10,000 tokens spent, 5 more rows; B: 60 rows at the same cost
        assert snapshot.projected_cost_usd == pytest.approx((20 + 5 + 60) * 0.01)
        apply(session, Skip("B"), origin="test")
        snapshot = picture(framer(session))
        assert snapshot.projected_cost_usd == pytest.approx((20 + 5) * 0.01)


async def test_no_eta_while_paused_and_none_below_zero(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS, options=Options(limit=3)) as session:
        await read_all(session)
        await work(session, 2, rows_per_s=1)
        session.schedule.queues["A"].ok = 30  # as after a longer run before this pilot
        snapshot = picture(framer(session))
        assert snapshot.eta_s is not None
        assert snapshot.eta_s >= 0
        session.schedule.paused = True
        assert view_of(picture(framer(session))).eta_s is None


# --- the heartbeat ----------------------------------------------------------------------------


async def test_status_is_replaced_each_second_and_history_grows_each_ten(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        publisher = Publisher(session, framer(session), lambda: 0.0)
        path = session.plan.folder / STATUS
        beats = []
        for _ in range(45):
            await publisher.next()
            beats.append(read_json(path)["heartbeat_at"])
            clock_of(session).advance(0.25)
        assert len(set(beats)) == 45 * 0.25 // STATUS_S + 1
        session.sink.close()
        await session.sink.run()
        lines = (session.plan.folder / HISTORY).read_bytes().splitlines()
        assert len(lines) == 45 * 0.25 // HISTORY_S + 1
        assert orjson.loads(lines[0])["at"] == orjson.loads(lines[0])["heartbeat_at"]


async def test_changes_of_state_are_journalled_once(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        publisher = Publisher(session, framer(session), lambda: 0.0)
        await publisher.next()
        session.course.started = True
        start(session, 1)
        for _ in range(3):
            await publisher.next()
        texts = [entry.text for entry in session.journal.recent if entry.kind == "state"]
        assert texts == ["A queued → running", "run starting → running"]


async def test_the_last_status_stands_even_where_the_one_before_was_cancelled(
    tmp_path: Path,
) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        publisher = Publisher(session, framer(session), lambda: 0.0)
        for _ in range(20):
            session.course.ended = False
            clock_of(session).advance(5.0)
            beating = asyncio.create_task(publisher.next())
            await asyncio.sleep(0)
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
            session.course.ended = True
            snapshot = await publisher.last()
            record = read_json(session.plan.folder / STATUS)
            assert record == orjson.loads(orjson.dumps(status(snapshot)))
            assert record["state"] == "stopped"


async def test_a_status_that_cannot_be_written_ends_nothing(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        publisher = Publisher(session, framer(session), lambda: 0.0)
        (session.plan.folder / STATUS).mkdir()
        snapshot = await publisher.next()
        assert snapshot.heartbeat_at == EPOCH
        assert (await publisher.last()).run == "story"


async def test_a_folder_that_another_run_has_taken_gets_no_heartbeat_of_ours(
    tmp_path: Path,
) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        folder = session.plan.folder
        with hold(folder, "2026-11-30T14:03:22.125Z") as owned:
            session.sink._owned = owned
            publisher = Publisher(session, framer(session), lambda: 0.0)
            await publisher.last()
            assert read_json(folder / STATUS) is not None
            (folder / STATUS).unlink()
            (folder / LOCK).unlink()
            with hold(folder, "2026-11-30T14:05:00.000Z"):
                await publisher.last()
                assert not (folder / STATUS).exists()


def test_a_snapshot_is_immutable() -> None:
    view = DatasetView(name="A", state="queued", prompts=1)
    with pytest.raises(AttributeError):
        view.ok = 1  # type: ignore[misc]
    assert replace(view, ok=1).ok == 1
    assert OPENROUTER.api == "openrouter"


async def test_a_dataset_whose_prompts_all_wait_says_until_when(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, {"A": 40, "B": 60}) as session:
        await read_all(session)
        frame = framer(session)
        session.course.started = True
        now = session.clock.monotonic()
        for job in start(session, 40):
            session.schedule.retry(job, now + 270.0)
        clock_of(session).advance(30.0)
        view = view_of(picture(frame))
    assert (view.state, view.waiting, view.in_flight) == ("running", 40, 0)
    assert view.reason == "its last 40 prompts wait: asked again in 4m 00s"


async def test_the_eta_is_by_dollars_where_a_cap_comes_first(tmp_path: Path) -> None:
    datasets = dataset_text("A", 1000, max_cost_usd=1.0)
    async with session_of(tmp_path, datasets, {"A": 1000}) as session:
        await read_all(session)
        await work(session, 40, rows_per_s=4, cost=0.01)
        view = view_of(picture(framer(session)))
        assert view.rate_limited_by == "dollars"
        assert view.eta_s == pytest.approx(0.6 / 0.01 / 4)


@pytest.mark.parametrize(
    ("spent", "projected", "cap", "eta", "bound"),
    [
        (10.0, 50.0, 86.0, 100.0, ""),
        (10.0, 50.0, 30.0, 50.0, "dollars"),
        (40.0, 50.0, 30.0, 0.0, "dollars"),
        (10.0, 50.0, None, 100.0, ""),
        (None, None, 30.0, 100.0, ""),
    ],
)
def test_the_run_ends_at_its_cap(
    spent: float | None, projected: float | None, cap: float | None, eta: float, bound: str
) -> None:
    assert within_cap(100.0, spent, projected, cap) == (pytest.approx(eta), bound)
    assert within_cap(None, spent, projected, cap).eta_s is None


# --- the last prompts, and what waits -----------------------------------------------------------


async def test_where_every_prompt_waits_the_end_is_not_before_the_last_is_asked_again(
    tmp_path: Path,
) -> None:
    async with session_of(tmp_path, dataset_text("A", 40), {"A": 40}) as session:
        await read_all(session)
        await work(session, 30, rows_per_s=10)
        now = session.clock.monotonic()
        for place, job in enumerate(start(session, 10)):
            session.schedule.retry(job, now + 100.0 + place)
        snapshot = picture(framer(session))
        view = view_of(snapshot)
        assert view.rows_per_s > 1
        assert view.eta_s is not None
        assert view.eta_s >= 109.0
        assert snapshot.eta_s == view.eta_s
        clock_of(session).advance(60.0)  # no row for a minute: there is no rate any more
        assert view_of(picture(framer(session))).eta_s == pytest.approx(view.eta_s - 60)


async def test_the_last_prompts_in_flight_are_told_with_the_age_of_the_oldest(
    tmp_path: Path,
) -> None:
    async with session_of(tmp_path, dataset_text("A", 40), {"A": 40}) as session:
        await read_all(session)
        session.course.started = True
        jobs = start(session, 40)
        clock_of(session).advance(10.0)
        assert view_of(picture(framer(session))).reason == "its last prompts are in flight"
        for job in jobs[:33]:
            succeed(session, job)
        clock_of(session).advance(3.0)
        snapshot = picture(framer(session))
        assert view_of(snapshot).reason == "last 7 in flight, oldest 13s"
        assert (snapshot.state, snapshot.reason) == ("running", "last 7 in flight, oldest 13s")
        assert snapshot.eta_s is None, "they are older than nine of ten replies were"


async def test_stragglers_end_when_replies_of_their_age_have_come(tmp_path: Path) -> None:
    async with session_of(tmp_path, dataset_text("A", 40), {"A": 40}) as session:
        await read_all(session)
        jobs = start(session, 33)
        clock_of(session).advance(20.0)
        for job in jobs:
            succeed(session, job)
        start(session, 7)
        clock_of(session).advance(5.0)
        view = view_of(picture(framer(session)))
        assert view.eta_s == pytest.approx(15.0, rel=0.05)


async def test_what_only_gets_leftover_slots_is_forecast_by_the_run(tmp_path: Path) -> None:
    datasets = dataset_text("A", 200) + dataset_text("B", 60) + dataset_text("C", 40)
    async with session_of(tmp_path, datasets, {"A": 200, "B": 60, "C": 40}) as session:
        await read_all(session)
        await work(session, 120, rows_per_s=4)
        session.schedule.queues["B"].opened = True
        a, b, c = picture(framer(session)).datasets
        assert a.eta_s == pytest.approx(80 / 4)
        assert (b.eta_s, b.rate_limited_by) == (pytest.approx(140 / 4), "")
        assert (c.state, c.eta_s) == ("queued", pytest.approx(180 / 4))


async def test_orders_errors_and_pauses_stand_on_the_axis(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS) as session:
        await read_all(session)
        session.course.started = True
        frame = framer(session)
        publisher = Publisher(session, frame, lambda: 0.0)
        first, second = start(session, 2)
        fail(session, first, fault("rate_limit", "slow down", provider="Novita"))
        fail(session, second, fault("cancelled", "stopped"))
        apply(session, Pause("A"), origin="test")
        apply(session, Pause(), origin="test")
        await publisher.next()
        clock_of(session).advance(10.0)
        snapshot = picture(frame)
        view = view_of(snapshot)
        publisher.tell_end()
        session.sink.close()
        await session.sink.run()
    marks = [(mark.command, mark.text, mark.dataset) for mark in snapshot.events.marks]
    assert marks == [("pause", "pause A", "A"), ("pause", "pause run", None)]
    (spell,) = snapshot.events.spells
    assert (spell.start, spell.end, spell.state) == (snapshot.heartbeat_at - 10, None, "paused")
    assert [each.state for each in view.events.spells] == ["paused"]
    for families in (snapshot.errors_by_family, view.errors_by_family):
        (family,) = families
        assert family.family == "rate_limit", "what the operator cancelled is no error"
        assert sum(value or 0 for value in family.counts.values) == 1


async def test_stragglers_are_journalled_when_they_are_old_and_when_twice_as_old(
    tmp_path: Path,
) -> None:
    async with session_of(tmp_path, dataset_text("A", 5), {"A": 5}) as session:
        await read_all(session)
        publisher = Publisher(session, framer(session), lambda: 0.0)
        start(session, 5)
        for _ in range(20):
            clock_of(session).advance(10.0)
            await publisher.next()
        session.sink.close()
        await session.sink.run()
        told = [entry.text for entry in session.journal.recent if entry.kind == "note"]
    ages = ("30s", "1m 00s", "2m 00s")
    assert told == [f"A: last 5 in flight, oldest {age}" for age in ages]
