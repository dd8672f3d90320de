"""The schedule: never over the limit, nothing twice, everything ends, the numbers always add up."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from engine_parts import job_of
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from engine.feed.prompts import make_prompt
from engine.pace.rotation import PATIENCE, PATIENCE_S, Doubt
from engine.schedule import WAITING_LEAST, Job, Queue, Schedule

EVERYTHING = math.inf


def jobs(name: str, count: int, *, turns: int = 1) -> list[Job]:
    return [
        job_of({"turns": [f"{name} {n}.{turn}" for turn in range(turns)]}, dataset=name, index=n)
        for n in range(count)
    ]


def scheduled(*sizes: int, **more: Any) -> Schedule:
    """Datasets A, B, ... whose sources have been read to their ends."""
    names = "ABCDEF"[: len(sizes)]
    schedule = Schedule([Queue(n, size) for n, size in zip(names, sizes, strict=True)], **more)
    for name, size in zip(names, sizes, strict=True):
        schedule.offer(name, jobs(name, size), exhausted=True)
    return schedule


def names(started: list[Job]) -> str:
    return "".join(job.prompt.dataset for job in started)


def balanced(queue: Queue) -> bool:
    done = queue.ok + queue.failed + queue.invalid
    return queue.prompts == done + len(queue.in_flight) + queue.left


def test_datasets_run_in_order() -> None:
    schedule = scheduled(3, 3)
    assert names(schedule.take(2, 0)) == "AA"
    assert [queue.state for queue in schedule.queues.values()] == ["running", "queued"]


def test_the_next_dataset_starts_in_the_slots_that_the_tail_leaves_free() -> None:
    schedule = scheduled(3, 3)
    assert names(schedule.take(5, 0)) == "AAABB"
    assert [queue.state for queue in schedule.queues.values()] == ["running", "running"]


def test_a_source_that_is_not_read_to_its_end_keeps_its_slots() -> None:
    schedule = Schedule([Queue("A", 9), Queue("B", 2)])
    schedule.offer("A", jobs("A", 2), exhausted=False)
    schedule.offer("B", jobs("B", 2), exhausted=True)
    assert names(schedule.take(5, 0)) == "AA"
    assert list(schedule.wanted(5)) == ["A"]
    schedule.offer("A", [], exhausted=True)
    assert names(schedule.take(3, 0)) == "BB"


def test_only_as_much_is_read_as_free_slots_can_use() -> None:
    schedule = Schedule([Queue("A", 1000), Queue("B", 1000)])
    schedule.offer("A", jobs("A", 10), exhausted=False)
    assert list(schedule.wanted(10)) == []
    assert list(schedule.wanted(11)) == ["A"]
    schedule.offer("A", [], exhausted=True)
    assert list(schedule.wanted(11)) == []
    schedule.take(10, 0)
    assert list(schedule.wanted(11)) == ["B"]


def test_an_outage_does_not_read_whole_sources_into_memory() -> None:
    schedule = Schedule([Queue("A", 100_000)])
    number = 0
    while list(schedule.wanted(4)):
        fresh = [job_of(f"{number + n}", dataset="A") for n in range(4)]
        number += 4
        schedule.offer("A", fresh, exhausted=False)
        for job in schedule.take(4, 0):
            schedule.retry(job, EVERYTHING)
    assert number <= WAITING_LEAST + 8


def test_a_multi_turn_prompt_counts_once_and_is_ok_when_all_its_turns_are() -> None:
    schedule = Schedule([Queue("A", 1)])
    schedule.offer("A", jobs("A", 1, turns=3), exhausted=True)
    queue = schedule.queues["A"]
    for turn in range(3):
        (job,) = schedule.take(9, 0)
        job.attempt, job.tries, job.avoid, job.max_tokens_factor = 4, 3, ("X",), 2
        job.family_tries["deadline"] = 1
        assert job.turn == turn
        assert job.answers == [f"answer {n}" for n in range(turn)]
        assert schedule.saved(job, last=False, answer=f"answer {turn}") is (turn == 2)
        assert balanced(queue)
        if turn < 2:
            assert (queue.ok, queue.left) == (0, 1)
            assert (job.attempt, job.tries, job.avoid, job.max_tokens_factor) == (0, 0, (), 1)
            assert job.family_tries == {}
    assert (queue.ok, queue.state, schedule.complete) == (1, "done", True)


def test_a_turn_cut_by_length_ends_its_conversation() -> None:
    schedule = Schedule([Queue("A", 1)])
    schedule.offer("A", jobs("A", 1, turns=3), exhausted=True)
    (job,) = schedule.take(9, 0)
    assert schedule.saved(job, last=True, answer="cut") is True
    assert schedule.complete


def test_the_next_turn_goes_before_new_prompts() -> None:
    schedule = Schedule([Queue("A", 3)])
    schedule.offer("A", jobs("A", 3, turns=2), exhausted=True)
    (job,) = schedule.take(1, 0)
    schedule.saved(job, last=False, answer="a")
    assert schedule.take(1, 0) == [job]


def test_a_retry_waits_until_it_is_due_and_keeps_its_prompt_among_those_left() -> None:
    schedule = scheduled(2)
    first, second = schedule.take(2, 0)
    schedule.retry(first, due=5.0)
    schedule.retry(second, due=4.0)
    assert schedule.take(2, 3.9) == []
    assert (schedule.next_due(), schedule.queues["A"].left) == (4.0, 2)
    assert not schedule.complete
    assert schedule.take(2, 4.0) == [second]
    assert schedule.take(2, 9.0) == [first]
    assert schedule.next_due() is None


def test_prompts_that_wait_leave_their_slots_to_the_next_dataset() -> None:
    schedule = scheduled(2, 2)
    for job in schedule.take(2, 0):
        schedule.retry(job, due=100.0)
    assert names(schedule.take(2, 1)) == "BB"
    assert names(schedule.take(2, 100)) == "AA"


def test_a_paused_dataset_starts_nothing_while_the_next_ones_go_on() -> None:
    schedule = scheduled(2, 2)
    schedule.queues["A"].paused = True
    assert names(schedule.take(9, 0)) == "BB"
    assert schedule.queues["A"].state == "paused"
    assert not schedule.complete
    schedule.queues["A"].paused = False
    assert names(schedule.take(9, 0)) == "AA"


def test_a_paused_run_starts_and_reads_nothing() -> None:
    schedule = Schedule([Queue("A", 3)])
    schedule.offer("A", jobs("A", 1), exhausted=False)
    schedule.paused = True
    assert (schedule.take(9, 0), list(schedule.wanted(9))) == ([], [])
    schedule.paused = False
    assert names(schedule.take(9, 0)) == "A"


def test_a_skipped_dataset_is_complete_once_its_last_request_is_and_can_be_taken_back() -> None:
    schedule = scheduled(3)
    (job,) = schedule.take(1, 0)
    queue = schedule.queues["A"]
    queue.skipped = True
    assert (schedule.take(9, 0), list(schedule.wanted(9))) == ([], [])
    assert (queue.state, queue.complete, queue.left) == ("skipped", False, 2)
    schedule.saved(job, last=False, answer="")
    assert (queue.complete, queue.left, balanced(queue)) == (True, 2, True)
    queue.skipped = False
    assert not queue.complete
    assert names(schedule.take(9, 0)) == "AA"


def test_a_dataset_at_its_budget_starts_nothing_more_even_where_the_gate_would_allow_it() -> None:
    schedule = scheduled(3, 1)
    (job,) = schedule.take(1, 0)
    queue = schedule.queues["A"]
    queue.over_budget = True
    assert names(schedule.take(9, 0)) == "B"
    assert (queue.state, queue.complete) == ("budget", False)
    schedule.retry(job, due=1.0)
    assert schedule.take(9, 2.0) == []
    assert queue.complete


def test_a_dataset_that_its_budget_holds_back_leaves_its_slots_to_the_next() -> None:
    schedule = scheduled(5, 5, allows=lambda name, flying: name != "A" or flying < 2)
    assert names(schedule.take(6, 0)) == "AABBBB"
    schedule.saved(next(iter(schedule.queues["A"].in_flight)), last=False, answer="")
    assert names(schedule.take(1, 0)) == "A"


def test_a_cancelled_request_leaves_its_prompt_to_the_next_session() -> None:
    schedule = scheduled(1)
    (job,) = schedule.take(1, 0)
    schedule.cancelled(job)
    assert (schedule.queues["A"].left, schedule.in_flight) == (1, 0)


def test_invalid_rows_count_and_an_empty_source_is_done() -> None:
    schedule = Schedule([Queue("A", 2), Queue("B", 0)])
    schedule.offer("A", [], invalid=2, exhausted=True)
    schedule.offer("B", [], exhausted=True)
    assert schedule.complete
    assert (schedule.queues["A"].invalid, schedule.queues["A"].left) == (2, 0)


def test_when_it_was_started_is_known_of_what_is_in_flight() -> None:
    schedule = scheduled(2)
    (first,) = schedule.take(1, 7.0)
    (second,) = schedule.take(1, 9.5)
    assert (first.taken_at, second.taken_at, schedule.now) == (7.0, 9.5, 9.5)


@pytest.mark.parametrize("slots", [0, -3])
def test_without_slots_nothing_starts(slots: int) -> None:
    schedule = scheduled(2)
    assert schedule.take(slots, 0) == []
    assert balanced(schedule.queues["A"])


# --- any order of events ----------------------------------------------------------------------


def held_back(queue: Queue) -> bool:
    return queue.paused or queue.skipped or queue.over_budget


ROWS = st.lists(st.sampled_from([0, 1, 1, 1, 2, 3]), min_size=1, max_size=12)
"""Turns of each source row; 0: an unreadable one."""


OUTCOMES = st.tuples(st.integers(0, 5), st.sampled_from(list("ooookrRRRRfcx")))
"""Which of those in flight ends, and how: ok, cut, retry, refused, failed, cancelled."""


class ScheduleMachine(RuleBasedStateMachine):
    """Whatever happens in whatever order, a schedule of three datasets keeps its promises."""

    @initialize(sources=st.tuples(ROWS, ROWS, ROWS), limit=st.integers(1, 6))
    def begin(self, sources: tuple[list[int], ...], limit: int) -> None:
        self.limit = limit
        self.now = 0.0
        self.sources = dict(zip("ABC", map(list, sources), strict=True))
        self.room = dict.fromkeys("ABC", 99)
        self.saved: Counter[str] = Counter()
        self.ended: Counter[str] = Counter()
        queues = [Queue(name, len(rows)) for name, rows in self.sources.items()]
        self.schedule = Schedule(queues, allows=lambda name, flying: flying < self.room[name])
        self.read = dict.fromkeys("ABC", 0)

    @rule(size=st.integers(1, 4))
    def work(self, size: int) -> None:
        for name in list(self.schedule.wanted(self.limit)):
            self.offer(name, size)
        self.take()

    def offer(self, name: str, size: int) -> None:
        batch = self.sources[name][self.read[name] : self.read[name] + size]
        found = [
            job_of(
                {"turns": [f"{name} {self.read[name] + n} {turn}" for turn in range(turns)]},
                dataset=name,
            )
            for n, turns in enumerate(batch)
            if turns
        ]
        self.read[name] += len(batch)
        self.schedule.offer(name, found, invalid=batch.count(0), exhausted=len(batch) < size)

    def take(self) -> list[Job]:
        slots = self.limit - self.schedule.in_flight
        before = {name: len(q.in_flight) for name, q in self.schedule.queues.items()}
        started = self.schedule.take(slots, self.now)
        assert len(started) <= max(0, slots)
        assert len({job.id for job in started}) == len(started)
        for job in started:
            queue = self.schedule.queues[job.prompt.dataset]
            assert not self.schedule.paused
            assert not held_back(queue)
            assert not self.saved[job.id]
            assert not self.ended[job.prompt.key]
            before[queue.name] += 1
            assert before[queue.name] <= self.room[queue.name]
        self.in_order(started)
        return started

    def in_order(self, started: list[Job]) -> None:
        """A later dataset starts only where no earlier one could have used the slot."""
        last = max((job.prompt.dataset for job in started), default="A")
        for name, queue in self.schedule.queues.items():
            if self.schedule.rotation.rests(name):
                continue
            if name < last and not held_back(queue) and len(queue.in_flight) < self.room[name]:
                assert not queue.ready
                assert queue.exhausted

    @precondition(lambda self: self.schedule.in_flight > 0)
    @rule(outcomes=st.lists(OUTCOMES, min_size=1, max_size=6))
    def end_some(self, outcomes: list[tuple[int, str]]) -> None:
        for pick, outcome in outcomes:
            flying = [job for q in self.schedule.queues.values() for job in q.in_flight]
            if flying:
                flying.sort(key=lambda job: job.id)
                self.settle(flying[pick % len(flying)], outcome)

    def settle(self, job: Job, outcome: str) -> None:
        if outcome in "ok":
            self.saved[job.id] += 1
            self.schedule.rotation.served(job.prompt.dataset)
            if self.schedule.saved(job, last=outcome == "k", answer="a"):
                self.ended[job.prompt.key] += 1
        elif outcome in "rR":
            if outcome == "R":
                self.schedule.refused(job, self.now)
            self.schedule.retry(job, self.now + 1.0)
        elif outcome == "f":
            self.schedule.give_up(job)
            self.ended[job.prompt.key] += 1
        else:
            self.schedule.cancelled(job)

    @rule(name=st.sampled_from("ABC"))
    def refuse_for_long(self, name: str) -> None:
        for _ in range(PATIENCE + 1):
            self.schedule.rotation.refused(name, Doubt(), self.now)
            self.now += PATIENCE_S
        assert self.schedule.rotation.rests(name)

    @rule(seconds=st.one_of(st.floats(0, 3), st.floats(20, 90)), limit=st.integers(1, 6))
    def pass_time(self, seconds: float, limit: int) -> None:
        self.now += seconds
        self.limit = limit

    @rule(
        order=st.sampled_from(["paused", "skipped", "run", "room"]),
        name=st.sampled_from("ABC"),
        on=st.booleans(),
        room=st.sampled_from([0, 1, 2, 99]),
    )
    def steer(self, order: str, name: str, on: bool, room: int) -> None:
        if order == "run":
            self.schedule.paused = on
        elif order == "room":
            self.room[name] = room
        else:
            setattr(self.schedule.queues[name], order, on)

    @invariant()
    def the_numbers_add_up(self) -> None:
        if not hasattr(self, "schedule"):
            return
        for queue in self.schedule.queues.values():
            assert balanced(queue)
            waiting = len(queue.ready) + len(queue.waiting)
            unread = len(self.sources[queue.name]) - self.read[queue.name]
            assert queue.left == waiting + unread
        assert all(count == 1 for count in (self.saved + self.ended).values())

    def go_on(self) -> None:
        self.now += 1.0
        for name in list(self.schedule.wanted(self.limit)):
            self.offer(name, 4)
        self.take()
        for queue in self.schedule.queues.values():
            for job in list(queue.in_flight):
                self.settle(job, "o")

    def teardown(self) -> None:
        """Once every order is taken back, everything ends, each prompt exactly once."""
        if not hasattr(self, "schedule"):
            return
        self.schedule.paused = False
        for name, queue in self.schedule.queues.items():
            queue.paused = queue.skipped = False
            self.room[name] = 99
        for _ in range(200):
            if not self.schedule.complete:
                self.go_on()
        assert self.schedule.complete
        for name, queue in self.schedule.queues.items():
            assert (queue.left, queue.state) == (0, "done")
            assert queue.invalid == self.sources[name].count(0)
            assert queue.ok + queue.failed == len(self.sources[name]) - queue.invalid
        assert all(count == 1 for count in (self.saved + self.ended).values())


TestScheduleMachine = ScheduleMachine.TestCase
TestScheduleMachine.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


def test_a_turn_that_has_its_row_is_not_asked_again_after_a_lost_one() -> None:
    prompt = make_prompt(
        {"turns": ["a", "b", "c"]}, dataset="D", index=0, turns="all", occurrences={}
    )
    schedule = Schedule([Queue("D", 1)])
    job = Job(prompt, 0, done=frozenset({1, 2}))
    schedule.offer("D", [job], exhausted=True)
    assert schedule.take(8, 0.0) == [job]
    assert schedule.saved(job, last=False, answer="x")
    assert schedule.complete
    assert schedule.queues["D"].ok == 1
