"""The run's course: its state words, and the exit code where several apply."""

from __future__ import annotations

import itertools

import pytest

from engine.course import Course
from engine.errors import ExitCode


def course(*facts: str) -> Course:
    made = Course(started=True)
    for fact in facts:
        value = {"fatal": "auth: no key", "crash": RuntimeError("ours")}.get(fact, True)
        setattr(made, fact, value)
    return made


@pytest.mark.parametrize(
    ("made", "more", "state"),
    [
        (Course(), {}, "starting"),
        (course(), {}, "running"),
        (course(), {"paused": True}, "paused"),
        (course(), {"waiting": "disk: full"}, "waiting"),
        (course(), {"waiting": "disk: full", "paused": True}, "waiting"),
        (course("draining"), {"waiting": "disk: full"}, "draining"),
        (course("stopping"), {}, "draining"),
        (course("ended"), {}, "stopped"),
        (course("ended"), {"work_left": False}, "done"),
        (course("ended", "draining"), {"work_left": False}, "done"),
    ],
)
def test_states(made: Course, more: dict[str, object], state: str) -> None:
    facts = {"paused": False, "waiting": "", "work_left": True, **more}
    assert made.state(**facts) == state  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("facts", "work_left", "incomplete", "code"),
    [
        ((), False, False, ExitCode.OK),
        ((), True, False, ExitCode.OK),
        ((), False, True, ExitCode.INCOMPLETE),
        (("too_many_failures",), True, False, ExitCode.INCOMPLETE),
        (("capped",), True, False, ExitCode.COST_CAP),
        (("capped",), False, False, ExitCode.OK),
        (("fatal",), True, False, ExitCode.ENDPOINT),
        (("ordered",), True, False, ExitCode.INTERRUPTED),
        (("ordered",), False, False, ExitCode.OK),
        (("ordered",), False, True, ExitCode.INCOMPLETE),
        (("crash",), False, False, ExitCode.INTERNAL),
    ],
)
def test_exit_codes(
    facts: tuple[str, ...], work_left: bool, incomplete: bool, code: ExitCode
) -> None:
    assert course(*facts).exit_code(work_left=work_left, incomplete=incomplete) is code


RANK = [("crash", 1), ("ordered", 130), ("fatal", 4), ("capped", 6), ("too_many_failures", 3)]


@pytest.mark.parametrize(
    "chosen", [c for n in range(1, 6) for c in itertools.combinations(RANK, n)]
)
def test_where_several_apply_the_order_is_1_130_4_6_3(chosen: tuple[tuple[str, int], ...]) -> None:
    made = course(*(fact for fact, _ in chosen))
    assert made.exit_code(work_left=True, incomplete=True) == chosen[0][1]


def test_the_first_reason_to_drain_stands() -> None:
    made = Course()
    made.drain("max_cost_usd leaves no room")
    made.drain("drained by order")
    assert (made.draining, made.reason) == (True, "max_cost_usd leaves no room")
