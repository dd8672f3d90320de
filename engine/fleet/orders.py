"""Orders to a crew of workers: each one's share of them, and what all of them answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from engine.commands import (
    Command,
    Drain,
    ExcludeProvider,
    IncludeProvider,
    Pause,
    Resume,
    Stop,
    Throttle,
    to_wire,
)
from engine.errors import UsageError
from engine.fleet.shares import deal

Answer = tuple[bool, str]
"""Whether an order was carried out, and what was done in words."""


@dataclass(frozen=True, slots=True)
class Order:
    """A command on its way to the crew."""

    command: Command
    origin: str
    answer: Future[str]


@dataclass(slots=True)
class Standing:
    """What a worker that is made anew has to be told; skips it finds in its own journal."""

    _orders: dict[tuple[str, str | None], Command] = field(default_factory=dict)

    def note(self, command: Command) -> None:
        """The newest order of its kind holds; a pause and its end cancel out."""
        match command:
            case Pause(dataset):
                self._orders["pause", dataset] = command
            case Resume(dataset):
                self._orders.pop(("pause", dataset), None)
            case Throttle():
                self._orders["throttle", None] = command
            case ExcludeProvider(provider) | IncludeProvider(provider):
                self._orders["provider", provider] = command
            case Drain() | Stop():
                self._orders["end", None] = command
            case _:
                pass

    def __iter__(self) -> Iterator[Command]:
        return iter(list(self._orders.values()))


@dataclass(frozen=True, slots=True)
class Asked:
    """An order that workers were given."""

    answer: Future[str]
    answers: Mapping[str, Future[Answer]]
    due: float
    """Monotonic seconds at which nobody waits any longer."""

    def settled(self, now: float) -> bool:
        """Resolve the answer once all have answered, or time is up."""
        if now < self.due and not all(each.done() for each in self.answers.values()):
            return False
        resolve(self.answer, {label: _answer(each) for label, each in self.answers.items()})
        return True


def share(command: Command, index: int, count: int) -> dict[str, Any]:
    """What worker `index` of `count` is sent, from 1; a throttle is shared out."""
    if isinstance(command, Throttle):
        if command.limit < count:
            raise UsageError(f"throttle {command.limit} cannot be shared by {count} workers")
        command = Throttle(deal(command.limit, index, count))
    return to_wire(command)


def resolve(answer: Future[str], told: Mapping[str, Answer]) -> None:
    """One answer for all: what each did, said once where all did the same."""
    words = together(told)
    if any(done for done, _ in told.values()):
        answer.set_result(words)
    else:
        answer.set_exception(UsageError(words or "no worker is there"))


def together(told: Mapping[str, Answer]) -> str:
    """The answers in words."""
    said = dict.fromkeys(words for _, words in told.values())
    if len(said) == 1 and len(told) > 1:
        return f"{next(iter(said))} (each of {len(told)})"
    return "; ".join(f"{label}: {words}" for label, (_, words) in told.items())


def _answer(future: Future[Answer]) -> Answer:
    if not future.done():
        return False, "has not answered yet"
    if future.exception() is not None:
        return False, "died before it answered; the next one is told"
    return future.result()
