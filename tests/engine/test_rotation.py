"""Refusals that concern one dataset, or one prompt, hold up nobody else; in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_parts import dataset_text
from refusal_world import RefusalWorld, Refuses
from session_parts import clock_of, read_all, session_of, start

from engine.faults.fault import fault
from engine.pace.rotation import (
    PATIENCE,
    PATIENCE_S,
    REST_FIRST_S,
    REST_LAST_S,
    SUSPECT,
    Doubt,
    Rotation,
)
from engine.schedule import Job
from engine.settle import fail
from engine.view.snapshot import DatasetState

HOUR = 3600.0
PROMPTS = 400
TWO = dataset_text("A", PROMPTS) + dataset_text("B", PROMPTS)
ONE = dataset_text("A", PROMPTS)


def of_dataset(name: str) -> Refuses:
    return lambda job: job.prompt.dataset == name


def of_index(*places: int) -> Refuses:
    return lambda job: job.prompt.index in places


async def play(
    folder: Path, refuses: Refuses, *, datasets: tuple[str, ...], seconds: float
) -> RefusalWorld:
    text = TWO if len(datasets) > 1 else ONE
    async with (
        session_of(folder, text, dict.fromkeys(datasets, PROMPTS)) as session,
        RefusalWorld(session, refuses) as world,
    ):
        await world.run(seconds, until=lambda: session.schedule.complete)
    return world


def state(world: RefusalWorld, name: str) -> tuple[DatasetState, int, int]:
    queue = world.session.schedule.queues[name]
    return queue.state, queue.ok, queue.failed


async def test_a_dataset_that_is_refused_for_ever_does_not_starve_the_next(tmp_path: Path) -> None:
    world = await play(tmp_path, of_dataset("A"), datasets=("A", "B"), seconds=HOUR)
    assert state(world, "B") == ("done", PROMPTS, 0)
    assert state(world, "A")[0] == "running"
    probes = [job.prompt.key for job in world.asked if job.prompt.dataset == "A"]
    assert len(set(probes)) >= 64  # no single prompt stands for all of them


async def test_a_dataset_that_is_served_again_is_done_too(tmp_path: Path) -> None:
    async with (
        session_of(tmp_path, TWO, {"A": PROMPTS, "B": PROMPTS}) as session,
        RefusalWorld(session, of_dataset("A"), reply_s=30.0) as world,
    ):
        await world.run(HOUR, until=lambda: session.schedule.queues["B"].ok >= PROMPTS // 2)
        world.refuses = lambda _: False
        await world.run(HOUR, until=lambda: session.schedule.complete)
    assert state(world, "A") == ("done", PROMPTS, 0)
    assert state(world, "B") == ("done", PROMPTS, 0)


@pytest.mark.parametrize("place", [0, 200, PROMPTS - 1])
async def test_one_prompt_that_is_refused_for_ever_holds_up_nobody(
    tmp_path: Path, place: int
) -> None:
    async with (
        session_of(tmp_path, ONE, {"A": PROMPTS}) as session,
        RefusalWorld(session, of_index(place)) as world,
    ):
        queue = session.schedule.queues["A"]
        spent = await world.run(HOUR, until=lambda: queue.ok == PROMPTS - 1)
        alone = session.limiter.limit
    (tmp_path / "free").mkdir()
    async with (
        session_of(tmp_path / "free", ONE, {"A": PROMPTS}) as session,
        RefusalWorld(session, of_index()) as free,
    ):
        unhindered = await free.run(HOUR, until=lambda: session.schedule.complete)
    assert queue.ok == PROMPTS - 1
    assert spent <= 2 * unhindered + 5
    assert alone >= 32  # its refusals did not lower the limit for the others


async def test_many_such_prompts_at_the_front_are_passed_by(tmp_path: Path) -> None:
    async with (
        session_of(tmp_path, ONE, {"A": PROMPTS}) as session,
        RefusalWorld(session, of_index(*range(150))) as world,
    ):
        queue = session.schedule.queues["A"]
        await world.run(2 * HOUR, until=lambda: queue.ok == PROMPTS - 150)
    assert queue.ok == PROMPTS - 150


async def test_a_prompt_whose_refusals_chance_cannot_explain_is_given_up(tmp_path: Path) -> None:
    many = 20_000
    async with (
        session_of(tmp_path, dataset_text("A", many), {"A": many}) as session,
        RefusalWorld(session, of_index(7)) as world,
    ):
        await world.run(HOUR, until=lambda: session.schedule.complete)
        queue = session.schedule.queues["A"]
        assert (queue.state, queue.ok, queue.failed) == ("done", many - 1, 1)
    (line,) = (world.session.plan.folder / "A" / "failures.jsonl").read_text().splitlines()
    assert '"family":"rate_limit"' in line
    assert "tokens per minute (refused " in line
    assert "times in a row while others were served)" in line


async def test_an_outage_gives_up_nobody_and_ends_by_itself(tmp_path: Path) -> None:
    async with (
        session_of(tmp_path, TWO, {"A": PROMPTS, "B": PROMPTS}) as session,
        RefusalWorld(session, of_index()) as world,
    ):
        await world.run(HOUR, until=lambda: session.schedule.queues["A"].ok >= 100)
        world.refuses = lambda _: True
        await world.run(2 * HOUR)
        world.refuses = lambda _: False
        spent = await world.run(HOUR, until=lambda: session.schedule.complete)
    assert state(world, "A") == ("done", PROMPTS, 0)
    assert state(world, "B") == ("done", PROMPTS, 0)
    assert spent < HOUR / 6


async def test_a_suspected_prompt_no_longer_lowers_the_limit(tmp_path: Path) -> None:
    async with session_of(tmp_path, ONE, {"A": PROMPTS}) as session:
        clock, limiter = clock_of(session), session.limiter
        limiter.set_ceiling(4, clock.monotonic())
        await read_all(session)
        (job,) = start(session, 1)
        job.doubt.refusals = SUSPECT
        for _ in range(4):
            for _ in range(20):
                session.schedule.rotation.served("A")
            clock.advance(10.0)
            job.started_at = session.clock.wall()
            fail(session, job, fault("rate_limit", provider="SiliconFlow", status=429), 0.1)
            limiter.tick(clock.monotonic(), 1)
        assert (limiter.limit, limiter.held_until(clock.monotonic())) == (4, None)


def refused(rotation: Rotation, job: Job | None = None, *, times: int = 1, now: float) -> Doubt:
    doubt = job.doubt if job is not None else Doubt()
    for _ in range(times):
        rotation.refused("A", doubt, now)
    return doubt


def test_a_dataset_rests_after_refusals_in_a_row_over_some_time() -> None:
    rotation = Rotation()
    refused(rotation, times=PATIENCE, now=0.0)
    assert not rotation.rests("A")
    refused(rotation, now=PATIENCE_S)
    assert rotation.rests("A")
    assert not rotation.due("A", PATIENCE_S + REST_FIRST_S - 1)
    assert rotation.due("A", PATIENCE_S + REST_FIRST_S)
    rotation.served("A")
    assert not rotation.rests("A")


def test_its_rests_grow_up_to_a_bound() -> None:
    rotation = Rotation()
    refused(rotation, times=PATIENCE, now=0.0)
    refused(rotation, now=PATIENCE_S)
    now, rests = PATIENCE_S, []
    for _ in range(7):
        begun = now
        while not rotation.due("A", now):
            now += 1.0
        rests.append(now - begun)
        rotation.probed("A", now)
        refused(rotation, now=now)
    assert rests == [30, 30, 60, 120, 240, 480, REST_LAST_S]


def test_refusals_without_anyone_served_prove_nothing() -> None:
    doubt = refused(Rotation(), times=10_000, now=0.0)
    assert (doubt.weight, doubt.certain, doubt.speaks_for_route) == (0.0, False, True)


def test_a_shared_pool_that_refuses_half_gives_up_no_prompt_soon() -> None:
    """Each of 19 refusals in a row has a chance of one half: 1 of 500,000 prompts."""
    rotation, doubt = Rotation(), Doubt()
    for number in range(19):
        assert not doubt.certain, number
        for _ in range(10):
            rotation.refused("A", Doubt(), 0.0)
            rotation.served("A")
        rotation.refused("A", doubt, 0.0)
    assert not doubt.certain


def test_a_quota_that_is_used_up_each_minute_gives_up_nobody() -> None:
    """Refused in 20 bad spells in a row, with a thousand served between any two of them."""
    rotation, doubt = Rotation(), Doubt()
    for _ in range(20):
        for _ in range(1000):
            rotation.served("A")
        for _ in range(50):
            rotation.refused("A", Doubt(), 0.0)
        rotation.refused("A", doubt, 0.0)
        assert doubt.speaks_for_route
    assert (doubt.refusals, doubt.certain) == (20, False)


def test_a_single_refusal_counts_only_so_much() -> None:
    rotation, doubt = Rotation(), Doubt()
    for _ in range(5):
        rotation.refused("A", doubt, 0.0)
        assert not doubt.certain
        for _ in range(1000):
            rotation.served("A")
    rotation.refused("A", doubt, 0.0)
    assert doubt.certain
