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
from engine.view.snapshot import Snapshot
from tui import steering
from tui.draw.paint import Line, Span
from tui.overheard import Overheard

FRESH_S = 6.0
"""Seconds for which a message is new."""
_SLOW_S = 1.0
_KEPT = 100
"""Orders that can be taken back, one after the other."""


@dataclass(frozen=True, slots=True)
class _Message:
    text: str
    role: str
    since: float
    time_of_day: str
    waiting: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """An order of this screen, and what takes it back: None where nothing does."""

    command: Command
    back: Command | None


class Helm:
    """One viewer's way to the engine; needs a running event loop for its answers."""

    def __init__(
        self, handle: RunHandle, clock: Clock, answered: Callable[[], None], own: str = "screen"
    ) -> None:
        """`answered` is called when an answer has become the message.

        `own` is the origin that only this viewer's orders have; empty where others share it.
        """
        self.handle = handle
        self.clock = clock
        self.wishes = steering.Wishes()
        self._answered = answered
        self._message: _Message | None = None
        self._given: list[_Given] = []
        self._overheard = Overheard(own)
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
        given = _Given(command, steering.inverse(command, self.ceiling()))
        self._given = [*self._given[1 - _KEPT :], given]
        self._send(command, steering.asked(command), given)

    def _send(self, command: Command, said: str, given: _Given | None) -> None:
        self.wishes.note(command, self.clock.monotonic())
        self.say(said, "dim", waiting=True)
        task = asyncio.ensure_future(self._hear(command, given))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def obey(self, decision: Command | str) -> None:
        """Send a command, or say why there is none."""
        if isinstance(decision, str):
            self.say(decision, "warn")
        else:
            self.order(decision)

    def undo(self) -> None:
        """Take the last order back, where that can be done; again: the one before it."""
        if not self._given:
            self.say("nothing to undo: no order of this screen is left to take back", "warn")
            return
        last = self._given.pop()
        if last.back is None:
            before = "; again: the order before it" if self._given else ""
            self.say(f"cannot be undone: {steering.asked(last.command)}{before}", "warn")
            return
        self._send(last.back, f"undo: {steering.asked(last.back)}", None)

    def overhear(self, snapshot: Snapshot) -> None:
        """Say what others ordered, unless an answer to an order of our own is still to come."""
        if self._tasks:
            return
        news = self._overheard.news(snapshot)
        if news:
            self.say(news, "accent")

    async def _hear(self, command: Command, given: _Given | None) -> None:
        try:
            answer = await asyncio.wrap_future(self.handle.send(command))
        except EaglegenError as error:
            self._refused(command, error, given)
        except Exception as error:  # noqa: BLE001 - the engine's fault is a sentence here, not the screen's end
            self._refused(command, error, given)
        else:
            self._overheard.answered(answer)
            self.say(fmt.safe_text(answer))
        self._answered()

    def _refused(self, command: Command, error: Exception, given: _Given | None) -> None:
        self.wishes.refused(command)
        if given in self._given:
            self._given.remove(given)
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
