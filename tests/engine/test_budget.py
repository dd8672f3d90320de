"""Budgets with thousands in flight: the worst case first, then what is really to be expected."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from budget_sim import Course, World, play
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.money.budget import KNOWN_AFTER, Expectation, fits, fits_hard

LOOK_EVERY_S = 0.25


def spend(world: World) -> Course:
    """Play a world with the engine's own rule, looking anew four times a second."""
    expectation = Expectation(float(world.most_tokens))
    spent, looked = 0, -math.inf

    def may_start(now: float, flying: dict[int, float]) -> bool:
        nonlocal looked
        if now - looked >= LOOK_EVERY_S:
            expectation.look(now - at for at in flying.values())
            looked = now
        reserve = expectation.reserve(len(flying) + 1)
        return fits(world.budget, spent, len(flying), reserve)

    def ended(tokens: int | None, latency_s: float) -> None:
        nonlocal spent
        if tokens is not None:
            spent += tokens
            expectation.add(tokens, latency_s)

    return play(world, may_start, ended)


STORY = World()


@pytest.mark.parametrize(
    "world",
    [
        STORY,
        replace(STORY, ramp_s=0),
        replace(STORY, sigma=1.2),
        replace(STORY, speed_sigma=0.5),
        replace(STORY, budget=3_000_000),
        replace(STORY, refused=0.3),
    ],
    ids=lambda world: repr({k: v for k, v in vars(world).items() if v != getattr(STORY, k)}),
)
def test_ten_million_tokens_with_two_thousand_in_flight_are_overshot_by_less_than_two_percent(
    world: World,
) -> None:
    course = spend(world)
    assert world.budget <= course.tokens < 1.02 * world.budget


def test_the_slots_are_used_all_the_same() -> None:
    course = spend(STORY)
    assert course.peak == STORY.in_flight
    # 6,000 replies of 84 s in 2,000 slots take 250 s at least; the tail is the longest reply
    assert course.ended_at < 1000


def test_the_mean_of_what_came_back_would_overshoot_by_far() -> None:
    """Why the estimate is what it is."""
    spent, count = 0, 0

    def may_start(now: float, flying: dict[int, float]) -> bool:
        del now
        each = spent / count if count >= KNOWN_AFTER else STORY.most_tokens
        return fits(STORY.budget, spent, len(flying), (len(flying) + 1) * each)

    def ended(tokens: int | None, latency_s: float) -> None:
        nonlocal spent, count
        del latency_s
        spent += tokens or 0
        count += 1

    assert play(STORY, may_start, ended).tokens > 1.15 * STORY.budget


# --- the expectation --------------------------------------------------------------------------


def known(count: int = 1000, *, worst: float = 8192.0, seed: int = 0) -> Expectation:
    rng = Random(seed)
    expectation = Expectation(worst)
    for _ in range(count):
        tokens = min(worst, rng.lognormvariate(7.0, 0.8))
        expectation.add(tokens, tokens / 20)
    expectation.look([])
    return expectation


def test_until_fifty_replies_are_known_each_counts_with_the_worst_case() -> None:
    expectation = Expectation(8192.0)
    for _ in range(KNOWN_AFTER - 1):
        expectation.add(100.0, 5.0)
        expectation.look([1.0, 2.0])
    assert (expectation.each, expectation.mean, expectation.reserve(7)) == (8192, 8192, 7 * 8192)
    expectation.add(100.0, 5.0)
    expectation.look([1.0, 2.0])
    assert expectation.mean == 100
    assert expectation.each == pytest.approx(100)
    assert expectation.reserve(2) == pytest.approx(200)


def test_before_the_first_look_the_worst_case_stands() -> None:
    expectation = Expectation(8192.0)
    for _ in range(100):
        expectation.add(100.0, 5.0)
    assert expectation.reserve(3) == 3 * 8192


def test_nothing_in_flight_needs_no_reserve() -> None:
    assert known().reserve(0) == pytest.approx(0.0, abs=1e-6)


def test_what_has_just_started_is_expected_to_be_average() -> None:
    expectation = known()
    expectation.look([0.001] * 100)
    assert expectation.reserve(100) == pytest.approx(100 * expectation.mean, rel=0.05)
    assert expectation.each == pytest.approx(expectation.mean, rel=0.05)


def test_what_is_out_for_long_is_expected_to_be_long() -> None:
    expectation = known()
    reserves = []
    for age in (1.0, 50.0, 100.0, 200.0):
        expectation.look([age])
        reserves.append(expectation.reserve(1))
    assert reserves == sorted(reserves)
    assert reserves[0] == pytest.approx(expectation.mean, rel=0.1)
    assert reserves[2] > 2000  # 100 s are 2,000 tokens in this world


def test_beyond_all_that_is_known_the_worst_case_stands() -> None:
    expectation = known()
    expectation.look([10_000.0])
    assert expectation.reserve(1) == 8192


def test_between_two_looks_each_start_adds_what_is_expected_of_it() -> None:
    expectation = known()
    expectation.look([10.0] * 50)
    assert expectation.reserve(60) - expectation.reserve(50) == pytest.approx(10 * expectation.each)


def test_a_reply_moves_from_the_reserve_to_what_is_spent() -> None:
    expectation = known()
    expectation.look([30.0] * 50)
    before = expectation.total + expectation.reserve(50)
    expectation.add(600.0, 30.0)
    assert expectation.total + expectation.reserve(49) == pytest.approx(before)


def test_a_host_that_ignores_the_cap_raises_the_worst_case() -> None:
    expectation = Expectation(100.0)
    expectation.add(5000.0, 1.0)
    assert expectation.reserve(2) == 10_000


def test_where_no_price_is_known_the_dearest_reply_seen_is_the_worst_case() -> None:
    expectation = Expectation(0.0)
    assert (expectation.each, expectation.reserve(5)) == (0.0, 0.0)
    expectation.add(0.25, 1.0)
    assert expectation.reserve(4) == 1.0


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1e5), st.floats(0, 1e5)), max_size=120),
    st.lists(st.floats(-1, 1e6), max_size=50),
    st.integers(0, 60),
)
def test_a_reserve_is_never_negative_and_never_above_the_worst_case(
    replies: list[tuple[float, float]], ages: list[float], in_flight: int
) -> None:
    expectation = Expectation(1000.0)
    for value, latency_s in replies:
        expectation.add(value, latency_s)
    expectation.look(ages)
    most = max([1000.0, *(value for value, _ in replies)])
    assert 0 <= expectation.reserve(in_flight) <= in_flight * most
    assert 0 <= expectation.each <= most * 1.000001


# --- the rules --------------------------------------------------------------------------------


def test_without_a_budget_everything_fits() -> None:
    assert fits(None, 1e12, 5000, 1e12)
    assert fits_hard(None, 1e12, 1e12)


def test_a_budget_smaller_than_one_worst_case_is_used_one_request_at_a_time() -> None:
    assert fits(1000, 0, 0, 8192)
    assert not fits(1000, 0, 1, 2 * 8192)
    assert fits(1000, 999, 0, 8192)
    assert not fits(1000, 1000, 0, 8192)


def test_a_request_fits_while_the_reserve_stays_within_the_budget() -> None:
    assert fits(1000, 400, 2, 600)
    assert not fits(1000, 401, 2, 600)


def test_money_is_never_promised_beyond_the_cap() -> None:
    assert fits_hard(1.0, 0.5, 0.5)
    assert not fits_hard(1.0, 0.5, 0.51)
    assert not fits_hard(1.0, 0.0, 1.01)
