"""events.jsonl: what operators ordered and what the engine decided, with time and reason."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine.clock import Clock, iso
from engine.jsonlines import read_lines
from engine.rundir import EVENTS
from engine.sink import Sink
from engine.snapshot import JournalEntry

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
        entry = JournalEntry(self._clock.wall(), kind, text, dataset)
        self.recent.append(entry)
        self.count += 1
        record = {"at": iso(entry.at), "kind": kind, "dataset": dataset, "text": text, **data}
        self._sink.put(EVENTS, record)


def skipped_earlier(folder: Path) -> set[str]:
    """Datasets whose last order in an earlier session was to skip them: skips survive a resume."""
    skipped: set[str] = set()
    for command in _commands(folder):
        name = command.get("dataset")
        if command.get("command") == "skip":
            skipped.add(str(name))
        elif command.get("command") == "unskip":
            skipped.discard(str(name))
    return skipped


def _commands(folder: Path) -> Iterator[dict[str, Any]]:
    for _, record in read_lines(folder / EVENTS):
        if record.get("kind") == "command":
            yield record
