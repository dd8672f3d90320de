"""A run that a crew of workers does, each its shard: an OwnRun for the front ends.

The shares are static. Whoever places the workers restarts them; here they are watched, summed and
given orders. A worker that was made anew is told again what was ordered before.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, Protocol

from engine.clock import Clock, SystemClock, iso
from engine.commands import Command
from engine.disk.rundir import hold
from engine.errors import ExitCode, RunUnreachableError, UsageError
from engine.fleet.journal import FleetJournal
from engine.fleet.merge import Fleet, FleetSnapshot, Part, gravest, merge
from engine.fleet.orders import Asked, Order, Standing, share
from engine.fleet.shares import shard_label
from engine.fleet.worker import Report
from engine.plan import Options
from engine.view.snapshot import Snapshot

TICK_S: Final = 0.25
SILENT_S: Final = 5.0
"""Seconds without an answer that are worth a word."""
ANSWER_S: Final = 15.0
"""How long an order waits for the slowest worker's answer."""


class Absence(NamedTuple):
    """Why a worker does not report."""

    words: str
    final: bool
    """It is not made anew."""


class Crew(Protocol):
    """Whoever places workers; all but `start` is called from one thread."""

    def start(self, manifest: Path, options: Sequence[Options], folder: Path) -> None:
        """Place one worker for each of `options`; raises EaglegenError."""
        ...

    def look(self, number: int) -> Report | Absence | None:
        """A worker's report, or why it has none; None until it has answered. Never blocks."""
        ...

    def order(self, number: int, wire: Mapping[str, Any], origin: str) -> Future[tuple[bool, str]]:
        """Pass an order on."""
        ...

    def dismiss(self, number: int) -> None:
        """End a worker whose engine has ended."""
        ...

    def close(self) -> None:
        """Leave."""
        ...


@dataclass(slots=True)
class _Post:
    """One shard's place in the crew, whoever fills it now."""

    label: str
    heard_at: float
    report: Report | None = None
    snapshot: Snapshot | None = None
    words: str = "waits for a place"
    away: bool = False
    """Its process has died, and no other has reported yet."""
    code: int | None = None

    def part(self, now: float) -> Part:
        silent = now - self.heard_at
        words = self.words
        if not words and self.code is None and silent >= SILENT_S:
            words = f"has not answered for {silent:.0f} s"
        return Part(self.label, self.snapshot, self.code is None and not self.away, words)


