"""Decides which generation starts next; sans-I/O: it is told what happened and awaits nothing.

Datasets run in order. What a dataset cannot use (its source is read to the end and nothing of it
can start now, or it is paused, skipped or at its budget) goes to the next one. A dataset whose
requests are all refused while others are served is only probed (engine.pace.rotation).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from engine.feed.prompts import Prompt
from engine.pace.rotation import Doubt, Rotation
from engine.view.snapshot import DatasetState

Allows = Callable[[str, int], bool]
WAITING_LEAST = 1024
"""So many may wait before reading stops, however low the limit: what follows may be served."""


@dataclass(slots=True, eq=False)
class Job:
    """One prompt on its way through its turns."""

    prompt: Prompt
    turn: int
    attempt: int = 0
    """Attempts sent so far for this turn, over all sessions: the number in sent.jsonl."""
    tries: int = 0
    """Attempts that failed for this turn in this session: what max_attempts bounds."""
    answers: list[str] = field(default_factory=list)
    avoid: tuple[str, ...] = ()
    """Providers that refused this prompt: the retry asks the router to ignore them."""
    max_tokens_factor: int = 1
    started_at: float = 0.0
    """Epoch seconds at which the last attempt was sent."""
    taken_at: float = 0.0
    """Monotonic seconds at which the schedule started it."""
    family_tries: dict[str, int] = field(default_factory=dict)
    doubt: Doubt = field(default_factory=Doubt)
    """How this turn has been refused so far."""
    done: frozenset[int] = frozenset()
    """Turns that have their row already: where an earlier row was lost, later ones may stand."""

    @property
    def id(self) -> str:
        """The generation's resume key."""
        return self.prompt.id(self.turn)


@dataclass(slots=True, eq=False)
class Queue:
    """One dataset's prompts by state. `prompts` is the total that the counts add up to."""

    name: str
    prompts: int
    ready: deque[Job] = field(default_factory=deque)
    waiting: list[tuple[float, int, Job]] = field(default_factory=list)
    in_flight: set[Job] = field(default_factory=set)
    ok: int = 0
    failed: int = 0
    invalid: int = 0
    exhausted: bool = False
    """The source has been read to its end."""
    paused: bool = False
    skipped: bool = False
    over_budget: bool = False
    opened: bool = False

    @property
    def answered(self) -> int:
        """`ok` as it is shown: what is on disk may outnumber a source that lost prompts."""
        rest = self.prompts - self.failed - self.invalid - len(self.in_flight)
        return max(0, min(self.ok, rest))

    @property
    def left(self) -> int:
        """Prompts that are neither finished nor in flight; those that wait for a retry count."""
        done = self.ok + self.failed + self.invalid + len(self.in_flight)
        return max(0, self.prompts - done)

    @property
    def complete(self) -> bool:
        """Nothing of it can ever start again by itself."""
        idle = not self.in_flight
        if self.skipped or self.over_budget:
            return idle
        return idle and self.exhausted and not self.ready and not self.waiting

    @property
    def state(self) -> DatasetState:
        """The state word of DESIGN §6."""
        if self.skipped:
            return "skipped"
        if self.over_budget:
            return "budget"
        if self.complete:
            return "done"
        if self.paused:
            return "paused"
        return "running" if self.opened else "queued"


