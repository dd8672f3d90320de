"""The gate: token and dollar budgets of datasets, the run's cap, the account's balance."""

from __future__ import annotations

import heapq
from pathlib import Path
from random import Random
from typing import Any

import pytest
from engine_parts import dataset_text
from session_parts import OPENROUTER, clock_of, read_all, session_of, start, succeed

from engine.money.budget import KNOWN_AFTER
from engine.money.gate import _usd
from engine.plan import EndpointFacts
from engine.schedule import Job
from engine.session import Session

CAPPED = "[limits]\nmax_cost_usd = {}\n"
SAMPLING = "[sampling]\nmax_tokens = 1000\n"
WORST = 1000 * 1e-5 + 2000 * 1e-6
"""USD of one request at most, by the prices of OPENROUTER: 0.012."""


def learn(session: Session, *, tokens: int = 100, cost: float | None = 0.001) -> None:
    """Let as many replies come back as make the expectation known."""
    for job in start(session, KNOWN_AFTER):
        clock_of(session).advance(0.1)
        succeed(session, job, completion_tokens=tokens, cost=cost, latency_s=1.0)
    clock_of(session).advance(1.0)


async def test_until_replies_are_known_a_token_budget_holds_back_with_the_worst_case(
    tmp_path: Path,
) -> None:
    datasets = SAMPLING + dataset_text("A", 100, token_budget=10_500)
    async with session_of(tmp_path, datasets, {"A": 100}) as session:
        await read_all(session)
        assert len(start(session, 100)) == 10


async def test_then_with_what_replies_really_come_to(tmp_path: Path) -> None:
    datasets = SAMPLING + dataset_text("A", 300, token_budget=100_000)
    async with session_of(tmp_path, datasets, {"A": 300}) as session:
        await read_all(session)
        learn(session, tokens=1000)
        assert len(start(session, 300)) == 50


async def test_a_dataset_without_a_budget_is_never_held_back(tmp_path: Path) -> None:
    async with session_of(tmp_path, dataset_text("A", 100), {"A": 100}) as session:
        await read_all(session)
        assert len(start(session, 100)) == 100
        assert not session.gate.reached("A")
        assert not session.gate.capped()


async def test_max_cost_reserves_what_is_in_flight_with_the_worst_case(tmp_path: Path) -> None:
    datasets = SAMPLING + CAPPED.format(WORST * 5.5) + dataset_text("A", 9) + dataset_text("B", 9)
    async with session_of(tmp_path, datasets, {"A": 9, "B": 9}) as session:
        await read_all(session)
        assert len(start(session, 18)) == 5
        assert session.gate.in_flight_cost() == pytest.approx(5 * WORST)
        assert session.gate.capped()
        job = next(iter(session.schedule.queues["A"].in_flight))
        succeed(session, job, cost=WORST / 10)
        assert len(start(session, 18)) == 1


async def test_max_cost_reserves_the_expectation_once_fifty_rows_are_known(tmp_path: Path) -> None:
    datasets = SAMPLING + CAPPED.format(1.0) + dataset_text("A", 500)
    async with session_of(tmp_path, datasets, {"A": 500}) as session:
        await read_all(session)
        learn(session, cost=0.01)
        assert session.gate.spent() == pytest.approx(0.5)
        assert len(start(session, 500)) == pytest.approx(50, abs=1)


async def test_a_cap_that_a_finished_cheap_dataset_would_fit_ends_the_run_all_the_same(
    tmp_path: Path,
) -> None:
    """Only what can still start says whether there is room, or the run would wait for ever."""
    datasets = (
        SAMPLING
        + CAPPED.format(1.0)
        + dataset_text("A", KNOWN_AFTER)
        + dataset_text("B", 99, sampling={"max_tokens": 100_000})
    )
    async with session_of(tmp_path, datasets, {"A": KNOWN_AFTER, "B": 99}) as session:
        await read_all(session)
        learn(session, cost=0.00001)
        assert session.schedule.queues["A"].complete
        assert start(session, 9) == []  # one of B may come to a dollar
        assert session.gate.capped()


