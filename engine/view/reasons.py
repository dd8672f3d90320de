"""Why a dataset, or the run, is in the state it is in, in words for the screens."""

from __future__ import annotations

from itertools import chain

from engine.clock import local_hm
from engine.format import duration, plural
from engine.plan import DatasetPlan
from engine.schedule import Job, Queue, Schedule
from engine.session import Session
from engine.view.outlook import lasts, lasts_words

_OPEN = frozenset({"queued", "running"})
LONG_S = 30.0
"""A shorter wait of all that is left is no state of its own."""


def dataset_reason(schedule: Schedule, queue: Queue, plan: DatasetPlan, now: float) -> str:
    """What a dataset waits for, or how it shares the slots; `now` is monotonic seconds."""
    if queue.state == "running":
        return _at_work(schedule, queue, now)
    if queue.state == "done" and plan.pilot is not None:
        return f"pilot of {plan.pilot} done"
    return "waits for the datasets before it" if queue.state == "queued" else ""


def in_leftover_slots(schedule: Schedule, name: str) -> bool:
    """Whether an earlier dataset still takes what it can use before this one."""
    for earlier, queue in schedule.queues.items():
        if earlier == name:
            return False
        if queue.state == "running":
            return True
    return False


def waiting_reason(session: Session, held: float | None, now: float) -> str:
    """Why the engine itself waits; empty where it does not."""
    if session.sink.trouble:
        return f"disk: {session.sink.trouble}; what is paid is kept in memory"
    if session.gate.short_of_funds() and not session.schedule.in_flight:
        return f"credits: {session.gate.funds_words()}"
    if held is not None:
        return f"{session.limiter.hold_reason}; goes on in {held - now:.0f} s"
    if session.schedule.in_flight:
        return ""
    return session.breakers.waiting_words(now) or _all_wait(session, now)


def _all_wait(session: Session, now: float) -> str:
    """Why nothing is in flight though there are prompts left: all of them wait, for long."""
    queues = [q for q in session.schedule.queues.values() if q.state in _OPEN]
    waiting = [item for queue in queues for item in queue.waiting]
    startable = any(queue.ready or not queue.exhausted for queue in queues)
    first = min((due for due, _, _ in waiting), default=now) - now
    if session.schedule.paused or startable or first < LONG_S:
        return ""
    at = f"asked again at {local_hm(session.clock.wall() + first)} (in {duration(first)})"
    if all(session.traces.repeats(job.id) for _, _, job in waiting):
        lost = f"{plural(len(waiting), 'reply', 'replies')} never seen"
        free = "it" if len(waiting) == 1 else "them"
        return f"{lost}; {at}, when the response cache has {free} for free"
    left = (
        "the last prompt waits" if len(waiting) == 1 else f"the last {len(waiting):,} prompts wait"
    )
    return f"{left} for a retry; {at}"


def run_reason(session: Session, state: str, waiting: str, now: float) -> str:
    """The run's reason, beside its state."""
    if state == "waiting":
        return waiting
    if state == "paused":
        by_order = session.schedule.paused
        return "paused by order" if by_order else "every dataset with prompts left is paused"
    if state == "running":
        return _last_of_run(list(session.schedule.queues.values()), now)
    return session.course.reason


def _at_work(schedule: Schedule, queue: Queue, now: float) -> str:
    if lasts(queue):
        return lasts_words(list(queue.in_flight), now)
    if in_leftover_slots(schedule, queue.name):
        return "runs in the slots that the dataset before leaves free"
    if not queue.exhausted or queue.ready:
        return ""
    if queue.in_flight:
        next_ = "; the next dataset takes the free slots" if _goes_on(schedule, queue.name) else ""
        return f"its last prompts are in flight{next_}"
    return _asked_again(queue, now)


def _asked_again(queue: Queue, now: float) -> str:
    if not queue.waiting:
        return ""
    after = duration(max(0.0, queue.waiting[0][0] - now))
    return f"its last {plural(len(queue.waiting), 'prompt')} wait: asked again in {after}"


def _goes_on(schedule: Schedule, name: str) -> bool:
    queues = list(schedule.queues.values())
    place = [queue.name for queue in queues].index(name)
    return any(queue.state in _OPEN for queue in queues[place + 1 :])


def _last_of_run(queues: list[Queue], now: float) -> str:
    """The stragglers of the whole run, once nothing else of it is open."""
    working = [queue for queue in queues if not queue.complete]
    if not working or not all(map(lasts, working)):
        return ""
    flying: list[Job] = list(chain.from_iterable(queue.in_flight for queue in working))
    return lasts_words(flying, now)