class Schedule:
    """Owns every prompt between being read and being finished."""

    def __init__(
        self, queues: list[Queue], *, allows: Allows = lambda _name, _flying: True
    ) -> None:
        self.queues = {queue.name: queue for queue in queues}
        self._allows = allows
        self._sequence = 0
        self.rotation = Rotation()
        self.paused = False
        self.now = 0.0
        """Monotonic seconds of the last `take`: how long what is in flight has taken."""

    @property
    def in_flight(self) -> int:
        """Requests in flight over all datasets."""
        return sum(len(queue.in_flight) for queue in self.queues.values())

    @property
    def complete(self) -> bool:
        """Every dataset is complete."""
        return all(queue.complete for queue in self.queues.values())

    def wanted(self, slots: int) -> Iterator[str]:
        """Datasets whose source should be read on, so that `slots` free slots can be filled."""
        if self.paused:
            return
        for queue in self.queues.values():
            if queue.skipped or queue.over_budget or queue.paused:
                continue
            # prompts that wait for a retry bound the reading: memory stays bounded in an outage
            most = max(2 * slots, WAITING_LEAST)
            if not queue.exhausted and len(queue.ready) < slots and len(queue.waiting) <= most:
                yield queue.name
            if not self._spent(queue):
                return

    def offer(self, name: str, jobs: list[Job], *, invalid: int = 0, exhausted: bool) -> None:
        """Add what was read from a source."""
        queue = self.queues[name]
        queue.ready.extend(jobs)
        queue.invalid += invalid
        queue.exhausted = exhausted

    def take(self, slots: int, now: float) -> list[Job]:
        """At most `slots` generations to start now; they count as in flight from here on."""
        started: list[Job] = []
        self.now = now
        if self.paused:
            return started
        for queue in sorted(self.queues.values(), key=lambda q: self.rotation.turn(q.name)):
            self._take_from(queue, self._room(queue, slots - len(started), now), now, started)
            if len(started) >= slots or not self._spent(queue):
                break
        return started

    def saved(self, job: Job, *, last: bool, answer: str) -> bool:
        """The job's row is on disk; True when its prompt is finished."""
        queue = self.queues[job.prompt.dataset]
        queue.in_flight.discard(job)
        turns = job.prompt.turns
        if last or job.turn == turns[-1] or turns[turns.index(job.turn) + 1] in job.done:
            queue.ok += 1
            return True
        job.answers.append(answer)
        job.turn = turns[turns.index(job.turn) + 1]
        job.attempt = job.tries = 0
        job.doubt = Doubt()
        job.avoid = ()
        job.max_tokens_factor = 1
        job.family_tries.clear()
        queue.ready.appendleft(job)
        return False

    def retry(self, job: Job, due: float) -> None:
        """Ask again at `due` (monotonic seconds)."""
        queue = self.queues[job.prompt.dataset]
        queue.in_flight.discard(job)
        self.wait(job, due)

    def wait(self, job: Job, due: float) -> None:
        """Put a job that is not in flight among those that wait."""
        self._sequence += 1
        heapq.heappush(self.queues[job.prompt.dataset].waiting, (due, self._sequence, job))

    def refused(self, job: Job, now: float) -> bool:
        """The route had no room for the job; False where that says nothing of the route."""
        name = job.prompt.dataset
        stood_back = self._stands_back(self.queues[name])
        self.rotation.refused(name, job.doubt, now)
        return job.doubt.speaks_for_route and not stood_back

    def give_up(self, job: Job) -> None:
        """The prompt has failed; its earlier rows stay."""
        queue = self.queues[job.prompt.dataset]
        queue.in_flight.discard(job)
        queue.failed += 1

    def cancelled(self, job: Job) -> None:
        """The request was cancelled; its prompt is left for the next session."""
        queue = self.queues[job.prompt.dataset]
        queue.in_flight.discard(job)
        queue.ready.appendleft(job)

    def next_due(self) -> float | None:
        """When the next waiting retry may start."""
        dues = [queue.waiting[0][0] for queue in self.queues.values() if queue.waiting]
        return min(dues, default=None)

    def _take_from(self, queue: Queue, slots: int, now: float, started: list[Job]) -> None:
        if queue.skipped or queue.paused or queue.over_budget:
            return
        while queue.waiting and queue.waiting[0][0] <= now:
            job = heapq.heappop(queue.waiting)[2]
            if self.rotation.lets_others_go(job.doubt):
                queue.ready.append(job)
            else:
                queue.ready.appendleft(job)
        while queue.ready and slots > 0:
            if not self._allows(queue.name, len(queue.in_flight)):
                break
            job = queue.ready.popleft()
            job.taken_at = now
            queue.in_flight.add(job)
            queue.opened = True
            started.append(job)
            slots -= 1

    def _room(self, queue: Queue, slots: int, now: float) -> int:
        """How many of the free slots a dataset may have: one in a while where it stands back."""
        if not self._stands_back(queue):
            return slots
        if (
            not slots
            or not (queue.ready or queue.waiting)
            or not self.rotation.due(queue.name, now)
        ):
            return 0
        self.rotation.probed(queue.name, now)
        return 1

    def _stands_back(self, queue: Queue) -> bool:
        """Whether all of it is refused while there are others that may be served."""
        return self.rotation.rests(queue.name) and any(
            not self.rotation.rests(other.name) and _open(other) for other in self.queues.values()
        )

    def _spent(self, queue: Queue) -> bool:
        """Whether free slots may go to the next dataset."""
        if not _open(queue) or self.rotation.rests(queue.name):
            return True
        held = bool(queue.ready) and not self._allows(queue.name, len(queue.in_flight))
        return held or (queue.exhausted and not queue.ready)


def _open(queue: Queue) -> bool:
    """Whether anything of a dataset may still start."""
    held = queue.skipped or queue.paused or queue.over_budget
    return not held and not queue.complete
