"""A source that was read before is not read again, and that changes nothing but time."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from engine_parts import HEAD, dataset_text, manifest_of
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_rows import bare_row

import engine.disk.restore
import engine.feed.feeder
from engine.disk.index import INDEX
from engine.disk.jsonlines import dump_line
from engine.disk.ledger import FAILURES, ROWS, SENT
from engine.disk.restore import read_ledger
from engine.feed.feeder import Batch, Feeder
from engine.feed.sources import PromptFeed
from engine.plan import Shard
from engine.schedule import Job, Queue

AT = "2026-11-30T14:03:22.125Z"


@pytest.fixture(autouse=True, scope="module")
def small_steps() -> Iterator[None]:
    """Marks after every few rows: what large runs do after thousands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine.feed.feeder, "BATCH", 3)
        patch.setattr(engine.disk.restore, "MARK_ROWS", 1)
        patch.setattr(engine.disk.restore, "_MARK_SHARE", 1 << 30)
        yield


@pytest.fixture(scope="module")
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


class Desk:
    """A source, a dataset's folder, and sessions over them."""

    def __init__(self, folder: Path, executor: ThreadPoolExecutor) -> None:
        self.root = folder
        self.source = folder / "D.jsonl"
        self.folder = folder / "D"
        self.folder.mkdir()
        self._executor = executor

    def feeder(self, prompts: int, shard: Shard | None = None) -> tuple[Feeder, Queue]:
        manifest = manifest_of(HEAD + dataset_text("D", prompts), self.root)
        feeder = Feeder(
            manifest,
            manifest.datasets[0],
            read_ledger(self.folder),
            self.folder,
            stop=prompts,
            as_served=lambda row: str(row["content"]),
            shard=shard or Shard(),
            whole=prompts if shard else 0,
            executor=self._executor,
        )
        queue = Queue("D", prompts)
        feeder.restored(queue)
        return feeder, queue

    def put(self, name: str, record: dict[str, Any]) -> None:
        with (self.folder / name).open("ab") as file:
            file.write(dump_line(record))

    def work(self, job: Job, kind: str) -> None:
        """What becomes of a job: nothing, a row, all rows, one that is cut, or a failure."""
        self.put(SENT, {"id": job.id, "attempt": job.attempt + 1, "at": AT})
        finish = "length" if kind == "cut" else "stop"
        if kind in {"row", "cut", "all"}:
            turns = [t for t in job.prompt.turns if t >= job.turn]
            for turn in turns if kind == "all" else turns[:1]:
                row = bare_row(job.prompt.id(turn), content=f"ours {turn}", finish_reason=finish)
                self.put(ROWS, row)
        elif kind == "failed":
            failure = {"id": job.id, "index": job.prompt.index, "family": "bad_request"}
            self.put(FAILURES, failure)


async def everything(feeder: Feeder, queue: Queue, batches: int = 1 << 30) -> Batch:
    found = Batch()
    while batches and not found.exhausted:
        batch = await feeder.read()
        for name in ("jobs", "delayed", "invalid"):
            getattr(found, name).extend(getattr(batch, name))
        found.partial += batch.partial
        found.orphans += batch.orphans
        found.lost_failures += batch.lost_failures
        found.exhausted = batch.exhausted
        batches -= 1
    del queue
    return found


def facts(batch: Batch, queue: Queue) -> dict[str, Any]:
    """What a session learns from its source; the order of the jobs is free."""
    jobs = sorted((job.id, job.attempt, tuple(job.answers), sorted(job.done)) for job in batch.jobs)
    return {
        "jobs": jobs,
        "places": sorted((job.prompt.index, job.prompt.hash) for job in batch.jobs),
        "invalid": sorted((row.index, row.line, row.reason) for row in batch.invalid),
        "counts": (batch.partial, batch.orphans, batch.lost_failures),
        "queue": (queue.prompts, queue.ok, queue.failed),
    }


async def resumed(desk: Desk, prompts: int, shard: Shard | None = None) -> dict[str, Any]:
    feeder, queue = desk.feeder(prompts, shard)
    return facts(await everything(feeder, queue), queue)


