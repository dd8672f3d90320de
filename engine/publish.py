"""Makes the heartbeat: the snapshot in memory, status.json each second, history.jsonl each ten."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.clock import iso
from engine.frame import Framer, status
from engine.jsonlines import dump
from engine.rundir import HISTORY, STATUS, read_json, write_atomically
from engine.session import Session
from engine.snapshot import Snapshot

STATUS_S = 1.0
HISTORY_S = 10.0
_OF_THE_WORK = ("cost_usd", "cost_unknown_attempts")


class Publisher:
    """Publishes one session's snapshots."""

    def __init__(self, session: Session, framer: Framer, lag_s: Callable[[], float]) -> None:
        self._session = session
        self._framer = framer
        self._lag_s = lag_s
        self._status_due = 0.0
        self._history_due = 0.0
        self._seen: dict[str, str] = {}
        self._writing: asyncio.Task[None] | None = None

    async def next(self) -> Snapshot:
        """The newest snapshot; files are written when they are due."""
        snapshot = self._framer.snapshot(lag_s=self._lag_s())
        now = self._session.clock.monotonic()
        self._note_changes(snapshot)
        if now >= self._status_due:
            self._status_due = now + STATUS_S
            await self._write(snapshot)
        if now >= self._history_due:
            self._history_due = now + HISTORY_S
            self._session.sink.put(HISTORY, _history(snapshot))
        return snapshot

    def tell_end(self) -> None:
        """Journal how the session ended, while the sink still writes."""
        snapshot = self._framer.snapshot(lag_s=self._lag_s())
        self._note_changes(snapshot)
        self._session.sink.put(HISTORY, _history(snapshot))

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
        # a heartbeat that stays old says so itself; the sink reports the disk
        with suppress(OSError):
            await asyncio.to_thread(write_atomically, self._session.plan.folder / STATUS, data)

    def _note_changes(self, snapshot: Snapshot) -> None:
        """Journal every change of state, of the run and of each dataset."""
        states = {**{view.name: view.state for view in snapshot.datasets}, "": snapshot.state}
        for name, state in states.items():
            before = self._seen.get(name)
            if before is not None and before != state:
                what = name or "run"
                why = f": {snapshot.reason}" if not name and snapshot.reason else ""
                text = f"{what} {before} → {state}{why}"
                self._session.journal.note("state", text, dataset=name or None, state=state)
        self._seen = dict(states)
        for plan in self._session.plan.datasets:
            for sentence in self._session.stats.datasets[plan.name].verdicts.changes():
                self._session.journal.note("verdict", str(sentence), dataset=plan.name)


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


def _history(snapshot: Snapshot) -> dict[str, Any]:
    record = status(snapshot)
    record["at"] = iso(snapshot.heartbeat_at)
    return record
