"""The breaker: opens on faults, probes with growing rests, closes on success, never ignores all."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.pace.breaker import PROBE_EVERY_S, REST_FIRST_S, REST_LAST_S, Breakers


def broken(breakers: Breakers, provider: str, now: float, times: int = 12) -> None:
    for _ in range(times):
        breakers.failed(provider, now)


def test_a_healthy_provider_with_a_few_faults_stays() -> None:
    breakers = Breakers()
    rng = Random(1)
    for step in range(2000):
        if rng.random() < 0.1:
            breakers.failed("novita", float(step))
        else:
            breakers.succeeded("novita", float(step))
        assert breakers.ignored(float(step)) == ()
        assert breakers.state_words("novita", float(step)) == ""


def test_one_bad_provider_of_three_is_ignored_and_the_others_are_not() -> None:
    breakers = Breakers()
    for step in range(30):
        breakers.succeeded("novita", float(step))
        breakers.succeeded("venice", float(step))
        breakers.failed("siliconflow", float(step))
    assert breakers.ignored(31.0) == ("siliconflow",)
    assert breakers.probing("siliconflow", 31.0)
    assert not breakers.probing("novita", 31.0)
    assert "of its last" in breakers.state_words("siliconflow", 31.0)
    assert breakers.state_words("siliconflow", 31.0).startswith("resting for")


def test_after_the_rest_one_request_is_the_probe() -> None:
    breakers = Breakers(route=("novita", "siliconflow"))
    broken(breakers, "siliconflow", 0.0)
    assert breakers.ignored(REST_FIRST_S - 1) == ("siliconflow",)
    assert breakers.ignored(REST_FIRST_S) == ()
    assert breakers.ignored(REST_FIRST_S + 1) == ("siliconflow",)
    assert breakers.state_words("siliconflow", REST_FIRST_S + 1).startswith("being probed")
    assert breakers.ignored(REST_FIRST_S + PROBE_EVERY_S) == ()


def test_a_probe_that_succeeds_closes_it() -> None:
    breakers = Breakers(route=("novita", "siliconflow"))
    broken(breakers, "siliconflow", 0.0)
    breakers.ignored(REST_FIRST_S)
    breakers.succeeded("siliconflow", REST_FIRST_S + 20)
    assert breakers.ignored(REST_FIRST_S + 21) == ()
    assert not breakers.probing("siliconflow", REST_FIRST_S + 21)


def test_rests_grow_while_probes_fail() -> None:
    breakers = Breakers(route=("novita", "siliconflow"))
    broken(breakers, "siliconflow", 0.0)
    now = 0.0
    rests = []
    for _ in range(8):
        begun = now
        while breakers.ignored(now):
            now += 1.0
        rests.append(now - begun)
        breakers.failed("siliconflow", now)
    assert rests == [30.0, 60.0, 120.0, 240.0, 480.0, 600.0, 600.0, 600.0]
    assert rests[-1] == REST_LAST_S


def test_stragglers_that_fail_after_it_opened_do_not_stretch_the_rest() -> None:
    breakers = Breakers(route=("novita", "siliconflow"))
    broken(breakers, "siliconflow", 0.0)
    broken(breakers, "siliconflow", 10.0, times=300)
    assert breakers.ignored(REST_FIRST_S) == ()


def test_a_straggler_that_succeeds_brings_the_probe_forward_but_closes_nothing() -> None:
    breakers = Breakers(route=("novita", "siliconflow"))
    broken(breakers, "siliconflow", 0.0)
    breakers.succeeded("siliconflow", 5.0)
    assert breakers.ignored(6.0) == ()
    assert breakers.ignored(7.0) == ("siliconflow",)


def test_never_all_providers_of_the_route_are_ignored() -> None:
    breakers = Breakers(route=("novita", "siliconflow"))
    broken(breakers, "siliconflow", 0.0)
    broken(breakers, "novita", 1.0)
    assert breakers.ignored(2.0) == ("novita",)


def test_a_sole_provider_is_never_ignored_but_dispatch_shrinks_to_probes() -> None:
    breakers = Breakers(sole=True)
    assert breakers.next_start(0.0) == 0.0
    broken(breakers, "siliconflow", 0.0)
    assert breakers.next_start(1.0) == 1.0, "half of it failing is still half of it served"
    broken(breakers, "siliconflow", 0.0)
    assert breakers.ignored(1.0) == ()
    assert breakers.next_start(1.0) == REST_FIRST_S
    breakers.started(REST_FIRST_S)
    assert breakers.next_start(REST_FIRST_S) == REST_FIRST_S + PROBE_EVERY_S
    breakers.failed("siliconflow", REST_FIRST_S + 1)
    assert breakers.next_start(REST_FIRST_S + 1) == REST_FIRST_S + 1 + 2 * REST_FIRST_S
    now = breakers.next_start(REST_FIRST_S + 1)
    breakers.started(now)
    breakers.succeeded("siliconflow", now + 40)
    assert breakers.next_start(now + 41) == now + 41


def test_refusals_rest_a_provider_only_where_it_refuses_nearly_everything() -> None:
    breakers = Breakers(route=("novita", "siliconflow"))
    for step in range(100):
        breakers.refused("siliconflow", float(step), 89.0)
        breakers.succeeded("siliconflow", float(step))
    assert breakers.ignored(100.0) == ()
    for _ in range(20):
        breakers.refused("siliconflow", 101.0, 89.0)
    assert breakers.ignored(102.0) == ("siliconflow",)
    assert breakers.ignored(101.0 + 88.0) == ("siliconflow",)
    assert "refused" in breakers.state_words("siliconflow", 102.0)


def test_a_sole_provider_that_refuses_is_the_limiters_business() -> None:
    breakers = Breakers(sole=True)
    for _ in range(100):
        breakers.refused("siliconflow", 0.0, 89.0)
    assert breakers.next_start(1.0) == 1.0


def test_rests_can_be_worded_with_a_clock() -> None:
    breakers = Breakers(clock_text=lambda at: f"14:{at:02.0f}")
    broken(breakers, "siliconflow", 0.0)
    assert breakers.state_words("siliconflow", 1.0).startswith("resting until 14:30: ")


@pytest.mark.parametrize("health", [0.0, 0.3, 1.0])
def test_a_provider_that_recovers_is_always_found_again(health: float) -> None:
    breakers = Breakers(route=("novita", "siliconflow"))
    rng = Random(7)
    closed_at = None
    for step in range(20_000):
        now = step * 0.1
        good = 1.0 if now > 600 else health * 0.3
        if "siliconflow" not in breakers.ignored(now):
            if rng.random() < good:
                breakers.succeeded("siliconflow", now)
            else:
                breakers.failed("siliconflow", now)
        if now > 600 and closed_at is None and not breakers.probing("siliconflow", now):
            closed_at = now
    assert closed_at is not None
    assert closed_at < 600 + REST_LAST_S + PROBE_EVERY_S


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["failed", "succeeded", "refused", "ignored"]),
            st.sampled_from(["a", "b", "c"]),
            st.floats(min_value=0, max_value=50),
        ),
        max_size=200,
    )
)
def test_somebody_may_always_serve(events: list[tuple[str, str, float]]) -> None:
    breakers = Breakers(route=("a", "b", "c"))
    now = 0.0
    for kind, provider, wait in events:
        now += wait
        if kind == "ignored":
            assert len(breakers.ignored(now)) < 3
        else:
            getattr(breakers, kind)(provider, now)