async def test_a_datasets_own_dollars_close_it_and_the_next_one_goes_on(tmp_path: Path) -> None:
    datasets = SAMPLING + dataset_text("A", 9, max_cost_usd=WORST * 2.5) + dataset_text("B", 9)
    async with session_of(tmp_path, datasets, {"A": 9, "B": 9}) as session:
        await read_all(session)
        jobs = start(session, 6)
        assert [job.prompt.dataset for job in jobs] == list("AABBBB")
        assert not session.gate.reached("A")
        for job in jobs[:2]:
            succeed(session, job, cost=WORST)
        assert session.gate.reached("A")


async def test_a_token_budget_is_reached_when_it_is_spent(tmp_path: Path) -> None:
    datasets = dataset_text("A", 9, token_budget=150)
    async with session_of(tmp_path, datasets, {"A": 9}) as session:
        await read_all(session)
        for expected in (False, True):
            (job,) = start(session, 9)  # less than one worst case: one at a time
            succeed(session, job, completion_tokens=100)
            assert session.gate.reached("A") is expected
        assert start(session, 9) == []


async def test_an_account_that_runs_short_holds_back_until_its_balance_is_back(
    tmp_path: Path,
) -> None:
    async with session_of(tmp_path, SAMPLING + dataset_text("A", 99), {"A": 99}) as session:
        await read_all(session)
        session.gate.see_balance(WORST * 3.5)
        assert len(start(session, 99)) == 3
        assert session.gate.short_of_funds()
        assert "$0.04" in session.gate.funds_words()
        session.gate.see_balance(WORST * 5.5)
        assert not session.gate.short_of_funds()
        assert len(start(session, 99)) == 2
        session.gate.see_balance(None)
        assert len(start(session, 99)) == 94


async def test_what_is_spent_since_the_balance_was_read_is_taken_off_it(tmp_path: Path) -> None:
    async with session_of(tmp_path, SAMPLING + dataset_text("A", 99), {"A": 99}) as session:
        await read_all(session)
        session.gate.see_balance(1.0)
        (job,) = start(session, 1)
        succeed(session, job, cost=0.25)
        assert session.gate.funds() == pytest.approx(0.75)


async def test_where_no_price_is_known_dollars_hold_back_once_replies_name_them(
    tmp_path: Path,
) -> None:
    datasets = CAPPED.format(1.0) + dataset_text("A", 200)
    async with session_of(
        tmp_path, datasets, {"A": 200}, facts=EndpointFacts(api="openai")
    ) as session:
        await read_all(session)
        learn(session, cost=0.01)
        assert len(start(session, 200)) == pytest.approx(50, abs=1)


async def test_the_whole_gate_overshoots_a_token_budget_by_less_than_two_percent(
    tmp_path: Path,
) -> None:
    """A small version of the story, through the real schedule, statistics and gate."""
    budget, slots = 600_000, 150
    datasets = "[sampling]\nmax_tokens = 8192\n" + dataset_text("A", 1200, token_budget=budget)
    async with session_of(tmp_path, datasets, {"A": 1200}, facts=OPENROUTER) as session:
        await read_all(session)
        rng = Random(5)
        ends: list[tuple[float, int, Job, int]] = []
        number = 0

        def fill() -> None:
            nonlocal number
            for job in start(session, slots - session.schedule.in_flight):
                tokens = min(8192, int(rng.lognormvariate(7.0, 0.8)))
                at = session.clock.monotonic() + 1.0 + tokens / 20
                number += 1
                heapq.heappush(ends, (at, number, job, tokens))

        fill()
        while ends:
            at, _, job, tokens = heapq.heappop(ends)
            clock_of(session).advance(at - session.clock.monotonic())
            succeed(session, job, completion_tokens=tokens)
            fill()
        spent: Any = session.stats.datasets["A"].totals.completion_tokens
        assert budget <= spent < 1.02 * budget
        assert session.gate.reached("A")


@pytest.mark.parametrize(
    ("amount", "shown"), [(0.0, "$0.00"), (1204.5, "$1,204.50"), (0.01, "$0.01"), (1e-6, "$1e-06")]
)
def test_a_tiny_cap_is_not_shown_as_nothing(amount: float, shown: str) -> None:
    assert _usd(amount) == shown
