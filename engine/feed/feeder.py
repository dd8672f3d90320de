"""Turns sources into jobs off the loop, leaving out what earlier sessions finished."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from engine.disk.entries import moment
from engine.disk.ledger import Ledger, read_rows_at
from engine.disk.restore import Upkeep, fold_files
from engine.feed.progress import Progress
from engine.feed.prompts import InvalidRow, Prompt
from engine.feed.sources import PromptFeed, is_plain
from engine.feed.unmet import Unmet
from engine.manifest import Dataset, Manifest
from engine.plan import Shard
from engine.schedule import Job, Queue

BATCH = 512


@dataclass(slots=True)
class Batch:
    """What one reading step brought."""

    jobs: list[Job] = field(default_factory=list)
    delayed: list[tuple[float, Job]] = field(default_factory=list)
    """Jobs whose outcome is unknown, with the epoch second before which no resend is safe."""
    invalid: list[InvalidRow] = field(default_factory=list)
    partial: int = 0
    """Prompts that were counted as ok before and turn out to have turns left."""
    exhausted: bool = False
    orphans: int = 0
    """Prompts counted as ok that the source no longer holds; known at its end."""
    lost_failures: int = 0
    """Prompts counted as failed that the source no longer holds; known at its end."""


class Feeder:
    """One dataset's source, read on while the schedule wants more."""

    def __init__(  # noqa: PLR0913 - what it reads, what it leaves out, and where
        self,
        manifest: Manifest,
        dataset: Dataset,
        ledger: Ledger,
        folder: Path,
        *,
        stop: int,
        as_served: Callable[[dict[str, Any]], str],
        resend_after_s: float = 0.0,
        shard: Shard,
        whole: int = 0,
        executor: ThreadPoolExecutor,
    ) -> None:
        self._open = partial(PromptFeed, manifest, dataset, stop=stop)
        path = manifest.source_path(dataset)
        self._progress = Progress(path) if is_plain(dataset.source, path) else None
        self._feed: PromptFeed | None = None
        self._stop = stop
        self._ledger = ledger
        self._folder = folder
        self._as_served = as_served
        self._whole = stop >= dataset.prompts
        self._resend_after_s = resend_after_s
        self._shard = shard
        self._whole_total = whole
        """Prompts over all shards, of which `_rows` are read and `_dealt` are this one's."""
        self._rows = self._dealt = 0
        self._queue: Queue | None = None
        self._executor = executor
        self._upkeep = Upkeep(folder, ledger)
        self._unmet = Unmet(ledger)
        self._found = self._unmet.failed, self._unmet.ok
        self._hidden_ok = self._hidden_failed = 0
        """Prompts on disk beyond the dataset's total: the source must have lost others."""
        self._stale = False
        self._only: set[str] | None = None
        self._unknown = {record["id"]: _epoch(record["at"]) for record in ledger.unknown}
        self.known_invalid = ledger.invalid
        """(index, message) of unreadable rows that failures.jsonl has already."""
        self.failed = set(ledger.failed)
        """Keys of prompts that were given up."""

    def restored(self, queue: Queue) -> None:
        """Count what is on disk before the source is read; batches correct it."""
        self._queue = queue
        failed, ok = self._found
        if self._shard.partial:  # its total is an estimate, which what is on disk may exceed
            queue.prompts = max(queue.prompts, failed + ok)
        queue.failed = min(failed, queue.prompts)
        queue.ok = min(ok, queue.prompts - queue.failed)
        self._hidden_failed, self._hidden_ok = failed - queue.failed, ok - queue.ok

    async def read(self) -> Batch:
        """The next batch, read in the executor."""
        batch = await asyncio.get_running_loop().run_in_executor(self._executor, self._read)
        queue = self._queue
        if self._shard.partial and queue is not None and self._only is None:
            unread = self._shard.expects(max(0, self._whole_total - self._rows))
            at_end = batch.exhausted and self._whole  # only then is it known what was lost
            queue.prompts = max(self._dealt + unread, 0 if at_end else queue.ok + queue.failed)
        return batch

    def again(self, keys: set[str]) -> None:
        """Read the source once more, for these prompts only (retry failed)."""
        self._feed = self._open()
        self._progress = None
        self._only = set(keys)
        self._stale = True
        self.failed -= keys

    def _read(self) -> Batch:
        if self._stale:
            self._learn_again()
        feed = self._feed = self._feed or self._begin()
        items = feed.batch(BATCH)
        batch = Batch(exhausted=not items)
        self._rows += len(items)
        for item, place in zip(items, feed.places, strict=True):
            on_disk = self._take(item, batch)
            if self._progress is not None:
                self._progress.note(item, place, on_disk=on_disk)
        if batch.exhausted and self._whole and self._only is None:
            batch.lost_failures = self._unmet.failed - self._hidden_failed
            batch.orphans = self._unmet.ok - self._hidden_ok
        mark = None if self._progress is None else partial(self._progress.mark, feed, self._dealt)
        self._upkeep.see(self._rows, mark, skimming=bool(items) and not batch.jobs)
        return batch

    def _begin(self) -> PromptFeed:
        """Go on behind what an earlier session marked as finished, where the source is the same."""
        mark, progress = self._ledger.mark, self._progress
        self._ledger.mark = None  # its table is the feed's from here on
        if mark is None or progress is None or mark.rows > self._stop:
            return self._open()
        prefix = progress.resume(mark)
        if prefix is None:
            return self._open()
        self._rows, self._dealt = mark.rows - len(mark.open), mark.dealt - len(mark.open)
        self._unmet.ok -= mark.finished
        self._upkeep.resumed(self._rows)
        return self._open(mark=mark, prefix=prefix)

    def _take(self, item: Prompt | InvalidRow, batch: Batch) -> bool | None:
        """Take one row: whether it has rows on disk where nothing is left of it, else None."""
        if isinstance(item, InvalidRow):
            if self._only is None and self._shard.takes_row(item.index):
                self._dealt += 1
                batch.invalid.append(item)
                return None
            return False
        self._unmet.meet(item.key)
        if self._shard.takes(item) and (self._only is None or item.key in self._only):
            self._dealt += 1
            if self._sort(item, batch):
                return None
        return self._ledger.known(item.key)

    def _learn_again(self) -> None:
        """What this session wrote counts too: rows of earlier turns, numbers of attempts."""
        self._ledger = fold_files(self._folder)
        for key in self._only or ():
            self._ledger.failed.pop(key, None)
        self._stale = False

    def _sort(self, prompt: Prompt, batch: Batch) -> bool:
        """Put a prompt with something left among the jobs; whether it is unfinished."""
        key = prompt.key
        if key in self._ledger.failed:
            return True
        turn = self._next_turn(prompt)
        if turn is None:
            return False
        if self._ledger.known(key) and self._only is None:
            batch.partial += 1
        done = frozenset(t for t in prompt.turns if self._ledger.done(prompt.key, t))
        job = Job(prompt, turn, answers=self._answers(prompt, turn), done=done)
        job.attempt = self._ledger.attempt(job.id)
        sent_at = self._unknown.get(job.id)
        if sent_at is not None and self._resend_after_s:
            batch.delayed.append((sent_at + self._resend_after_s, job))
        else:
            batch.jobs.append(job)
        return True

    def _next_turn(self, prompt: Prompt) -> int | None:
        if self._ledger.cut(prompt.key):
            return None
        undone = (turn for turn in prompt.turns if not self._ledger.done(prompt.key, turn))
        return next(undone, None)

    def _answers(self, prompt: Prompt, turn: int) -> list[str]:
        if prompt.mode != "all" or turn == 0:
            return []
        offsets = [self._ledger.offset(prompt.id(earlier)) for earlier in range(turn)]
        return [self._as_served(row) for row in read_rows_at(self._folder, offsets)]


def _epoch(text: str) -> float:
    return moment(text) if text else 0.0
