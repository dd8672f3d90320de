"""events.jsonl: what operators ordered and what the engine decided, with time and reason."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.clock import Clock, iso
from engine.disk.entries import event_problem
from engine.disk.jsonlines import Position, read_on
from engine.disk.rundir import EVENTS
from engine.disk.sink import Sink
from engine.format import plural
from engine.view.snapshot import JournalEntry

KEPT = 200


class Journal:
    """Writes entries to disk and keeps the newest ones for the snapshot."""

    def __init__(self, sink: Sink, clock: Clock) -> None:
        self._sink = sink
        self._clock = clock
        self.recent: deque[JournalEntry] = deque(maxlen=KEPT)
        self.count = 0
        """Entries so far in this session: lets a reader find what is new in `recent`."""

    def note(self, kind: str, text: str, *, dataset: str | None = None, **data: Any) -> None:
        """Record one entry; `data` is for scripts, `text` for people."""
        origin = str(data.get("origin", ""))
        entry = JournalEntry(self._clock.wall(), kind, text, dataset, origin)
        self.recent.append(entry)
        self.count += 1
        record = {"at": iso(entry.at), "kind": kind, "dataset": dataset, "text": text, **data}
        self._sink.put(EVENTS, record)


def left_out(place: str, read: Position) -> str:
    """What the journal says of a file's lines that are no records; empty where there are none."""
    if not read.odd:
        return ""
    numbers = ", ".join(map(str, read.odd_first)) + ", …" * (read.odd > len(read.odd_first))
    lines = f"line {numbers}" if read.odd == 1 else f"lines {numbers}"
    are = "is no record and was" if read.odd == 1 else "are no records and were"
    return f"{place}: {plural(read.odd, 'line')} {are} left out ({lines}); `verify` says why"


def skipped_earlier(folder: Path, read: Position | None = None) -> set[str]:
    """Datasets whose last order in an earlier session was to skip them: skips survive a resume.

    `read` notes the lines that are no entries.
    """
    skipped: set[str] = set()
    for command in _commands(folder, read or Position()):
        name = command.get("dataset")
        if command.get("command") == "skip":
            skipped.add(str(name))
        elif command.get("command") == "unskip":
            skipped.discard(str(name))
    return skipped


def _commands(folder: Path, read: Position) -> Iterator[dict[str, Any]]:
    for _, record in read_on(folder / EVENTS, read, event_problem):
        if record["kind"] == "command":
            yield record
