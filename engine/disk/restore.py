"""Reads a dataset's ledger: from its index, and what was added to its files since."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from engine.clock import SystemClock
from engine.disk.entries import PROBLEMS
from engine.disk.index import READ, StaleIndexError, load_index, save_index
from engine.disk.jsonlines import Position, read_on, repair_tail
from engine.disk.ledger import (
    ATTEMPTS,
    FAILURES,
    FILES,
    ROWS,
    SENT,
    Ledger,
    fold_attempt,
    fold_failure,
    fold_row,
    fold_sent,
    settle,
)
from engine.disk.mark import Mark
from engine.format import plural

_SAVE_BYTES: Final = 8 << 20
"""Less than this is read again in a moment: no index is needed for it."""
_REFRESH_BYTES: Final = 64 << 20
_ANEW_MOST: Final = 4
"""So many times that, a live run reads once more for an index that is missing."""
_REFRESH_SHARE: Final = 50
"""A live run brings its index up to date after a fiftieth of its rows: a second's reading."""
MARK_ROWS: Final = 20_000
_MARK_SHARE: Final = 3
"""A source is marked anew after so many of its rows; where they are done already, after a third."""
_LONG_S: Final = 2.0


def read_ledger(folder: Path, *, save_bytes: int = _SAVE_BYTES) -> Ledger:
    """Repair torn tails, then fold one dataset's files; the index is brought up to date.

    Only for whoever holds the run.
    """
    torn = sum(bool(repair_tail(folder / name)) for name in FILES)
    clock = SystemClock()
    began = clock.monotonic()
    stale = ""
    try:
        ledger = load_index(folder) or Ledger()
    except StaleIndexError as error:
        ledger, stale = Ledger(), str(error)
    indexed = {name: _position(ledger, name).bytes for name in READ}
    _fold_on(ledger, folder)
    ledger.torn = torn
    took = clock.monotonic() - began
    if stale or (took >= _LONG_S and not indexed[ROWS]):
        ledger.remark = _remark(ledger, stale, took)
    grown = sum(ledger.positions[name].bytes - indexed[name] for name in READ)
    if stale or grown >= save_bytes:
        save_index(folder, ledger)
    return ledger


def fold_files(folder: Path) -> Ledger:
    """Fold one dataset's files as they stand; safe while the sink writes to them."""
    try:
        ledger = load_index(folder) or Ledger()
    except StaleIndexError:
        ledger = Ledger()
    _fold_on(ledger, folder)
    return ledger


class Upkeep:
    """Keeps the index of a live run so young that a resume after a kill is quick."""

    def __init__(self, folder: Path, ledger: Ledger, *, least: int = _REFRESH_BYTES) -> None:
        self._folder = folder
        self._least = least
        self._indexed = _position(ledger, ROWS).bytes
        self._marked = 0

    def resumed(self, read: int) -> None:
        """So many rows of the source are marked already."""
        self._marked = read

    def see(self, read: int, mark: Callable[[Ledger], Mark] | None, *, skimming: bool) -> None:
        """Bring the index up to date where it is time to (in a thread: it reads what was added).

        `read` rows of the source are read; `mark` says how far, by a ledger (None: the index's own
        mark stays). `skimming`: nothing of what was read last is left to do, and much of that is
        read in a moment.
        """
        size = _size(self._folder / ROWS)
        grown, news = size - self._indexed, read - self._marked
        enough = max(MARK_ROWS, read // _MARK_SHARE) if skimming else MARK_ROWS
        if grown < max(self._least, size // _REFRESH_SHARE) and news < enough:
            return
        self._indexed, self._marked = size, read
        # to make a whole index anew is the next resume's task: a live run has better things to do
        with suppress(StaleIndexError, OSError):
            ledger = load_index(self._folder, marked=mark is None)
            if ledger is None and size > _ANEW_MOST * self._least:
                return
            ledger = ledger or Ledger()
            _fold_on(ledger, self._folder)
            if mark is not None:
                ledger.mark = mark(ledger)
            save_index(self._folder, ledger)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _fold_on(ledger: Ledger, folder: Path) -> None:
    """Fold what was added since.

    sent.jsonl is read last: a request stands in it before its outcome stands anywhere, so that no
    outcome can be met here whose request is still to come.
    """
    settled: array[int] = array("Q")
    for offset, row in _records(ledger, folder, ROWS):
        settled.append(fold_row(ledger, row, offset))
    ledger.seal()
    for _, attempt in _records(ledger, folder, ATTEMPTS):
        settled.append(fold_attempt(ledger, attempt))
    ledger.positions[FAILURES] = Position()
    for _, failure in _records(ledger, folder, FAILURES):
        fold_failure(ledger, failure)
    settle(ledger, _requests(ledger, folder), settled)


def _requests(ledger: Ledger, folder: Path) -> Iterator[dict[str, Any]]:
    yield from ledger.unknown
    for _, record in _records(ledger, folder, SENT):
        fold_sent(ledger, record)
        yield record


def _records(ledger: Ledger, folder: Path, name: str) -> Iterator[tuple[int, Any]]:
    problem = partial(PROBLEMS[name], dataset=folder.name)
    return read_on(folder / name, _position(ledger, name), problem)


def _position(ledger: Ledger, name: str) -> Position:
    return ledger.positions.setdefault(name, Position())


def _remark(ledger: Ledger, stale: str, took: float) -> str:
    why = f" ({stale})" if stale else ""
    rows = plural(ledger.rows, "row")
    return f"the resume index was made anew from {rows} in {took:.1f} s{why}"
