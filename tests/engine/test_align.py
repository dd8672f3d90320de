"""Series of several processes on one axis."""

from __future__ import annotations

from engine.fleet.align import counted, families, summed
from engine.view.snapshot import FamilySeries, Series


def test_equal_axes_are_added() -> None:
    ours = summed([Series(100.0, 1.0, (1.0, 2.0)), Series(100.0, 1.0, (3.0, 4.0))], 102.0)
    assert ours == Series(100.0, 1.0, (4.0, 6.0))


def test_the_widest_bucket_holds_and_rates_become_means() -> None:
    ours = summed([Series(100.0, 1.0, (1.0, 3.0, 5.0, 7.0)), Series(100.0, 2.0, (10.0, 20.0))], 104)
    assert ours == Series(100.0, 2.0, (12.0, 26.0))


def test_counts_of_narrow_buckets_add_up() -> None:
    ours = counted([Series(100.0, 1.0, (1, 3, 5, 7)), Series(100.0, 2.0, (10, 20))], 104.0)
    assert ours == Series(100.0, 2.0, (14.0, 32.0))


def test_one_that_starts_later_says_nothing_before() -> None:
    ours = summed([Series(100.0, 1.0, (1.0, 1.0, 1.0)), Series(102.0, 1.0, (5.0,))], 103.0)
    assert ours.values == (1.0, 1.0, 6.0)


def test_a_pause_of_all_is_a_gap_and_of_one_is_not() -> None:
    ours = summed([Series(0.0, 1.0, (None, None)), Series(0.0, 1.0, (2.0, None))], 2.0)
    assert ours.values == (2.0, None)


def test_what_the_last_one_has_not_reported_yet_is_left_out() -> None:
    ours = summed([Series(0.0, 1.0, (1.0,) * 5), Series(0.0, 1.0, (1.0,) * 3)], 3.0)
    assert ours.values == (2.0, 2.0, 2.0)


def test_the_axis_keeps_its_newest_buckets() -> None:
    ours = summed([Series(0.0, 1.0, tuple(float(n) for n in range(300)))], 300.0)
    assert len(ours.values) == 240
    assert (ours.start, ours.values[0], ours.values[-1]) == (60.0, 60.0, 299.0)


def test_nothing_is_an_empty_series() -> None:
    assert summed([Series(0.0, 1.0)], 9.0).values == ()


def test_families_keep_the_order_in_which_they_were_seen() -> None:
    first = [FamilySeries("rate_limit", Series(0.0, 1.0, (1, 0)))]
    second = [
        FamilySeries("timeout", Series(0.0, 1.0, (0, 2))),
        FamilySeries("rate_limit", Series(0.0, 1.0, (4, 0))),
    ]
    merged = families([first, second], 2.0)
    assert [each.family for each in merged] == ["rate_limit", "timeout"]
    assert merged[0].counts.values == (5.0, 0.0)
