"""Makes the heartbeat: the snapshot in memory, status.json each second, history.jsonl each ten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.disk.jsonlines import dump
from engine.disk.rundir import HISTORY, STATUS, read_json, write_atomically
from engine.past.history import Historian
from engine.session import Session
from engine.view.frame import Framer, status
from engine.view.outlook import lasts
from engine.view.snapshot import Snapshot

STATUS_S = 1.0
HISTORY_S = 10.0
STRAGGLING_S = 30.0
"""Age of the oldest of a dataset's last requests from which the journal speaks of them."""
_OF_THE_WORK = ("cost_usd", "cost_unknown_attempts")


class Publisher:
    """Publishes one session's snapshots."""

    def __init__(self, session: Session, framer: Framer, lag_s: Callable[[], float]) -> None:
        self._session = session
        self._framer = framer
        self._lag_s = lag_s
        self._status_due = 0.0
        self._history_due = 0.0
        self._historian = Historian()
        self._seen: dict[str, str] = {}
        self._straggling: dict[str, float] = {}
        self._writing: asyncio.Task[None] | None = None

    def look(self) -> Snapshot:
        """The run as it is now, without a file: the answer to an order shows what it did."""
        snapshot = self._framer.snapshot(lag_s=self._lag_s())
        self._note_changes(snapshot)
        return snapshot

    async def next(self) -> Snapshot:
        """The newest snapshot; files are written when they are due."""
        snapshot = self.look()
        now = self._session.clock.monotonic()
        if now >= self._status_due:
            self._status_due = now + STATUS_S
            await self._write(snapshot)
        if now >= self._history_due:
            self._history_due = now + HISTORY_S
            self._session.sink.put(HISTORY, self._historian.line(snapshot))
        return snapshot

    def tell_end(self) -> None:
        """Journal how the session ended, while the sink still writes."""
        snapshot = self._framer.snapshot(lag_s=self._lag_s())
        self._note_changes(snapshot)
        self._session.sink.put(HISTORY, self._historian.line(snapshot, whole=True))

    async def last(self) -> Snapshot:
        """The final snapshot, with the exit code, on disk."""
        snapshot = self._framer.snapshot(lag_s=self._lag_s())
        await self._write(snapshot)
        return snapshot

    async def _write(self, snapshot: Snapshot) -> None:
        """Replace status.json; a `next` that is cancelled leaves its write to end first."""
        if self._writing is not None:
            await asyncio.wait({self._writing})
        self._writing = asyncio.create_task(self._replace(dump(status(snapshot))))
        await asyncio.shield(self._writing)

    async def _replace(self, data: bytes) -> None:
        if not self._session.sink.owned:
            return
        # a heartbeat that stays old says so itself; the sink reports the disk
        with suppress(OSError):
            await asyncio.to_thread(write_atomically, self._session.plan.folder / STATUS, data)

    def _note_changes(self, snapshot: Snapshot) -> None:
        """Journal every change of state, of the run and of each dataset."""
        states = {**{view.name: view.state for view in snapshot.datasets}, "": snapshot.state}
        now, stats = self._session.clock.monotonic(), self._session.stats
        stats.happenings.entered(now, snapshot.state)
        for view in snapshot.datasets:
            stats.datasets[view.name].happenings.entered(now, view.state)
        for name, state in states.items():
            before = self._seen.get(name)
            if before is not None and before != state:
                what = name or "run"
                why = f": {snapshot.reason}" if not name and snapshot.reason else ""
                text = f"{what} {before} → {state}{why}"
                self._session.journal.note("state", text, dataset=name or None, state=state)
        self._seen = dict(states)
        self._note_stragglers(snapshot)
        for plan in self._session.plan.datasets:
            for sentence in self._session.stats.datasets[plan.name].verdicts.changes():
                self._session.journal.note("verdict", str(sentence), dataset=plan.name)

    def _note_stragglers(self, snapshot: Snapshot) -> None:
        """Say when a dataset's last prompts take their time; again each time that doubles."""
        queues = self._session.schedule.queues
        for view in snapshot.datasets:
            due = self._straggling.get(view.name, STRAGGLING_S)
            age = view.slowest[0].age_s if view.slowest else 0.0
            if age >= due and lasts(queues[view.name]):
                self._straggling[view.name] = 2 * age
                text = f"{view.name}: {view.reason}"
                self._session.journal.note("note", text, dataset=view.name)


def write_early_end(folder: Path, snapshot: Snapshot, *, begun: bool) -> None:
    """The last heartbeat of a session that a refusal or a fault of ours ended.

    Where it had not begun to work, what an earlier session counted still holds.
    """
    record = status(snapshot)
    with suppress(OSError, KeyError, TypeError):  # an old or missing heartbeat says so itself
        earlier = None if begun else read_json(folder / STATUS)
        if earlier is not None:
            record |= {name: earlier[name] for name in _OF_THE_WORK}
            record["datasets"] = [_at_rest(view) for view in earlier["datasets"]]
        write_atomically(folder / STATUS, dump(record))


def _at_rest(view: dict[str, Any]) -> dict[str, Any]:
    """A dataset of an earlier session that was killed in the middle: nothing of it moves now."""
    left = view["left"] + view["in_flight"]
    return view | {"in_flight": 0, "left": left, "rows_per_s": 0.0, "eta_s": None}
