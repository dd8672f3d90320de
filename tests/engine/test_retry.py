"""Back-off: full jitter, the server's wait as a floor, and no two prompts at the same instant."""

from __future__ import annotations

import math
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from engine.pace.retry import LONGEST_WAIT_S, RetryPolicy


@given(
    st.integers(min_value=1, max_value=10_000),
    st.one_of(st.none(), st.floats(min_value=0, max_value=10_000)),
    st.integers(),
)
def test_delay_lies_between_the_servers_wait_and_the_wait_plus_its_window(
    attempt: int, wait_s: float | None, seed: int
) -> None:
    policy = RetryPolicy()
    delay = policy.delay(attempt, Random(seed), wait_s=wait_s)
    floor = wait_s or 0.0
    window = min(policy.cap_s, policy.base_s * 2.0 ** min(attempt - 1, 32))
    assert floor <= delay <= floor + max(window, floor / 4)


def test_windows_double_up_to_the_cap() -> None:
    policy = RetryPolicy(base_s=1.0, cap_s=60.0)
    rng = Random(1)
    longest = [
        max(policy.delay(attempt, rng, wait_s=None) for _ in range(2000)) for attempt in range(1, 9)
    ]
    assert [round(value) for value in longest] == [1, 2, 4, 8, 16, 32, 60, 60]


def test_full_jitter_is_uniform_from_zero() -> None:
    rng = Random(2)
    delays = [RetryPolicy().delay(7, rng, wait_s=None) for _ in range(4000)]
    assert abs(sum(delays) / len(delays) - 30.0) < 1.0
    assert min(delays) < 0.5


def test_958_prompts_told_the_same_wait_return_spread_over_twenty_seconds() -> None:
    rng = Random(3)
    returns = sorted(RetryPolicy().delay(1, rng, wait_s=89.0) for _ in range(958))
    assert returns[0] >= 89.0
    fullest_second = max(
        sum(1 for other in returns if start <= other < start + 1.0) for start in returns
    )
    assert fullest_second < 958 * 0.1


def test_waits_that_make_no_sense_are_none_or_bounded() -> None:
    policy = RetryPolicy()
    for nonsense in (math.nan, -5.0, 0.0):
        assert policy.delay(1, Random(4), wait_s=nonsense) <= 1.0
    assert policy.delay(1, Random(4), wait_s=math.inf) <= LONGEST_WAIT_S * 1.25


def test_attempts_are_exhausted_at_the_last_one() -> None:
    policy = RetryPolicy(max_attempts=8)
    assert [policy.exhausted(attempt) for attempt in (1, 7, 8, 9)] == [False, False, True, True]