ROW = st.sampled_from(
    [
        *(f'{{"prompt":"p{n}"}}' for n in range(6)),
        *('{"turns":["a","b"]}', '{"turns":["a","c","d"]}', "broken", '{"other":1}', ""),
        '{"messages":[{"role":"user","content":"ä\\ud800"}]}',
    ]
)
KINDS = ("row", "row", "all", "all", "cut", "failed", "open")


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(ROW, min_size=1, max_size=24),
    batches=st.integers(1, 10),
    seed=st.integers(0, 1 << 16),
    change=st.sampled_from(["none", "append", "edit", "shorten", "move"]),
    shards=st.sampled_from([1, 1, 2]),
    sessions=st.integers(1, 2),
)
async def test_a_resume_with_a_mark_is_one_without(
    tmp_path_factory: Any,
    executor: ThreadPoolExecutor,
    rows: list[str],
    batches: int,
    seed: int,
    change: str,
    shards: int,
    sessions: int,
) -> None:
    folder = tmp_path_factory.mktemp("run")
    desk, rng = Desk(folder, executor), random.Random(seed)
    desk.source.write_bytes(b"\xef\xbb\xbf" * (seed % 2) + "\n".join([*rows, ""]).encode())
    prompts = sum(bool(row) for row in rows) or 1
    shard = Shard(1, shards) if shards > 1 else None
    for _ in range(sessions):
        feeder, queue = desk.feeder(prompts, shard)
        for _ in range(batches):
            for job in (await everything(feeder, queue, 1)).jobs:
                desk.work(job, rng.choice(KINDS))
    prompts += altered(desk.source, change)
    shutil.copytree(desk.folder, folder / "kept")
    marked = await resumed(desk, prompts, shard)
    shutil.rmtree(desk.folder)
    (folder / "kept").rename(desk.folder)
    (desk.folder / INDEX).unlink(missing_ok=True)
    assert marked == await resumed(desk, prompts, shard)


def altered(source: Path, change: str) -> int:
    """Change a source; returns how many rows it has more."""
    lines = source.read_bytes().splitlines(keepends=True)
    if change == "append":
        lines += [b'{"prompt":"p0"}\n', b'{"prompt":"new"}\n']
    elif change == "edit":
        lines[0] = b'{"prompt":"edited"}\n'
    elif change == "shorten":
        lines = lines[:-1]
    elif change == "move":
        lines = lines[1:] + lines[:1]
    source.write_bytes(b"".join(lines))
    return 2 if change == "append" else 0


async def test_only_what_is_unfinished_or_new_is_read(
    tmp_path: Path, executor: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(tmp_path, executor)
    desk.source.write_text("".join(f'{{"prompt":"p{n}"}}\n' for n in range(30)))
    feeder, queue = desk.feeder(30)
    for _ in range(10):
        for job in (await everything(feeder, queue, 1)).jobs:
            desk.work(job, "open" if job.prompt.index == 4 else "row")
    assert (await everything(feeder, queue, 1)).exhausted
    read: list[int] = []
    plain = PromptFeed.batch

    def counted(feed: PromptFeed, size: int) -> Any:
        found = plain(feed, size)
        read.extend(item.index for item in found)
        return found

    monkeypatch.setattr(PromptFeed, "batch", counted)
    feeder, queue = desk.feeder(30)
    batch = await everything(feeder, queue)
    assert read == [4, 27, 28, 29]  # the last three were marked before they were answered
    assert [job.prompt.index for job in batch.jobs] == [4]
    assert (batch.orphans, queue.ok, queue.failed) == (0, 29, 0)


async def test_fewer_prompts_than_were_read_are_read_from_the_beginning(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    desk = Desk(tmp_path, executor)
    desk.source.write_text("".join(f'{{"prompt":"p{n}"}}\n' for n in range(12)))
    feeder, queue = desk.feeder(12)
    await everything(feeder, queue)
    feeder, queue = desk.feeder(5)
    assert [job.prompt.index for job in (await everything(feeder, queue)).jobs] == [0, 1, 2, 3, 4]
