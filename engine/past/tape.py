"""A run directory read back: its sessions' numbers, its journal, its failures.

Built from history.jsonl and events.jsonl (DESIGN §6), and read once: a live run's tape ends where
it was read. What no version of ours has written is left out and counted.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

from engine.disk.entries import moment
from engine.disk.jsonlines import load_line
from engine.disk.ledger import FAILURES
from engine.disk.rundir import EVENTS, HISTORY, RUN, STATUS, is_held, read_json
from engine.errors import UsageError
from engine.format import duration
from engine.past.history import SCREEN, carried, picture
from engine.past.tracks import Tracks
from engine.view.happenings import HELD
from engine.view.snapshot import FailureLine, JournalEntry, Mark, Snapshot, Spell

SESSION = "session"
"""The kind of the journal's entries that are not on disk: where another session begins."""
_NOT_OURS = (KeyError, TypeError, ValueError, AttributeError)


@dataclass(slots=True)
class Session:
    """One process's work on the run: a point about each ten seconds."""

    pid: int
    host: str
    tracks: Tracks
    _heads: list[bytes] = field(default_factory=list)
    _views: list[tuple[bytes, ...]] = field(default_factory=list)

    @property
    def start(self) -> float:
        """Epoch seconds of its first point."""
        return self.tracks.at[0]

    @property
    def end(self) -> float:
        """Epoch seconds of its last point."""
        return self.tracks.at[-1]

    def __len__(self) -> int:
        return len(self._heads)

    def add(self, head: dict[str, Any], views: tuple[bytes, ...], snapshot: Snapshot) -> None:
        """Take the next point in."""
        self._heads.append(_packed(head))
        self._views.append(views)
        self.tracks.add(snapshot)

    def index(self, at: float) -> int:
        """The place of the newest point at this time; 0 before the first one."""
        return max(0, bisect_right(self.tracks.at, at) - 1)

    def snapshot(self, place: int) -> Snapshot:
        """The run at a point, as it was written: without series, journal and failures."""
        views = [orjson.loads(view) for view in self._views[place]]
        return picture(orjson.loads(self._heads[place]), views)

    def record(self, place: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """A point's own record, and those of its datasets by name."""
        views = [orjson.loads(view) for view in self._views[place]]
        return orjson.loads(self._heads[place]), {view["name"]: view for view in views}


@dataclass(slots=True)
class Tape:
    """What a run directory tells of the past."""

    folder: Path
    live: bool
    """Whether a process on this host was doing the run when it was read."""
    run: dict[str, Any]
    """run.json; empty where there is none."""
    sessions: list[Session] = field(default_factory=list)
    journal: list[JournalEntry] = field(default_factory=list)
    """All of it, in the order of time."""
    marks: list[Mark] = field(default_factory=list)
    """Operators' commands, in the order of time."""
    states: dict[str | None, list[tuple[float, str]]] = field(default_factory=dict)
    """By dataset (None: the run): each state and since when, in the order of time."""
    failures: dict[str, list[FailureLine]] = field(default_factory=dict)
    """By dataset: the prompts given up, the newest line of each, in the order of time."""
    odd: dict[str, int] = field(default_factory=dict)
    """By file: lines that were left out."""

    @property
    def last(self) -> Snapshot:
        """The newest snapshot."""
        return self.sessions[-1].snapshot(len(self.sessions[-1]) - 1)


def read_tape(folder: Path) -> Tape:
    """Read a run directory; raises UsageError where there is nothing to read back."""
    run = read_json(folder / RUN)
    if not isinstance(run, dict) and not (folder / HISTORY).exists():
        raise UsageError(f"{folder} is no run directory (it has no {RUN})")
    tape = Tape(folder, is_held(folder), run if isinstance(run, dict) else {})
    try:
        _read_sessions(tape)
        _read_journal(tape)
        _read_failures(tape)
    except OSError as error:
        raise UsageError(f"{folder} cannot be read: {error}") from None
    if not tape.sessions:
        raise UsageError(_nothing(tape))
    return tape


def _nothing(tape: Tape) -> str:
    path, odd = tape.folder / HISTORY, tape.odd.get(HISTORY, 0)
    if odd:
        return f"{path} holds no line of a run's history: {odd} unreadable"
    missing = "is empty" if path.exists() else "does not exist"
    return f"{path} {missing}: nothing has been recorded of this run yet"


def _records(tape: Tape, name: str) -> Iterator[dict[str, Any]]:
    """Every record of a file; what is no JSON object is counted. A missing file holds none."""
    path = tape.folder / name
    if not path.is_file():
        return
    with path.open("rb") as file:
        for line in file:
            try:
                record = load_line(line)
            except ValueError:
                record = None
            if isinstance(record, dict):
                yield record
            elif line.strip():
                _count(tape, name)


def _count(tape: Tape, name: str) -> None:
    tape.odd[name] = tape.odd.get(name, 0) + 1


def _read_sessions(tape: Tape) -> None:
    folded: dict[str, bytes] = {}
    for record in _records(tape, HISTORY):
        try:
            folded = _take(tape, record, folded)
        except _NOT_OURS:
            _count(tape, HISTORY)
    status = read_json(tape.folder / STATUS)
    if tape.sessions and isinstance(status, dict):
        _take_heartbeat(tape, status, folded)


def _take(tape: Tape, record: dict[str, Any], folded: dict[str, bytes]) -> dict[str, bytes]:
    """One line: a point of the last session, or the first one of the next."""
    session = tape.sessions[-1] if tape.sessions else None
    same = session is not None and _key(record) == session.tracks.key
    before = folded if same else {}
    views = dict(before)
    for view in record["datasets"]:
        earlier = before.get(view["name"], b"{}")
        told = _packed(carried(view, orjson.loads(earlier)))
        views[view["name"]] = earlier if told == earlier else told  # kept once, not each time
    head = {name: value for name, value in record.items() if name != "datasets"}
    parts = tuple(views.values())
    snapshot = picture(orjson.loads(_packed(head)), [orjson.loads(part) for part in parts])
    if session is None or not same:
        session = Session(snapshot.pid, snapshot.host, Tracks(_key(record)))
        tape.sessions.append(session)
    elif snapshot.heartbeat_at < session.end:
        raise ValueError("a clock that was set back")
    session.add(head, parts, snapshot)
    return views


def _packed(record: dict[str, Any]) -> bytes:
    """As JSON; a lone surrogate in a server's words becomes a question mark."""
    try:
        return orjson.dumps(record)
    except TypeError:
        return json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")


def _take_heartbeat(tape: Tape, status: dict[str, Any], folded: dict[str, bytes]) -> None:
    """After a kill status.json is up to ten seconds newer than the last line."""
    session = tape.sessions[-1]
    try:
        if _key(status) != session.tracks.key or moment(status["heartbeat_at"]) <= session.end:
            return
        head, earlier = session.record(len(session) - 1)
        for view in status["datasets"]:
            view[SCREEN] = earlier.get(view["name"], {}).get(SCREEN, {})
        _take(tape, {**status, SCREEN: head.get(SCREEN, {})}, folded)
    except _NOT_OURS:
        _count(tape, STATUS)


def _key(record: dict[str, Any]) -> tuple[int, str]:
    return record["pid"], record["started_at"]


def _read_journal(tape: Tape) -> None:
    for record in _records(tape, EVENTS):
        try:
            at, kind, text = moment(record["at"]), record["kind"], record["text"]
        except _NOT_OURS:
            _count(tape, EVENTS)
            continue
        dataset = record.get("dataset")
        name = None if dataset is None else str(dataset)
        origin = str(record.get("origin") or "")
        entry = JournalEntry(at, str(kind), str(text), name, origin)
        tape.journal.append(entry)
        if kind == "command":
            mark = Mark(at, str(record.get("command", "")), entry.text, entry.dataset)
            tape.marks.append(mark)
        elif kind == "state" and "state" in record:  # others tell a reason only
            tape.states.setdefault(entry.dataset, []).append((at, str(record["state"])))
    for before, after in pairwise(tape.sessions):
        tape.journal.append(_resumed(before, after))
    tape.journal.sort(key=lambda entry: entry.at)
    tape.marks.sort(key=lambda mark: mark.at)
    for states in tape.states.values():
        states.sort()


def _resumed(before: Session, after: Session) -> JournalEntry:
    gap = duration(max(0.0, after.start - before.end))
    text = f"the next session, {gap} later: process {after.pid} on {after.host}"
    return JournalEntry(after.start, SESSION, text, None)


def _read_failures(tape: Tape) -> None:
    names = {name for session in tape.sessions for name in session.tracks.datasets}
    for name in sorted(names):
        found: dict[str, FailureLine] = {}
        for place, record in enumerate(_records(tape, f"{name}/{FAILURES}")):
            try:
                line = _failure(record)
            except _NOT_OURS:
                _count(tape, f"{name}/{FAILURES}")
                continue
            found[line.id or str(place)] = line
        tape.failures[name] = sorted(found.values(), key=lambda line: line.at)


def _failure(record: dict[str, Any]) -> FailureLine:
    attempts = record.get("attempts") or 0
    if not isinstance(attempts, int):
        raise TypeError("attempts is no number")
    name = record["id"]
    return FailureLine(
        id="" if name is None else str(name),
        at=moment(record["at"]),
        family=str(record["family"]),
        message=str(record["message"]),
        attempts=attempts,
    )


def spells(
    states: list[tuple[float, str]], begin: float, now: float, *, until: float
) -> tuple[Spell, ...]:
    """The spells of one session between `begin` and `now`; what lasts at `until` ends there."""
    found = []
    known = [(at, state) for at, state in states if begin <= at <= now]
    ends: list[float | None] = [*(at for at, _ in known[1:]), until if now >= until else None]
    for (at, state), end in zip(known, ends, strict=False):
        if state in HELD:
            found.append(Spell(at, end, state))
    return tuple(found)


def with_end(snapshot: Snapshot, *, live: bool) -> Snapshot:
    """A killed run's last picture says that its process is gone, not that it still runs."""
    if live or snapshot.exit_code is not None:
        return snapshot
    reason = "its process went without a word; `run` with its manifest goes on where it ended"
    return replace(snapshot, state="stopped", reason=reason)
