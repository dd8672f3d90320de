"""The playhead over a tape: where it stands, what it shows there, and that nothing is steered."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from taped import START, ended, event, moving, write_run
from virtual_clock import VirtualClock

from engine.commands import Drain
from engine.errors import UsageError
from engine.past.replay import SPEEDS, Player, speed_words
from engine.past.tape import read_tape
from engine.view.series import AXIS_BUCKETS, WIDEST_S
from engine.view.snapshot import Snapshot


def player(
    folder: Path, clock: VirtualClock, *sessions: list[Snapshot], speed: float = 10
) -> Player:
    orders = [
        event(12, "command", "paused the run", command="pause"),
        event(12, "state", "run running → paused", state="paused"),
        event(31, "state", "run paused → running", state="running"),
    ]
    tape = read_tape(write_run(folder, *sessions, events=orders))
    return Player(tape, clock, speed=speed, mark="REPLAY ")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def test_time_passes_at_the_speed(tmp_path: Path, clock: VirtualClock) -> None:
    play = player(tmp_path, clock, moving(40))
    assert (play.position, play.length) == (0.0, 390.0)
    clock.advance(2.5)
    assert play.position == 25
    assert play.wall() == START + 25
    shown = play.snapshot()
    assert shown.heartbeat_at == play.wall()
    assert shown.elapsed_s == 25
    assert shown.run == "REPLAY kimi-k25-eagle3"
    assert [v.ok for v in shown.datasets] == [v.ok for v in moving(3)[2].datasets]
    clock.advance(1000)
    assert play.at_end
    assert play.position == 390


def test_pause_speed_and_jumps(tmp_path: Path, clock: VirtualClock) -> None:
    play = player(tmp_path, clock, moving(40))
    play.pause()
    clock.advance(100)
    assert (play.position, play.paused) == (0.0, True)
    play.jump(60)
    assert play.position == 60
    play.jump(-600)
    assert play.position == 0
    play.pause()
    play.faster(1)
    assert play.speed == 20
    clock.advance(1)
    play.faster(-1)
    assert (play.position, play.speed) == (20.0, 10.0)
    play.move(1e9)
    assert play.at_end
    play.pause()
    assert (play.position, play.paused) == (0.0, False)
    for _ in range(30):
        play.faster(1)
    assert play.speed == SPEEDS[-1]
    for _ in range(30):
        play.faster(-1)
    assert play.speed == SPEEDS[0]


def test_a_speed_of_ones_own_goes_to_its_neighbours(tmp_path: Path, clock: VirtualClock) -> None:
    play = player(tmp_path, clock, moving(3), speed=7)
    play.faster(1)
    assert play.speed == 10
    play = player(tmp_path, clock, moving(3), speed=7)
    play.faster(-1)
    assert play.speed == 5
    assert [speed_words(speed) for speed in (0.5, 10, 1800)] == ["x0.5", "x10", "x1,800"]


def test_the_next_session_follows_at_once(tmp_path: Path, clock: VirtualClock) -> None:
    play = player(tmp_path, clock, moving(3), moving(3, START + 5000, pid=2))
    assert play.length == 40
    play.move(19.9)
    assert (play.session, play.snapshot().pid) == (1, 4711)
    play.move(20)
    shown = play.snapshot()
    assert (play.session, shown.pid, play.wall()) == (2, 2, START + 5000)
    assert shown.journal[-1].text.startswith("the next session, 1h 23m later")


def test_series_are_made_from_the_lines(tmp_path: Path, clock: VirtualClock) -> None:
    points = [
        replace(snapshot, limit=100 + place, datasets=_counted(snapshot, place))
        for place, snapshot in enumerate(moving(31))
    ]
    play = player(tmp_path, clock, points)
    play.move(300)
    shown = play.snapshot()
    assert (shown.rate.start, shown.rate.width) == (START, 2.0)
    assert len(shown.rate.values) == 150
    assert shown.rate.values == pytest.approx([6 * 0.7] * 150)
    assert shown.datasets[2].rate.values == pytest.approx([0.7] * 150)
    assert shown.limit_series.values[:6] == (100, 100, 100, 100, 101, 101)
    families = {each.family: each.counts.values for each in shown.errors_by_family}
    assert {family: sum(values) for family, values in families.items()} == {
        error.family: _total(points[-1], error.family) - _total(points[0], error.family)
        for view in points[-1].datasets
        for error in view.errors
        if _total(points[-1], error.family) > _total(points[0], error.family)
    }
    assert {len(each.counts.values) for each in shown.errors_by_family} <= {150}


def _counted(snapshot: Snapshot, place: int) -> tuple:  # type: ignore[type-arg]
    return tuple(replace(view, rows=7 * place) for view in snapshot.datasets)


def _total(snapshot: Snapshot, family: str) -> int:
    lines = (line for view in snapshot.datasets for line in view.errors)
    return sum(line.count for line in lines if line.family == family)


def test_a_long_session_shows_what_a_live_screen_would(tmp_path: Path, clock: VirtualClock) -> None:
    play = player(tmp_path, clock, moving(500))
    play.move(play.length)
    shown = play.snapshot()
    assert (shown.rate.width, len(shown.rate.values)) == (WIDEST_S, AXIS_BUCKETS)
    span = WIDEST_S * AXIS_BUCKETS
    assert shown.rate.start + span == pytest.approx(START + 4990, abs=WIDEST_S)


def test_a_pause_is_a_gap_and_a_spell(tmp_path: Path, clock: VirtualClock) -> None:
    points = moving(8)
    for place in (2, 3, 4):
        points[place] = replace(points[place], state="paused", datasets=points[2].datasets)
    play = player(tmp_path, clock, points)
    play.move(25)
    (spell,) = play.snapshot().events.spells
    assert (spell.start, spell.end, spell.state) == (START + 12, None, "paused")
    play.move(70)
    shown = play.snapshot()
    (spell,) = shown.events.spells
    assert (spell.start, spell.end) == (START + 12, START + 31)
    assert [mark.text for mark in shown.events.marks] == ["paused the run"]
    assert None in shown.rate.values
    assert shown.rate.values[-1] is not None


def test_a_killed_run_does_not_run_on(tmp_path: Path, clock: VirtualClock) -> None:
    play = player(tmp_path, clock, moving(3))
    assert play.snapshot().state == "running"
    play.move(play.length)
    assert play.snapshot().state == "stopped"
    assert play.snapshot().reason.startswith("its process went without a word")


def test_an_ended_run_shows_its_result(tmp_path: Path, clock: VirtualClock) -> None:
    points = moving(3)
    play = player(tmp_path, clock, [*points[:2], ended(points[2])])
    assert play.snapshot().exit_code is None
    play.move(play.length)
    assert (play.snapshot().state, play.snapshot().exit_code) == ("done", 0)
    assert not play.ended


def test_nothing_is_sent(tmp_path: Path, clock: VirtualClock) -> None:
    refusal = player(tmp_path, clock, moving(2)).send(Drain()).exception(0)
    assert isinstance(refusal, UsageError)
    assert "nothing is sent" in str(refusal)
