"""A run directory read back: sessions, torn and odd lines, the heartbeat after a kill."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from e2e_desk import Desk
from e2e_provider import playing, slow
from taped import START, STEP, break_lines, ended, event, moving, write_run

from engine.disk.jsonlines import dump, dump_line
from engine.disk.rundir import EVENTS, HISTORY, STATUS
from engine.errors import UsageError
from engine.past.tape import read_tape, spells
from engine.view.frame import status
from engine.view.snapshot import Spell


def test_one_session_has_every_point_as_it_was(tmp_path: Path) -> None:
    wanted = moving(40)
    tape = read_tape(write_run(tmp_path, wanted))
    (session,) = tape.sessions
    assert len(session) == 40
    assert (session.start, session.end) == (START, START + 390)
    for place in (0, 1, 17, 39):
        found = session.snapshot(place)
        assert [v.ok for v in found.datasets] == [v.ok for v in wanted[place].datasets]
        assert [v.exactness for v in found.datasets] == [
            v.exactness for v in wanted[place].datasets
        ]
    assert tape.odd == {}
    assert not tape.live


def test_sessions_follow_each_other_and_the_gap_is_named(tmp_path: Path) -> None:
    later = moving(3, START + 8000, pid=4712)
    tape = read_tape(write_run(tmp_path, moving(5), later))
    assert [len(session) for session in tape.sessions] == [5, 3]
    (entry,) = tape.journal
    assert entry.at == START + 8000
    assert entry.text == "the next session, 2h 12m later: process 4712 on gpu-07"


def test_a_dataset_that_stands_still_is_carried_within_its_session_only(tmp_path: Path) -> None:
    one, two = moving(2)
    still = replace(two, datasets=one.datasets)
    fewer = replace(one, pid=9, started_at=START + 90, heartbeat_at=START + 99)
    fewer = replace(fewer, datasets=one.datasets[:2])
    tape = read_tape(write_run(tmp_path, [one, still], [fewer]))
    assert len(tape.sessions[0].snapshot(1).datasets) == 6
    assert len(tape.sessions[1].snapshot(0).datasets) == 2


def test_odd_lines_are_left_out_and_counted(tmp_path: Path) -> None:
    folder = write_run(tmp_path, moving(4), events=[event(1, "note", "begun")])
    odd = [
        b"{torn",
        b"[1]",
        b'{"at": 3}',
        b'{"datasets": [7], "pid": 1, "started_at": "x"}',
        b"\xff",
    ]
    break_lines(folder / HISTORY, *odd)
    break_lines(
        folder / EVENTS, b'{"kind": "note"}', b"null", b'{"at": "x", "kind": "a", "text": ""}'
    )
    tape = read_tape(folder)
    assert tape.odd == {HISTORY: 5, EVENTS: 3}
    assert len(tape.sessions[0]) == 4
    assert [entry.text for entry in tape.journal] == ["begun"]


def test_a_torn_last_line_costs_only_itself(tmp_path: Path) -> None:
    folder = write_run(tmp_path, moving(4))
    path = folder / HISTORY
    path.write_bytes(path.read_bytes()[:-100])
    (folder / STATUS).unlink()
    tape = read_tape(folder)
    assert len(tape.sessions[0]) == 3
    assert tape.odd == {HISTORY: 1}


def test_a_clock_that_was_set_back_does_not_turn_the_axis_round(tmp_path: Path) -> None:
    one, two, three = moving(3)
    back = replace(two, heartbeat_at=START - 500)
    tape = read_tape(write_run(tmp_path, [one, back, three]))
    assert list(tape.sessions[0].tracks.at) == [START, START + 2 * STEP]


def test_after_a_kill_the_heartbeat_is_the_newest_point(tmp_path: Path) -> None:
    *points, last = moving(4)
    folder = write_run(tmp_path, points)
    newer = replace(last, heartbeat_at=START + 27)
    (folder / STATUS).write_bytes(dump(status(newer)))
    tape = read_tape(folder)
    assert tape.sessions[0].end == START + 27
    found = tape.last
    assert [v.ok for v in found.datasets] == [v.ok for v in newer.datasets]
    assert found.limit_reason == points[-1].limit_reason


def test_the_heartbeat_of_another_session_is_no_point_of_this_one(tmp_path: Path) -> None:
    folder = write_run(tmp_path, moving(2))
    other = replace(moving(1)[0], pid=1, heartbeat_at=START + 900)
    (folder / STATUS).write_bytes(dump(status(other)))
    assert read_tape(folder).sessions[0].end == START + STEP


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "does not exist: nothing has been recorded"),
        (b"", "is empty: nothing has been recorded"),
        (b'{"at": "2026-11', "holds no line of a run's history: 1 unreadable"),
    ],
)
def test_nothing_to_read_is_said(tmp_path: Path, content: bytes | None, said: str) -> None:
    folder = write_run(tmp_path, [])
    (folder / HISTORY).unlink()
    if content is not None:
        (folder / HISTORY).write_bytes(content)
    with pytest.raises(UsageError, match=said):
        read_tape(folder)


def test_a_folder_that_is_no_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is no run directory"):
        read_tape(tmp_path)
    with pytest.raises(UsageError, match="is no run directory"):
        read_tape(tmp_path / "missing")


def test_spells_end_with_the_next_state_or_with_the_session() -> None:
    states = [(10.0, "running"), (20.0, "paused"), (35.0, "running"), (50.0, "waiting")]
    assert spells(states, 0, 30, until=60) == (Spell(20.0, None, "paused"),)
    assert spells(states, 0, 55, until=60) == (
        Spell(20.0, 35.0, "paused"),
        Spell(50.0, None, "waiting"),
    )
    assert spells(states, 0, 60, until=60)[1] == Spell(50.0, 60, "waiting")
    assert spells(states, 40, 60, until=60) == (Spell(50.0, 60, "waiting"),)


def test_orders_and_failures_are_read(tmp_path: Path) -> None:
    order = event(5, "command", "paused the run", command="pause", origin="screen")
    folder = write_run(tmp_path, [*moving(2), ended(moving(3)[2])], events=[order])
    name = moving(1)[0].datasets[0].name
    (folder / name).mkdir()
    lines = [
        {"id": "x", "family": "moderation", "message": "no", "attempts": 1, "at": order["at"]},
        {"id": "x", "family": "deadline", "message": "late", "attempts": 8, "at": order["at"]},
        {"id": None, "family": "invalid_row", "message": "line 3", "at": order["at"]},
        {"id": 3, "family": "broken"},
    ]
    (folder / name / "failures.jsonl").write_bytes(b"".join(map(dump_line, lines)))
    tape = read_tape(folder)
    assert [(mark.command, mark.at) for mark in tape.marks] == [("pause", START + 5)]
    assert tape.journal[0].origin == "screen"
    found = [(line.id, line.family, line.attempts) for line in tape.failures[name]]
    assert found == [("x", "deadline", 8), ("", "invalid_row", 0)]
    assert tape.odd == {f"{name}/failures.jsonl": 1}


def test_a_short_run_leaves_its_beginning_and_its_end(tmp_path: Path) -> None:
    with playing(latency=slow(0.01)) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(3, endpoint={"api": "openai", "tokenizer": "none"})
        assert desk.go("--headless").code == 0
        lines = desk.files.lines("history.jsonl")
        assert [line["datasets"][0]["ok"] for line in (lines[0], lines[-1])] == [0, 3]
        tape = read_tape(desk.files.folder)
    assert len(tape.sessions[0]) >= 2
    assert tape.last.exit_code == 0
    assert tape.last.datasets[0].latency.p50 is not None
    assert tape.odd == {}
