"""Orders and held spans on the time axis: in epoch seconds, in order, in constant memory."""

from __future__ import annotations

from engine.view.happenings import MARKS_KEPT, SPELLS_KEPT, Happenings
from engine.view.snapshot import Mark, Spell

NOW, WALL = 500.0, 1_800_000_000.0
LATE = WALL - NOW


def test_a_spell_lasts_from_the_state_s_beginning_to_its_end() -> None:
    happenings = Happenings()
    for at, state in ((400, "running"), (410, "paused"), (415, "paused"), (420, "running")):
        happenings.entered(at, state)
    assert happenings.series(NOW, WALL).spells == (Spell(410 + LATE, 420 + LATE, "paused"),)


def test_one_held_state_may_follow_another_and_the_last_is_open() -> None:
    happenings = Happenings()
    happenings.entered(410, "waiting")
    happenings.entered(430, "paused")
    assert happenings.series(NOW, WALL).spells == (
        Spell(410 + LATE, 430 + LATE, "waiting"),
        Spell(430 + LATE, None, "paused"),
    )


def test_marks_keep_their_order_and_times_follow_the_wall_clock() -> None:
    happenings = Happenings()
    happenings.marked(480, "throttle", "throttle 500", None)
    happenings.marked(490, "pause", "pause B", "B")
    first, second = happenings.series(NOW, WALL + 60).marks
    assert first == Mark(480 + LATE + 60, "throttle", "throttle 500")
    assert (second.text, second.dataset) == ("pause B", "B")


def test_a_run_of_days_keeps_the_newest() -> None:
    happenings = Happenings()
    for step in range(1000):
        happenings.marked(step, "pause", str(step), None)
        happenings.entered(step, "paused" if step % 2 else "running")
    kept = happenings.series(1000.0, 1000.0)
    assert [mark.text for mark in kept.marks] == [str(n) for n in range(1000 - MARKS_KEPT, 1000)]
    assert len(kept.spells) == SPELLS_KEPT + 1
    assert kept.spells[-1].end is None
