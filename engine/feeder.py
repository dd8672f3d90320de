"""Turns sources into jobs off the loop, leaving out what earlier sessions finished."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.ledger import Ledger, fold_files, read_rows_at
from engine.manifest import Dataset, Manifest
from engine.plan import Shard
from engine.prompts import InvalidRow, Prompt
from engine.schedule import Job, Queue
from engine.sources import PromptFeed

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
        executor: ThreadPoolExecutor,
    ) -> None:
        self._open: Callable[[], PromptFeed] = lambda: PromptFeed(manifest, dataset, stop=stop)
        self._feed = self._open()
        self._ledger = ledger
        self._folder = folder
        self._as_served = as_served
        self._whole = stop >= dataset.prompts
        self._resend_after_s = resend_after_s
        self._shard = shard
        self._executor = executor
        self._unseen = set(ledger.turns) | set(ledger.failed)
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
        failed, ok = len(self.failed), len(self._ledger.turns.keys() - self.failed)
        queue.failed = min(failed, queue.prompts)
        queue.ok = min(ok, queue.prompts - queue.failed)
        self._hidden_failed, self._hidden_ok = failed - queue.failed, ok - queue.ok

    async def read(self) -> Batch:
        """The next batch, read in the executor."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._read)

    def again(self, keys: set[str]) -> None:
        """Read the source once more, for these prompts only (retry failed)."""
        self._feed = self._open()
        self._only = set(keys)
        self._stale = True
        self.failed -= keys

    def _read(self) -> Batch:
        if self._stale:
            self._learn_again()
        items = self._feed.batch(BATCH)
        batch = Batch(exhausted=not items)
        for item in items:
            if isinstance(item, InvalidRow):
                if self._only is None:
                    batch.invalid.append(item)
            else:
                self._unseen.discard(item.key)
                if self._shard.takes(item) and (self._only is None or item.key in self._only):
                    self._sort(item, batch)
        if batch.exhausted and self._whole and self._only is None:
            lost = len(self._unseen & self._ledger.failed.keys())
            batch.lost_failures = lost - self._hidden_failed
            batch.orphans = len(self._unseen) - lost - self._hidden_ok
        return batch

    def _learn_again(self) -> None:
        """What this session wrote counts too: rows of earlier turns, numbers of attempts."""
        self._ledger = fold_files(self._folder)
        for key in self._only or ():
            self._ledger.failed.pop(key, None)
        self._stale = False

    def _sort(self, prompt: Prompt, batch: Batch) -> None:
        key = prompt.key
        if key in self._ledger.failed:
            return
        turn = self._next_turn(prompt)
        if turn is None:
            return
        if key in self._ledger.turns and self._only is None:
            batch.partial += 1
        done = frozenset(t for t in prompt.turns if self._ledger.done(prompt.key, t))
        job = Job(prompt, turn, answers=self._answers(prompt, turn), done=done)
        job.attempt = self._ledger.attempts.get(job.id, 0)
        sent_at = self._unknown.get(job.id)
        if sent_at is not None and self._resend_after_s:
            batch.delayed.append((sent_at + self._resend_after_s, job))
        else:
            batch.jobs.append(job)

    def _next_turn(self, prompt: Prompt) -> int | None:
        if prompt.key in self._ledger.cut:
            return None
        undone = (turn for turn in prompt.turns if not self._ledger.done(prompt.key, turn))
        return next(undone, None)

    def _answers(self, prompt: Prompt, turn: int) -> list[str]:
        if prompt.mode != "all" or turn == 0:
            return []
        offsets = [self._ledger.offsets[prompt.id(earlier)] for earlier in range(turn)]
        return [self._as_served(row) for row in read_rows_at(self._folder, offsets)]


def _epoch(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