class FleetRun:
    """Watches a crew until every shard has ended."""

    def __init__(
        self,
        crew: Crew,
        fleet: Fleet,
        manifest: Path,
        options: Sequence[Options],
        folder: Path,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._crew, self._fleet, self._folder = crew, fleet, folder
        self._manifest, self._options = manifest, options
        self._clock = clock or SystemClock()
        now = self._clock.monotonic()
        count = len(options)
        self._posts = [_Post(shard_label(number, count), now) for number in range(1, count + 1)]
        self._journal = FleetJournal()
        self._inbox: SimpleQueue[Order | str] = SimpleQueue()
        self._standing = Standing()
        self._asked: list[Asked] = []
        self._wake, self._done = threading.Event(), threading.Event()
        self._held = ExitStack()
        self._snapshot: Snapshot = self._merged()
        self._thread = threading.Thread(target=self._main, name="fleet", daemon=True)
        self.error: BaseException | None = None
        """What ended the watch early."""

    def start(self) -> None:
        """Take the output folder and place the workers; raises EaglegenError."""
        self._held.enter_context(hold(self._folder, iso(self._clock.wall())))
        try:
            self._crew.start(self._manifest, self._options, self._folder)
        except BaseException:
            self._held.close()
            raise
        self._thread.start()

    def snapshot(self) -> Snapshot:
        """The newest sum; never blocks."""
        return self._snapshot

    @property
    def ended(self) -> bool:
        """True once every shard has ended."""
        return self._done.is_set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False where the time ran out first."""
        return self._done.wait(timeout)

    @property
    def exit_code(self) -> int:
        """The gravest of the shards' codes (DESIGN §5); valid once ended."""
        code = self._snapshot.exit_code
        return int(ExitCode.INTERNAL) if self.error is not None or code is None else code

    def send(self, command: Command, *, origin: str = "screen") -> Future[str]:
        """Hand a command to every worker; a throttle is shared out."""
        future: Future[str] = Future()
        if self.ended:
            future.set_exception(RunUnreachableError("the run has ended"))
            return future
        try:
            self._wire(command, 0)
        except UsageError as error:
            future.set_exception(error)
            return future
        self._inbox.put(Order(command, origin, future))
        self._wake.set()
        return future

    def note(self, text: str) -> None:
        """Journal what happened to the front end."""
        self._inbox.put(text)

    def abandon(self) -> None:
        """End at once; what the workers have not finished is done by the next run."""
        if not self.ended:
            reason = "left at once: the workers end with their driver"
            code = int(ExitCode.INTERRUPTED)
            self._snapshot = replace(self._snapshot, state="stopped", reason=reason, exit_code=code)
            self._done.set()

    # the thread

    def _main(self) -> None:
        try:
            while not self.ended and any(post.code is None for post in self._posts):
                self._wake.wait(TICK_S)
                self._wake.clear()
                self._tick()
        except BaseException as error:  # noqa: BLE001 - handed to the main thread, never lost
            self.error = error
        finally:
            if not self.ended:
                self._end()
            self._crew.close()
            self._held.close()
            self._done.set()
            self._refuse()

    def _tick(self) -> None:
        for number, post in enumerate(self._posts):
            if post.code is None:
                self._look(number, post)
        self._take_orders()
        self._collect()
        self._snapshot = self._merged()

    def _look(self, number: int, post: _Post) -> None:
        found = self._crew.look(number)
        if found is None:
            return
        post.heard_at = self._clock.monotonic()
        if isinstance(found, Absence):
            self._miss(post, found)
            return
        self._meet(number, post, found)
        post.report, post.away, post.words = found, False, found.words
        if found.snapshot is not None:
            post.snapshot = found.snapshot
            self._journal.hear(post.label, found.snapshot)
        if found.ended:
            post.code = int(ExitCode.INTERNAL) if found.exit_code is None else found.exit_code
            self._crew.dismiss(number)

    def _miss(self, post: _Post, absence: Absence) -> None:
        post.words = absence.words
        if absence.final:
            post.code = int(ExitCode.INTERNAL)
            self._say(f"{post.label} is given up: {absence.words}; `run` goes on with its files")
        post.away = True

    def _meet(self, number: int, post: _Post, found: Report) -> None:
        """A worker that was not there before: tell, and repeat what was ordered meanwhile."""
        before = post.report
        who = f"process {found.pid} on {found.host}"
        if before is None:
            self._say(f"{post.label} is {who}")
        elif before.life != found.life:
            self._say(
                f"{post.label}: process {before.pid} on {before.host} died; {who} goes on from "
                "its files"
            )
            for command in self._standing:
                self._crew.order(number, self._wire(command, number), "fleet")

    def _take_orders(self) -> None:
        while True:
            try:
                item = self._inbox.get_nowait()
            except Empty:
                return
            if isinstance(item, str):
                self._say(item)
                continue
            self._standing.note(item.command)
            answers = {
                post.label: self._crew.order(number, self._wire(item.command, number), item.origin)
                for number, post in enumerate(self._posts)
                if post.code is None
            }
            due = self._clock.monotonic() + ANSWER_S
            self._asked.append(Asked(item.answer, answers, due))

    def _wire(self, command: Command, number: int) -> dict[str, Any]:
        return share(command, number + 1, len(self._posts))

    def _collect(self) -> None:
        now = self._clock.monotonic()
        self._asked = [asked for asked in self._asked if not asked.settled(now)]

    def _merged(self) -> Snapshot:
        now, wall = self._clock.monotonic(), self._clock.wall()
        whole = merge(self._fleet, [post.part(now) for post in self._posts], wall)
        mine: FleetSnapshot = replace(whole, pid=os.getpid(), host=socket.gethostname())
        return self._journal.onto(mine)

    def _end(self) -> None:
        codes = [int(ExitCode.INTERNAL) if p.code is None else p.code for p in self._posts]
        merged = self._merged()
        if self.error is not None:
            codes.append(int(ExitCode.INTERNAL))
            merged = replace(merged, state="stopped", reason=f"a fault of ours: {self.error}")
        self._snapshot = replace(merged, exit_code=gravest(codes))

    def _say(self, text: str) -> None:
        self._journal.note(self._clock.wall(), "note", text)

    def _refuse(self) -> None:
        for asked in self._asked:
            asked.settled(asked.due)
        while not self._inbox.empty():
            item = self._inbox.get_nowait()
            if isinstance(item, Order):
                item.answer.set_exception(RunUnreachableError("the run has ended"))
