"""Applies an operator's commands to a session; each is journalled and answered in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from engine import commands
from engine.commands import Command
from engine.errors import UsageError
from engine.schedule import Queue
from engine.session import Session
from engine.wire.client import ensure_descriptors

_UNNAMED = "unnamed"
"""Under this name the statistics count replies that name no provider."""


def apply(session: Session, command: Command, *, origin: str) -> str:
    """Carry out one command; returns what was done, or raises UsageError."""
    handler: Callable[[Session, Any], str] = _HANDLERS[type(command)]
    said = handler(session, command)
    wire = commands.to_wire(command)
    dataset = wire.get("dataset")
    session.journal.note("command", said, **{**wire, "dataset": dataset, "origin": origin})
    now = session.clock.monotonic()
    session.stats.happenings.marked(now, wire["command"], _brief(wire), dataset)
    session.wake.set()
    return said


def _brief(wire: Mapping[str, Any]) -> str:
    """The command in two or three words, for the time axis: `pause B7`, `throttle 500`."""
    name = str(wire["command"])
    about = [value for key, value in wire.items() if key != "command" and value is not None]
    run = ["run"] if name in {"pause", "resume"} and not about else []
    return " ".join(map(str, [name.replace("_", " "), *about, *run]))


def _pause(session: Session, command: commands.Pause) -> str:
    if command.dataset is None:
        session.schedule.paused = True
        return f"paused the run: {session.schedule.in_flight} in flight will finish"
    queue = _queue(session, command.dataset)
    queue.paused = True
    return f"paused {queue.name}: {len(queue.in_flight)} in flight will finish"


def _resume(session: Session, command: commands.Resume) -> str:
    if command.dataset is None:
        session.schedule.paused = False
        still = [queue.name for queue in session.schedule.queues.values() if queue.paused]
        return "resumed the run" + (f"; still paused: {', '.join(still)}" if still else "")
    queue = _queue(session, command.dataset)
    queue.paused = False
    also = "; the run as a whole is still paused" if session.schedule.paused else ""
    return f"resumed {queue.name}{also}"


def _throttle(session: Session, command: commands.Throttle) -> str:
    ensure_descriptors(command.limit)
    session.limiter.set_ceiling(command.limit, session.clock.monotonic())
    return f"ceiling now {command.limit} in flight"


def _skip(session: Session, command: commands.Skip) -> str:
    queue = _queue(session, command.dataset)
    queue.skipped = True
    return f"skipped {queue.name}: {queue.left} prompts left out, {len(queue.in_flight)} finish"


def _unskip(session: Session, command: commands.Unskip) -> str:
    queue = _queue(session, command.dataset)
    queue.skipped = False
    return f"took the skip of {queue.name} back: {queue.left} prompts left to do"


def _exclude(session: Session, command: commands.ExcludeProvider) -> str:
    if session.asking.api != "openrouter":
        raise UsageError("only OpenRouter can be asked to leave a provider out")
    known = _providers(session)
    name = _as_known(command.provider, known)
    if name in session.excluded:
        return f"the router is asked to leave {name} out already"
    _refuse_the_last(session, name)
    session.excluded.add(name)
    said = f"the router is asked to leave {name} out"
    if name in known:
        return said
    listed = f"there are {', '.join(sorted(known))}" if known else "none is known yet"
    return f"{said}; no reply has come from a provider of that name ({listed})"


def _refuse_the_last(session: Session, name: str) -> None:
    """Without any host left every request would be refused, and prompts given up."""
    route = set(session.plan.facts.slugs)
    if name in route and not route - session.excluded - {name}:
        raise UsageError(
            f"{name} is the only host left: without it nobody could answer",
            hint="`pause` holds the run, `include-provider` lets another host in again.",
        )


def _include(session: Session, command: commands.IncludeProvider) -> str:
    name = _as_known(command.provider, {*session.excluded, *_providers(session)})
    if name not in session.excluded:
        out = ", ".join(sorted(session.excluded)) or "none is"
        raise UsageError(f"{name} is not left out by order", hint=f"Left out: {out}.")
    session.excluded.discard(name)
    return f"took the exclusion of {name} back: the router may choose it again"


def _providers(session: Session) -> set[str]:
    """Display names of the hosts that may answer, and of those that did."""
    answered = (name for name in session.stats.providers if name != _UNNAMED)
    return {*session.plan.facts.slugs, *answered}


def _as_known(named: str, known: set[str]) -> str:
    """The spelling under which replies come; case does not count."""
    return next((name for name in sorted(known) if name.lower() == named.lower()), named)


def _retry_failed(session: Session, command: commands.RetryFailed) -> str:
    names = list(session.feeders) if command.dataset is None else [command.dataset]
    count = 0
    for name in names:
        queue = _queue(session, name)
        feeder = session.feeders[name]
        if not queue.exhausted and feeder.failed:
            raise UsageError(f"{name}: failed prompts are retried once its source is read")
        count += _requeue(session, queue)
    return f"{count} failed prompts go back into the schedule"


def _requeue(session: Session, queue: Queue) -> int:
    feeder = session.feeders[queue.name]
    keys = set(feeder.failed)
    if keys:
        feeder.again(keys)
        queue.failed -= len(keys)
        queue.exhausted = False
    return len(keys)


def _drain(session: Session, command: commands.Drain) -> str:
    del command
    session.course.ordered = True
    session.course.drain("drained by order: in flight finish, nothing new starts")
    return f"draining: {session.schedule.in_flight} in flight will finish"


def _stop(session: Session, command: commands.Stop) -> str:
    del command
    session.course.ordered = True
    session.course.drain("stopped by order")
    session.course.stopping = True
    return f"stopping: {session.schedule.in_flight} requests are cancelled"


def _queue(session: Session, name: str) -> Queue:
    queue = session.schedule.queues.get(name)
    if queue is None:
        known = ", ".join(session.schedule.queues)
        raise UsageError(f"no dataset is called {name!r}", hint=f"There are {known}.")
    return queue


_HANDLERS: dict[type[Command], Callable[[Session, Any], str]] = {
    commands.Pause: _pause,
    commands.Resume: _resume,
    commands.Throttle: _throttle,
    commands.Skip: _skip,
    commands.Unskip: _unskip,
    commands.ExcludeProvider: _exclude,
    commands.IncludeProvider: _include,
    commands.RetryFailed: _retry_failed,
    commands.Drain: _drain,
    commands.Stop: _stop,
}
