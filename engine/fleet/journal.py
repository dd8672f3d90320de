"""The journal of a fleet: every part's entries in the order in which they were heard."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from engine.journal import KEPT
from engine.view.snapshot import JournalEntry, Snapshot


class FleetJournal:
    """Merging by time would put late news before what a reader has already been told."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[float, int]] = {}
        self._entries: deque[JournalEntry] = deque(maxlen=KEPT)
        self._count = 0

    def hear(self, label: str, snapshot: Snapshot) -> None:
        """Take what a part has journalled since it was heard last; a new session begins anew."""
        session, told = self._heard.get(label, (snapshot.started_at, 0))
        if session != snapshot.started_at:
            told = 0
        fresh = min(snapshot.journal_total - told, len(snapshot.journal))
        for entry in snapshot.journal[-fresh:] if fresh > 0 else ():
            self._add(replace(entry, text=f"{label}: {entry.text}"))
        self._heard[label] = snapshot.started_at, max(told, snapshot.journal_total)

    def note(self, at: float, kind: str, text: str) -> None:
        """An entry of the fleet's own."""
        self._add(JournalEntry(at, kind, text))

    def onto(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with this journal."""
        return replace(snapshot, journal=tuple(self._entries), journal_total=self._count)

    def _add(self, entry: JournalEntry) -> None:
        self._entries.append(entry)
        self._count += 1
