"""Numbers over time: nothing is lost when buckets merge, pauses are gaps, quantiles are near."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.view.series import (
    AXIS_BUCKETS,
    FAMILIES_KEPT,
    OTHER,
    Axis,
    Families,
    Gauge,
    Quantiles,
    Recent,
)

START = 100.0


def run_for(axis: Axis, seconds: int, *, rate: int = 4, begin: float = START) -> None:
    """`rate` events a second, told four times a second."""
    for quarter in range(seconds * 4):
        at = begin + quarter / 4
        axis.add(at + 0.1, rate / 4)
        axis.elapse(at + 0.25, 0.25, paused=False)


def test_values_are_means_per_second_of_finished_buckets() -> None:
    axis = Axis(START)
    run_for(axis, 5)
    axis.add(START + 5.5, 100)  # in a bucket that is not over
    series = axis.series(START + 5.6, wall=5000.0)
    assert series.values == (4.0,) * 5
    assert (series.start, series.width) == (5000.0 - 5.6, 1.0)


def test_a_bucket_in_which_work_was_paused_throughout_is_a_gap_and_not_a_zero() -> None:
    axis = Axis(START)
    run_for(axis, 2)
    axis.elapse(START + 3, 1.0, paused=True)
    axis.elapse(START + 4, 1.0, paused=False)
    assert axis.series(START + 4, 0.0).values == (4.0, 4.0, None, 0.0)


def test_a_bucket_that_was_paused_in_part_has_the_mean_of_its_working_time() -> None:
    axis = Axis(START)
    axis.add(START + 0.1, 5)
    axis.elapse(START + 0.5, 0.5, paused=False)
    axis.elapse(START + 1.0, 0.5, paused=True)
    assert axis.series(START + 1, 0.0).values == (10.0,)


@pytest.mark.parametrize("tick", [0.25, 0.3, 0.7, 2.9])
def test_ticks_that_cross_the_edges_of_buckets_distort_no_rate(tick: float) -> None:
    axis = Axis(START)
    steps = int(30 / tick)
    for second in range(31):
        axis.add(START + second + 0.01, 7)
    for step in range(1, steps + 1):
        axis.elapse(START + step * tick, tick, paused=False)
    values = axis.series(START + steps * tick, 0.0).values
    assert values[:-1] == pytest.approx([7.0] * (len(values) - 1))


def test_a_stall_is_time_that_passed_and_no_pause() -> None:
    axis = Axis(START)
    axis.elapse(START + 10, 10.0, paused=False)
    assert axis.series(START + 10, 0.0).values == (0.0,) * 10


def test_a_full_axis_merges_its_buckets_and_then_lets_the_oldest_go() -> None:
    axis = Axis(START)
    run_for(axis, 400)
    early = axis.series(START + 400, wall=1000.0)
    assert (early.start, early.width, len(early.values)) == (600.0, 2.0, 200)
    run_for(axis, 1600, begin=START + 400)
    late = axis.series(START + 2000, wall=5000.0)
    assert (late.width, len(late.values)) == (8.0, AXIS_BUCKETS - 1)
    assert late.start + late.width * len(late.values) == 5000.0
    assert late.values == pytest.approx((4.0,) * (AXIS_BUCKETS - 1))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 5000), st.integers(0, 100)), max_size=50),
    st.integers(2, 16),
)
def test_merging_buckets_loses_no_event(events: list[tuple[float, int]], keep: int) -> None:
    axis, now = Axis(START, keep=keep, widest=math.inf), START
    for gap, amount in events:
        axis.elapse(now + gap, gap, paused=False)
        now += gap
        axis.add(now, amount)
    axis.elapse(now + 10_000, 10_000, paused=False)
    series = axis.series(now + 10_000, 0.0)
    total = sum((value or 0.0) * series.width for value in series.values)
    last = axis._sums[len(series.values) :]
    opened = sum(axis._open)
    assert len(axis._sums) <= keep
    assert opened == pytest.approx(now + 10_000 - START)
    if not any(last):
        assert total == pytest.approx(sum(amount for _, amount in events), rel=0.01, abs=0.01)


def test_series_with_the_same_start_stay_on_one_axis() -> None:
    axis, gauge, quiet = Axis(START), Gauge(START), Axis(START)
    for second in range(1000):
        at = START + second
        axis.add(at, 1)
        gauge.set(at, second)
        for each in (axis, quiet):
            each.elapse(at + 1, 1.0, paused=False)
    shapes = [each.series(START + 1000, 77.0) for each in (axis, quiet, gauge)]
    assert len({(series.start, series.width) for series in shapes}) == 1
    assert len(shapes[0].values) == len(shapes[1].values)
    assert abs(len(shapes[2].values) - len(shapes[0].values)) <= 1


def test_a_gauge_holds_its_level_until_it_is_set_again() -> None:
    gauge = Gauge(START)
    gauge.set(START, 32)
    gauge.set(START + 3.5, 64)
    gauge.set(START + 3.9, 48)
    assert gauge.series(START + 4, 0.0).values == (32, 32, 32, 48)


def test_a_gauge_that_fills_up_keeps_the_last_level_of_each_pair() -> None:
    gauge = Gauge(START, keep=4)
    for second in range(6):
        gauge.set(START + second, second)
    series = gauge.series(START + 6, 0.0)
    assert (series.width, series.values) == (2.0, (1, 3, 5))


def test_a_recent_rate_is_that_of_whole_seconds_in_the_window() -> None:
    recent = Recent(window=10)
    assert recent.per_second(5.0) == 0.0
    for second in range(100):
        for part in (0.1, 0.6):
            recent.add(second + part, 3)
    assert recent.per_second(100.0) == 6.0
    assert recent.per_second(100.9) == 6.0  # the open second does not count
    assert recent.per_second(105.0) == 3.0
    assert recent.per_second(200.0) == 0.0


def test_a_recent_rate_of_the_first_seconds_is_not_diluted_by_the_empty_window() -> None:
    recent = Recent(window=30)
    for second in range(4):
        recent.add(50.5 + second, 8)
    assert recent.per_second(54.0) == 8.0


def test_a_recent_rate_takes_constant_memory() -> None:
    recent = Recent(window=10)
    for second in range(5000):
        recent.add(float(second), 1)
    assert len(recent._buckets) <= 21


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.99])
def test_quantiles_are_right_to_within_two_and_a_half_percent(share: float) -> None:
    rng = random.Random(1)
    values = sorted(rng.lognormvariate(3, 1) for _ in range(20_000))
    quantiles = Quantiles()
    for value in values:
        quantiles.add(value)
    exact = values[int(share * len(values))]
    assert quantiles.quantile(share) == pytest.approx(exact, rel=0.03)
    assert quantiles.count == 20_000


def test_quantiles_of_nothing_and_of_nothing_long() -> None:
    quantiles = Quantiles()
    assert quantiles.quantile(0.5) is None
    quantiles.add(0.0)
    quantiles.add(-1.0)
    assert quantiles.quantile(0.5) == pytest.approx(0.001, rel=0.05)


def test_families_are_counted_on_the_axis_of_the_rates_in_the_order_they_came() -> None:
    families, axis = Families(START), Axis(START)
    for second in range(1200):
        axis.elapse(START + second + 1, 1.0, paused=False)
        if second >= 500:
            families.add(START + second, "rate_limit" if second % 2 else "deadline")
    rate = axis.series(START + 1200, 77.0)
    found = families.series(START + 1200, 77.0)
    assert [each.family for each in found] == ["deadline", "rate_limit"]
    for each in found:
        assert (each.counts.start, each.counts.width) == (rate.start, rate.width)
        assert len(each.counts.values) == len(rate.values)
        assert sum(value or 0 for value in each.counts.values) == 350


def test_a_family_that_has_left_the_axis_keeps_its_place_and_no_values() -> None:
    families = Families(START)
    families.add(START, "deadline")
    families.add(START + 3000, "rate_limit")
    old, new = families.series(START + 3010, 0.0)
    assert (old.family, old.counts.values) == ("deadline", ())
    assert sum(value or 0 for value in new.counts.values) == 1


def test_too_many_families_are_counted_together() -> None:
    families = Families(START)
    for number in range(3 * FAMILIES_KEPT):
        families.add(START, f"family {number}")
    found = families.series(START + 10, 0.0)
    assert len(found) == FAMILIES_KEPT + 1
    assert found[-1].family == OTHER
    assert sum(value or 0 for value in found[-1].counts.values) == 2 * FAMILIES_KEPT
