"""The limiter against simulated providers, in virtual time: refusing, queueing, leaking, failing.

The figures asserted here stand in the README's reliability table (issue 3).
"""

from __future__ import annotations

import math

import pytest
from limit_sim import Bucket, Capacity, Provider, Queue, Result, Work, World

from engine.pace.limits import Limiter

CEILING = 2000


def play(provider: Provider, until: float, *, seed: int = 1) -> Result:
    return World(provider, Limiter(CEILING, now=0.0), seed=seed).run(until)


def fixed(provider: Provider, limit: int, until: float, *, seed: int = 1) -> Result:
    return World(provider, None, fixed=limit, seed=seed).run(until)


@pytest.mark.parametrize("capacity", [300, 500, 800])
def test_opening_burst_costs_few_failures_and_no_throughput(capacity: int) -> None:
    ours = play(Capacity(lambda _now: capacity), 3600.0)
    naive = fixed(Capacity(lambda _now: capacity), CEILING, 60.0)
    best = fixed(Capacity(lambda _now: capacity), capacity, 3600.0)
    assert ours.refusals(0, 60) < 0.01 * naive.refusals(0, 60)
    assert ours.tokens_per_s(100, 600) > 0.95 * best.tokens_per_s(100, 600)
    assert ours.tokens_per_s(600, 3600) > 0.97 * best.tokens_per_s(600, 3600)
    assert ours.refused_share(600, 3600) < 0.004
    assert ours.given_up == 0


def test_short_replies_reach_the_same_level() -> None:
    work = Work(mean_tokens=50, tokens_per_s=50, first_token_s=0.3)
    ours = play(Capacity(lambda _now: 500, work), 300.0)
    best = fixed(Capacity(lambda _now: 500, work), 500, 300.0)
    assert ours.tokens_per_s(60, 300) > 0.95 * best.tokens_per_s(60, 300)
    assert ours.refused_share(60, 300) < 0.01


def test_the_story_capacity_lost_for_seven_minutes() -> None:
    def capacity(now: float) -> float:
        return 700 if 600 <= now < 1020 else CEILING

    ours = play(Capacity(capacity), 1800.0)
    naive = fixed(Capacity(capacity), CEILING, 1020.0)
    assert ours.refusals(600, 1020) < 0.05 * naive.refusals(600, 1020)
    assert ours.mean_flight(780, 1020) > 0.95 * 700
    assert ours.mean_flight(1260, 1800) > 0.95 * CEILING
    assert ours.given_up == 0


@pytest.mark.parametrize("end", [300.0, 900.0])
def test_endless_429_with_retry_after_keeps_falling_and_recovers(end: float) -> None:
    start = 0.0 if end == 300.0 else 300.0

    def capacity(now: float) -> float:
        return 0.0 if start <= now < end else 1e9

    ours = play(Capacity(capacity, retry_after_s=89.0), end + 400.0)
    assert ours.mean_limit(end - 30.0, end) == 1.0
    assert ours.refusals(0, end) < 200
    assert ours.mean_limit(end + 250.0, end + 400.0) == CEILING


@pytest.mark.parametrize(
    ("slots", "work"),
    [
        (256, Work(mean_tokens=600)),
        (128, Work(mean_tokens=300, tokens_per_s=30)),
        (32, Work(mean_tokens=100, tokens_per_s=50, first_token_s=0.2)),
    ],
)
def test_a_server_that_queues_gets_what_it_can_use_and_little_more(slots: int, work: Work) -> None:
    ours = play(Queue(slots, work), 3600.0)
    best = fixed(Queue(slots, work), CEILING, 3600.0)
    settled = ours.limits[-1][1]
    assert slots <= settled <= 1.5 * slots
    assert ours.tokens_per_s(1200, 3600) > 0.97 * best.tokens_per_s(1200, 3600)
    assert not ours.refused
    assert "throughput" in ours.changes[-1].reason


def test_a_host_that_is_merely_slow_today_is_not_throttled_for_it() -> None:
    def slower(now: float) -> float:
        return 1.0 if now < 40 else 2.5

    ours = play(Capacity(lambda _now: 1e9, Work(slower=slower)), 7200.0)
    best = fixed(Capacity(lambda _now: 1e9, Work(slower=slower)), CEILING, 7200.0)
    assert sum("trying fewer" in change.reason for change in ours.changes) == 1
    assert ours.tokens_per_s(100, 7200) > 0.96 * best.tokens_per_s(100, 7200)
    assert ours.limits[-1][1] == CEILING


def test_latency_that_drifts_with_the_time_of_day_does_no_harm() -> None:
    def slower(now: float) -> float:
        return 1.0 + 0.8 * math.sin(now / 1500) ** 2

    ours = play(Capacity(lambda _now: 1e9, Work(slower=slower)), 5400.0)
    best = fixed(Capacity(lambda _now: 1e9, Work(slower=slower)), CEILING, 5400.0)
    assert ours.tokens_per_s(100, 5400) > 0.95 * best.tokens_per_s(100, 5400)


def test_a_provider_that_counts_requests_per_second_is_found_too() -> None:
    ours = play(Bucket(20.0), 3600.0)
    arrived = sum(1 for at, _ in ours.done if at >= 1200) / 2400
    assert arrived > 0.9 * 20.0
    assert ours.refused_share(1200, 3600) < 0.01


@pytest.mark.parametrize("leak", [0.02, 0.1, 0.3])
def test_refusals_that_do_not_depend_on_the_limit_do_not_starve_the_run(leak: float) -> None:
    ours = play(Capacity(lambda _now: 1e9, leak=leak), 1500.0)
    assert ours.mean_flight(900, 1500) > 0.9 * CEILING


def test_pause_resume_and_throttle_do_not_open_with_a_burst() -> None:
    limiter = Limiter(CEILING, now=0.0)
    world = World(Capacity(lambda _now: 500), limiter)
    world.paused = lambda now: 300 <= now < 700
    world.at = [
        (900.0, lambda now: limiter.set_ceiling(100, now)),
        (1100.0, lambda now: limiter.set_ceiling(CEILING, now)),
    ]
    result = world.run(1500.0)
    assert result.refusals(700, 760) < 30
    assert result.mean_flight(1050, 1100) <= 101
    assert result.mean_flight(1200, 1500) > 0.95 * 500
