"""Several runs of other processes watched as one: a RunHandle for `attach --read-only`.

A live run of this host is followed through its control socket; one elsewhere, or without a process,
is shown as its files have it.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import replace
from typing import Final

from engine.clock import Clock, SystemClock
from engine.commands import Command
from engine.disk.rundir import is_held
from engine.errors import RunUnreachableError, UsageError
from engine.fleet.files import fleet_of, missing, part_of
from engine.fleet.journal import FleetJournal
from engine.fleet.merge import Part, merge
from engine.fleet.runs import OpenRun, RunSet
from engine.link.remote import RemoteRun
from engine.view.snapshot import Snapshot

_AGAIN_S: Final = 3.0
"""Seconds between two tries to reach a process that does not answer."""
_LEAVE_S: Final = 6.0


class _Post:
    """One run, followed in a thread of its own: one that hangs does not hide the others."""

    def __init__(self, run: OpenRun, hz: float, clock: Clock, closing: threading.Event) -> None:
        self._run, self._hz, self._clock, self._closing = run, hz, clock, closing
        self._remote: RemoteRun | None = None
        self._due = 0.0
        self.part = part_of(run, clock.wall())
        self.thread = threading.Thread(target=self._follow, name=run.label, daemon=True)

    def _follow(self) -> None:
        while not self._closing.wait(1 / self._hz):
            self.part = self._look()
        if self._remote is not None:
            self._remote.close()

    def _look(self) -> Part:
        remote = self._remote
        if remote is not None and not remote.ended:
            return Part(self._run.label, remote.snapshot(), live=True)
        now = self._clock.monotonic()
        if now >= self._due and is_held(self._run.folder):
            self._due = now + _AGAIN_S
            if self._reach():
                return self._look()
        part = part_of(self._run, self._clock.wall())
        if part.live:
            return replace(part, note="its process does not answer here: as its files have it")
        if remote is None or part.snapshot is None:
            return part
        last = remote.snapshot()  # what was on screen, and how it ended
        return replace(part, snapshot=last if last.exit_code is not None else part.snapshot)

    def _reach(self) -> bool:
        try:
            fresh = RemoteRun(self._run.folder, hz=self._hz, read_only=True)
        except (RunUnreachableError, OSError):
            return False
        if self._remote is not None:
            self._remote.close()
        self._remote = fresh
        return True


class FleetWatch:
    """Looks at all runs of a set; raises RunUnreachableError where no process does any of them."""

    def __init__(self, runs: RunSet, *, hz: float = 2.0, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._fleet, self._missing = fleet_of(runs), missing(runs)
        self._closing = threading.Event()
        self._posts = [_Post(run, hz, self._clock, self._closing) for run in runs.runs]
        if not any(post.part.live for post in self._posts):
            raise RunUnreachableError(
                f"no process does any of these {len(self._posts)} runs",
                hint="`status` tells how they ended; `run` with their manifest goes on.",
            )
        self._journal = FleetJournal()
        self._pause_s = 1 / hz
        self._snapshot = self._merged()
        self._thread = threading.Thread(target=self._watch, name="fleet", daemon=True)
        for post in self._posts:
            post.thread.start()
        self._thread.start()

    def snapshot(self) -> Snapshot:
        """The newest sum; never blocks."""
        return self._snapshot

    @property
    def ended(self) -> bool:
        """True while no process does any of them; one that comes back is followed again."""
        return not any(post.part.live for post in self._posts)

    def send(self, command: Command) -> Future[str]:
        """Nothing is sent."""
        del command
        future: Future[str] = Future()
        future.set_exception(UsageError("attached read-only: no command is sent"))
        return future

    def close(self) -> None:
        """Leave; the runs go on."""
        self._closing.set()
        for thread in (self._thread, *(post.thread for post in self._posts)):
            thread.join(_LEAVE_S)

    def _watch(self) -> None:
        while not self._closing.wait(self._pause_s):
            self._snapshot = self._merged()

    def _merged(self) -> Snapshot:
        parts = [post.part for post in self._posts]
        for part in parts:
            if part.snapshot is not None:
                self._journal.hear(part.label, part.snapshot)
        whole = merge(self._fleet, [*parts, *self._missing], self._clock.wall())
        return self._journal.onto(whole)
