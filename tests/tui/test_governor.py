"""The bandwidth governor in virtual time: the budget holds, keys are drawn, debts are forgiven."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.governor import BURST_S, START_S, STILL_S, WINDOW_S, Governor


class Screen:
    """Frames of a size at a rate, each written as soon as it is drawn."""

    def __init__(self, budget: float, fps: float) -> None:
        self.governor = Governor(budget)
        self.fps = fps
        self.at = 100.0
        self.sent = 0

    def frames(self, seconds: float, size: int) -> list[bool]:
        drawn = []
        for _ in range(round(seconds * self.fps)):
            self.at += 1 / self.fps
            self.governor.note(self.at, self.sent)
            drawn.append(self.governor.due())
            self.sent += size if drawn[-1] else 0
        return drawn

    def key(self, size: int) -> None:
        """A picture that is drawn whatever it costs."""
        self.sent += size


def test_what_fits_is_all_drawn() -> None:
    screen = Screen(8000, fps=2)
    assert all(screen.frames(60, 4000))
    assert screen.governor.left_out == 0
    assert screen.governor.drawn == 120


@pytest.mark.parametrize(("fps", "size"), [(2, 12_000), (4, 3000), (10, 3000), (10, 900)])
def test_what_does_not_fit_is_left_out_evenly(fps: float, size: int) -> None:
    screen = Screen(8000, fps=fps)
    screen.frames(10, size)
    before = screen.sent
    drawn = screen.frames(100, size)
    assert (screen.sent - before) / 100 == pytest.approx(8000, rel=0.02)
    assert False in drawn
    gaps = [len(gap) for gap in "".join("1" if one else "0" for one in drawn).split("1")[1:-1]]
    assert max(gaps) - min(gaps) <= 1


def test_a_quiet_screen_saves_up_for_a_second_and_no_more() -> None:
    screen = Screen(8000, fps=10)
    screen.frames(600, 0)
    assert all(screen.frames(1.0, 1600))
    assert not all(screen.frames(1.0, 1600))


@pytest.mark.parametrize(("cost", "still_s"), [(16_000, 1.0), (1_000_000, STILL_S)])
def test_after_a_dear_key_the_screen_stands_still_but_not_for_long(
    cost: int, still_s: float
) -> None:
    screen = Screen(8000, fps=10)
    screen.frames(20, 0)
    screen.key(cost)
    drawn = screen.frames(10, 0)
    assert drawn.index(True) / 10 == pytest.approx(still_s, abs=0.15)
    assert all(drawn[drawn.index(True) :])


@given(
    st.lists(st.integers(0, 9000), min_size=1, max_size=200),
    st.floats(0.1, 10),
    st.floats(500, 50_000),
)
def test_over_any_span_the_budget_and_one_frame_is_the_most(
    sizes: list[int], fps: float, budget: float
) -> None:
    screen = Screen(budget, fps)
    totals = [0.0]
    for size in sizes:
        screen.frames(1 / fps, size)
        totals.append(screen.sent)
    largest = max(sizes)
    for first in range(len(totals)):
        for last in range(first + 1, len(totals)):
            spare = START_S if first / fps <= START_S else BURST_S
            most = budget * ((last - first) / fps + spare) + 2 * largest
            assert totals[last] - totals[first] <= most * 1.001


def test_the_rate_is_that_of_the_last_seconds() -> None:
    screen = Screen(8000, fps=2)
    assert screen.governor.rate == 0
    screen.frames(20, 3000)
    assert screen.governor.rate == pytest.approx(6000)
    screen.frames(WINDOW_S, 500)
    screen.frames(1, 500)
    assert screen.governor.rate == pytest.approx(1000)
    assert screen.governor.total == screen.sent - 500
