"""The limiter by hand: ramp, one fall per burst, holds, ceiling, and a reason for everything."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.pace.limits import Limiter


def fill(limiter: Limiter, start: float, end: float) -> float:
    """Tick twice a second with the limit always in use."""
    now = start
    while now < end:
        now += 0.5
        limiter.tick(now, limiter.limit)
    return now


def burst(limiter: Limiter, now: float, count: int, *, started_at: float) -> None:
    for _ in range(count):
        limiter.refused(now, "siliconflow", None, started_at=started_at)


def test_ramp_doubles_every_five_seconds_up_to_the_ceiling() -> None:
    limiter = Limiter(2000, now=0.0)
    seen = []
    for second in range(0, 30, 5):
        seen.append(limiter.limit)
        fill(limiter, second, second + 5)
    assert seen == [64, 128, 256, 512, 1024, 2000]
    assert limiter.reason == "at the ceiling"


def test_a_limit_that_is_not_used_does_not_rise() -> None:
    limiter = Limiter(2000, now=0.0)
    for step in range(1, 60):
        limiter.tick(step * 0.5, 30)
    assert limiter.limit == 64


def test_a_ceiling_below_the_start_is_where_it_starts() -> None:
    assert Limiter(8, now=0.0).limit == 8


def test_a_burst_makes_it_fall_once() -> None:
    limiter = Limiter(2000, now=0.0)
    now = fill(limiter, 0.0, 20.0)
    before = limiter.limit
    burst(limiter, now + 0.3, 200, started_at=now + 0.1)
    assert limiter.limit == before // 2
    assert limiter.reason == "429 burst from siliconflow: halved"
    burst(limiter, now + 0.6, 200, started_at=now + 0.2)
    assert limiter.limit == before // 2


def test_refusals_of_what_was_started_after_the_fall_are_a_second_burst() -> None:
    limiter = Limiter(2000, now=0.0)
    now = fill(limiter, 0.0, 20.0)
    before = limiter.limit
    burst(limiter, now + 0.3, 200, started_at=now)
    limiter.tick(now + 0.5, limiter.limit)
    burst(limiter, now + 1.0, 200, started_at=now + 0.6)
    assert limiter.limit == pytest.approx(before / 4, abs=1)


def test_one_refusal_among_hundreds_is_no_burst() -> None:
    limiter = Limiter(2000, now=0.0)
    now = fill(limiter, 0.0, 20.0)
    before = limiter.limit
    burst(limiter, now + 0.1, 1, started_at=now)
    assert limiter.limit == before


def test_endless_429_with_retry_after_89_keeps_falling_then_rests_and_recovers() -> None:
    """The reproduction of inspect_ai#5137: a 429 every 2 s, each with a hint of 89 s."""
    limiter = Limiter(100, now=0.0, start=20)
    limiter.tick(0.0, 20)
    seen = []
    now = 0.0
    for step in range(1, 60):
        now = step * 2.0
        if limiter.held_until(now) is None:
            limiter.refused(now, "siliconflow", 89.0, started_at=now - 0.3)
        limiter.tick(now, limiter.limit)
        seen.append(limiter.limit)
    assert seen[-1] == 1
    assert sorted(seen[2:], reverse=True) == seen[2:]
    held = limiter.held_until(now)
    assert held is not None
    assert now < held <= now + 89.0
    assert "refuses everything" in limiter.hold_reason
    fill(limiter, held, held + 45.0)
    assert limiter.limit == 100


def test_after_a_burst_it_returns_to_just_below_what_was_held() -> None:
    limiter = Limiter(2000, now=0.0)
    now = fill(limiter, 0.0, 20.0)
    before = limiter.limit
    refused = before // 5
    burst(limiter, now + 0.3, refused, started_at=now)
    held = before - refused
    for step in range(1, 10):
        limiter.tick(now + 0.5 * step, held)
    assert 0.95 * held <= limiter.limit <= held
    assert "siliconflow held" in limiter.reason


def test_throttle_acts_at_once_and_raising_it_lets_the_ramp_go_on() -> None:
    limiter = Limiter(2000, now=0.0)
    now = fill(limiter, 0.0, 20.0)
    limiter.set_ceiling(100, now)
    assert limiter.limit == 100
    assert limiter.reason == "throttled to 100"
    now = fill(limiter, now, now + 20.0)
    assert limiter.limit == 100
    limiter.set_ceiling(400, now)
    assert limiter.limit == 100
    fill(limiter, now, now + 12.0)
    assert limiter.limit == 400


def test_a_hold_keeps_the_latest_end_and_can_be_released() -> None:
    limiter = Limiter(100, now=0.0)
    assert limiter.held_until(0.0) is None
    limiter.hold(120.0, "in-flight budget")
    limiter.hold(10.0, "account limit")
    assert limiter.held_until(50.0) == 120.0
    assert limiter.hold_reason == "in-flight budget"
    assert limiter.held_until(120.0) is None
    limiter.hold(300.0, "credits short")
    limiter.release()
    assert limiter.held_until(200.0) is None


def test_after_a_long_pause_it_ramps_up_again_instead_of_opening_with_everything() -> None:
    limiter = Limiter(2000, now=0.0)
    now = fill(limiter, 0.0, 30.0)
    assert limiter.limit == 2000
    for step in range(60):
        limiter.tick(now + 0.5 * step, 0)
    assert limiter.limit == 64
    now += 30.0
    fill(limiter, now, now + 5.0)
    assert 110 <= limiter.limit <= 140


def test_every_change_has_a_reason_and_a_ramp_is_told_once_per_doubling() -> None:
    limiter = Limiter(2000, now=0.0)
    now = fill(limiter, 0.0, 30.0)
    burst(limiter, now, 300, started_at=now - 0.2)
    changes = limiter.drain_changes()
    assert [change.limit for change in changes] == [64, 128, 256, 512, 1024, 2000, 1000]
    assert all(change.reason for change in changes)
    assert limiter.drain_changes() == []


@settings(max_examples=60, deadline=None)
@given(
    st.integers(min_value=1, max_value=3000),
    st.lists(
        st.tuples(
            st.sampled_from(["tick", "ok", "refused", "ceiling", "wait"]),
            st.integers(min_value=0, max_value=3000),
        ),
        max_size=120,
    ),
)
def test_the_limit_stays_between_one_and_the_ceiling(
    ceiling: int, steps: list[tuple[str, int]]
) -> None:
    limiter = Limiter(ceiling, now=0.0)
    now = 0.0
    for kind, number in steps:
        now += 0.5
        if kind == "tick":
            limiter.tick(now, min(number, limiter.limit))
        elif kind == "ok":
            limiter.succeeded(now, number / 100, number)
        elif kind == "refused":
            limiter.refused(now, None, number / 10, started_at=now - 0.2)
        elif kind == "ceiling":
            ceiling = max(1, number)
            limiter.set_ceiling(number, now)
        else:
            now += number
        assert 1 <= limiter.limit <= ceiling
        assert limiter.reason
