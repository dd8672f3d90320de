"""Follows the reading of one source, and marks how far it has come (`engine.disk.mark`)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from engine.disk.ledger import Ledger
from engine.disk.mark import Mark, Place, Prefix
from engine.feed.prompts import InvalidRow, Prompt
from engine.feed.sources import PromptFeed


class Pending(NamedTuple):
    """A row that was read and is not finished."""

    place: Place
    key: str
    """Empty where it is unreadable, or was not read again yet."""
    turns: tuple[int, ...]


class Progress:
    """Follows the reading of one source and makes its marks; used by one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pending: dict[int, Pending] = {}
        self._unread: set[int] = set()
        """Rows that the mark of an earlier session names and that were not read again yet."""
        self._finished = 0

    def resume(self, mark: Mark) -> Prefix | None:
        """Go on from a mark; None where the source is not what it was."""
        try:
            prefix = Prefix.of(self._path, mark.bytes)
        except OSError:
            return None
        if prefix.sha256() != mark.sha256:
            return None
        self._finished = mark.finished
        self._unread = {place.row for place in mark.open}
        self._pending = {place.row: Pending(place, "", ()) for place in mark.open}
        return prefix

    def note(
        self, item: Prompt | InvalidRow, place: tuple[int, int], *, on_disk: bool | None
    ) -> None:
        """A row was read that stands at this (line, byte offset).

        `on_disk`: nothing of it is left to do here, and it has rows on disk or has none (another
        shard's). None: it has to be read again, as far as is known yet.
        """
        self._unread.discard(item.index)
        if on_disk is not None:
            self._finished += on_disk
            self._pending.pop(item.index, None)
            return
        key, turns = ("", ()) if isinstance(item, InvalidRow) else (item.key, item.turns)
        begins = Place(item.index, *place, int(key[17:] or 0))
        self._pending[item.index] = Pending(begins, key, turns)

    def mark(self, feed: PromptFeed, dealt: int, ledger: Ledger) -> Mark:
        """How far the feed has come, as this ledger has it; `dealt` rows were this shard's."""
        for index in [i for i, pending in self._pending.items() if _finished(pending, ledger)]:
            del self._pending[index]
            self._finished += 1
        return Mark(
            bytes=feed.end.begin,
            rows=feed.end.row,
            lines=feed.end.line,
            sha256=feed.prefix.sha256(),
            dealt=dealt + len(self._unread),
            finished=self._finished,
            open=[pending.place for pending in self._pending.values()],
            occurrences=feed.occurrences,
        )


def _finished(pending: Pending, ledger: Ledger) -> bool:
    key = pending.key
    if not key or key in ledger.failed:
        return False
    return ledger.cut(key) or all(ledger.done(key, turn) for turn in pending.turns)
