"""The journal screen: what operators ordered and what the engine decided, with times."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import BindingType

from engine import format as fmt
from engine.disk.rundir import EVENTS
from engine.view.snapshot import JournalEntry, Snapshot
from tui import keys, rowfile
from tui.desk import Desk
from tui.draw import journal
from tui.draw.paint import Line
from tui.screens.paged import Paged

_READ = 500
"""Entries of earlier sessions and of this one's beginning that are read from the file."""


class JournalScreen(Paged, inherit_bindings=False):
    """The snapshot's entries, and before them those in events.jsonl."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.JOURNAL]

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self._older: list[JournalEntry] = []

    def on_mount(self) -> None:
        """Read the file once; newer entries come with the snapshots."""
        super().on_mount()
        self.run_worker(self._read(), exit_on_error=False)

    def title_of(self, snapshot: Snapshot) -> str:
        """Whose journal it is."""
        return f"Journal of {fmt.safe_text(snapshot.run, 40)}"

    def lines_of(self, snapshot: Snapshot, cells: int) -> Sequence[Line]:
        """The newest entry first."""
        recent = sorted(snapshot.journal, key=lambda entry: -entry.at)
        # the file has milliseconds: what the snapshot holds as well is shown once
        begin = recent[-1].at - 0.001 if recent else float("inf")
        older = [entry for entry in self._older if entry.at < begin]
        return journal.body([*recent, *older], cells)

    async def _read(self) -> None:
        path = Path(self.desk.helm.snapshot().output) / EVENTS
        try:
            records = await asyncio.to_thread(rowfile.tail, path, _READ)
        except OSError:
            return  # the snapshot's own entries are there
        self._older = [entry for record in records if (entry := _entry(record)) is not None]
        self.refresh_view()


def _entry(record: dict[str, Any]) -> JournalEntry | None:
    try:
        at = datetime.fromisoformat(record["at"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return None
    dataset = record.get("dataset")
    return JournalEntry(
        at,
        str(record.get("kind")),
        str(record.get("text")),
        dataset if isinstance(dataset, str) else None,
    )
