"""Sends commands to the engine and says in words what became of them; never blocks the screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from engine import format as fmt
from engine.clock import Clock, local_hms
from engine.commands import Command
from engine.errors import EaglegenError
from engine.handle import RunHandle
from engine.snapshot import Snapshot
from tui import steering
from tui.draw.paint import Line, Span

FRESH_S = 6.0
"""Seconds for which a message is new."""
_SLOW_S = 1.0


@dataclass(frozen=True, slots=True)
class _Message:
    text: str
    role: str
    since: float
    time_of_day: str
    waiting: bool = False


class Helm:
    """One viewer's way to the engine; needs a running event loop for its answers."""

    def __init__(self, handle: RunHandle, clock: Clock, answered: Callable[[], None]) -> None:
        """`answered` is called when an answer has become the message."""
        self.handle = handle
        self.clock = clock
        self.wishes = steering.Wishes()
        self._answered = answered
        self._message: _Message | None = None
        self._back: Command | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def snapshot(self) -> Snapshot:
        """The newest snapshot, whatever the view shows."""
        return self.handle.snapshot()

    def ceiling(self) -> int:
        """The ceiling that the next step starts from."""
        return self.wishes.ceiling(self.snapshot(), self.clock.monotonic())

    def say(self, text: str, role: str = "text", *, waiting: bool = False) -> None:
        """Put a message on the message line."""
        now, wall = self.clock.monotonic(), self.clock.wall()
        self._message = _Message(text, role, now, local_hms(wall), waiting)

    def order(self, command: Command) -> None:
        """Send a command; its answer replaces the message that says it was sent."""
        self._back = steering.inverse(command, self.ceiling())
        self.wishes.note(command, self.clock.monotonic())
        self.say(steering.asked(command), "dim", waiting=True)
        task = asyncio.ensure_future(self._hear(command))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def obey(self, decision: Command | str) -> None:
        """Send a command, or say why there is none."""
        if isinstance(decision, str):
            self.say(decision, "warn")
        else:
            self.order(decision)

    def undo(self) -> None:
        """Take the last command back, where that can be done; a second time gives it again."""
        if self._back is None:
            self.say("nothing to undo", "warn")
        else:
            self.order(self._back)

    async def _hear(self, command: Command) -> None:
        try:
            answer = await asyncio.wrap_future(self.handle.send(command))
        except EaglegenError as error:
            self._refused(command, error)
        except Exception as error:  # noqa: BLE001 - the engine's fault is a sentence here, not the screen's end
            self._refused(command, error)
        else:
            self.say(fmt.safe_text(answer))
        self._answered()

    def _refused(self, command: Command, error: Exception) -> None:
        self.wishes.refused(command)
        # only our own errors are written for people; another one's text may hold anything
        known = isinstance(error, EaglegenError)
        reason = str(error) if known else f"a fault ({type(error).__name__})"
        self.say(f"not done: {steering.asked(command)}: {fmt.safe_text(reason)}", "bad")

    @property
    def fresh(self) -> bool:
        """Whether the last message is new."""
        message = self._message
        return message is not None and self.clock.monotonic() - message.since < FRESH_S

    def line(self, snapshot: Snapshot) -> Line:
        """The message line: the last message, or before there is one the journal's newest entry."""
        message = self._message
        if message is None:
            return _journal(snapshot)
        waited = self.clock.monotonic() - message.since
        slow = message.waiting and waited >= _SLOW_S
        more = f": waiting for the engine, {fmt.duration(waited)}" if slow else ""
        role = "warn" if slow else message.role
        return (Span(f"{message.time_of_day} ", "dim"), Span(message.text + more, role))


def _journal(snapshot: Snapshot) -> Line:
    if not snapshot.journal:
        return ()
    newest = max(snapshot.journal, key=lambda entry: entry.at)
    about = ""
    if newest.dataset and newest.dataset not in newest.text:
        about = f"{fmt.safe_text(newest.dataset)}: "
    return (Span(f"{local_hms(newest.at)} {about}{fmt.safe_text(newest.text)}", "dim"),)
