"""The feeder: only what is undone becomes a job, with the answers and numbers it goes on from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from engine_parts import HEAD, dataset_text, job_of, manifest_of, prompt_of, write_rows
from ledger_rows import bare_row

from engine.disk.jsonlines import dump_line
from engine.disk.ledger import ATTEMPTS, FAILURES, ROWS, SENT
from engine.disk.records import invalid_message, invalid_record
from engine.disk.restore import read_ledger
from engine.feed.feeder import Batch, Feeder
from engine.feed.prompts import InvalidRow
from engine.plan import Shard
from engine.schedule import Job, Queue

SENT_AT = 1_000_000_000.0


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


class Desk:
    """A source, a dataset's folder, and what a session would do with them."""

    def __init__(self, folder: Path, executor: ThreadPoolExecutor) -> None:
        self.source = folder / "D.jsonl"
        self.folder = folder / "out" / "D"
        self.folder.mkdir(parents=True)
        self.executor = executor

    def rows(self, *rows: Any) -> None:
        write_rows(self.source, [{"prompt": r} if isinstance(r, str) else r for r in rows])

    def wrote(self, name: str, *records: dict[str, Any]) -> None:
        with (self.folder / name).open("ab") as file:
            file.writelines(map(dump_line, records))

    def saved(self, row: Any, turn: int = 0, **more: Any) -> None:
        identifier = prompt_of(row, dataset="D").id(turn)
        content = f"ours {turn}"
        self.wrote(ROWS, bare_row(identifier, content=content, **more))

    def failed(self, row: Any, turn: int = 0) -> None:
        identifier = prompt_of(row, dataset="D").id(turn)
        self.wrote(FAILURES, {"id": identifier, "family": "bad_request", "message": "", "index": 0})

    def sent(self, row: Any, turn: int = 0, *, attempt: int = 1, at: float = SENT_AT) -> None:
        identifier = prompt_of(row, dataset="D").id(turn)
        stamp = datetime.fromtimestamp(at, UTC).isoformat()
        self.wrote(SENT, {"id": identifier, "attempt": attempt, "at": stamp})

    def feeder(self, prompts: int = 10, *, turns: str = "all", **more: Any) -> Feeder:
        manifest = manifest_of(HEAD + dataset_text("D", prompts, turns=turns), self.source.parent)
        options = {"stop": prompts, "shard": Shard(), **more}
        return Feeder(
            manifest,
            manifest.datasets[0],
            read_ledger(self.folder),
            self.folder,
            as_served=lambda row: f"<{row['content']}>",
            executor=self.executor,
            **options,
        )


@pytest.fixture
def desk(tmp_path: Path, executor: ThreadPoolExecutor) -> Desk:
    return Desk(tmp_path, executor)


async def whole(feeder: Feeder) -> Batch:
    """Everything a source brings, in one batch."""
    found = Batch()
    while not found.exhausted:
        batch = await feeder.read()
        found.jobs += batch.jobs
        found.delayed += batch.delayed
        found.invalid += batch.invalid
        found.partial += batch.partial
        found.orphans += batch.orphans
        found.lost_failures += batch.lost_failures
        found.exhausted = batch.exhausted
    return found


def asked(batch: Batch) -> list[str]:
    return [str(job.prompt.messages[0]["content"]) for job in batch.jobs]


async def test_a_fresh_run_asks_everything_once(desk: Desk) -> None:
    desk.rows("a", "b", "a", {"turns": ["c", "d"]})
    batch = await whole(desk.feeder())
    assert asked(batch) == ["a", "b", "a", "c"]
    assert [(job.turn, job.attempt, job.answers) for job in batch.jobs] == [(0, 0, [])] * 4
    assert len({job.id for job in batch.jobs}) == 4


async def test_what_has_a_row_is_not_asked_again_wherever_it_stands_now(desk: Desk) -> None:
    for text in ("a", "c"):
        desk.saved(text)
    desk.rows("new", "c", "b", "a")
    assert asked(await whole(desk.feeder())) == ["new", "b"]


async def test_an_exact_double_is_asked_as_often_as_it_stands_in_the_source(desk: Desk) -> None:
    desk.saved("a")
    desk.rows("a", "a", "a")
    batch = await whole(desk.feeder())
    assert [job.prompt.key[-2:] for job in batch.jobs] == [".1", ".2"]


async def test_a_conversation_goes_on_from_our_own_answers_as_they_are_served(desk: Desk) -> None:
    row = {"turns": ["a", "b", "c"]}
    desk.saved(row, 0)
    desk.saved(row, 1)
    desk.rows(row)
    batch = await whole(desk.feeder())
    (job,) = batch.jobs
    assert (job.turn, job.answers, batch.partial) == (2, ["<ours 0>", "<ours 1>"], 1)


async def test_a_conversation_that_was_cut_is_over(desk: Desk) -> None:
    row = {"turns": ["a", "b"]}
    desk.saved(row, 0, finish_reason="length")
    desk.rows(row)
    batch = await whole(desk.feeder())
    assert (batch.jobs, batch.partial) == ([], 0)


async def test_other_turns_modes_ask_only_their_turn(desk: Desk) -> None:
    row = {"turns": ["a", "b", "c"]}
    desk.rows(row)
    for turns, turn in (("first", 0), ("last", 2)):
        (job,) = (await whole(desk.feeder(turns=turns))).jobs
        assert (job.turn, job.answers) == (turn, [])


async def test_a_failed_prompt_is_left_alone(desk: Desk) -> None:
    desk.failed("a")
    desk.rows("a", "b")
    feeder = desk.feeder()
    assert asked(await whole(feeder)) == ["b"]
    assert feeder.failed == {prompt_of("a").key}


async def test_attempt_numbers_go_on_over_sessions(desk: Desk) -> None:
    desk.sent("a", attempt=1)
    desk.sent("a", attempt=2)
    desk.rows("a")
    (job,) = (await whole(desk.feeder())).jobs
    assert (job.attempt, job.tries) == (2, 0)


async def test_what_a_kill_left_open_waits_until_its_cached_answer_is_free(desk: Desk) -> None:
    desk.sent("a", at=SENT_AT)
    desk.rows("a", "b")
    batch = await whole(desk.feeder(resend_after_s=600.0))
    assert asked(batch) == ["b"]
    ((at, job),) = batch.delayed
    assert (at, job.attempt, job.id) == (SENT_AT + 600.0, 1, prompt_of("a", dataset="D").id(0))
    assert asked(await whole(desk.feeder())) == ["a", "b"]


async def test_unreadable_rows_come_with_their_place_and_known_ones_are_known(desk: Desk) -> None:
    desk.source.write_text('{"prompt":"a"}\n\nbroken\n{"other":1}\n')
    feeder = desk.feeder()
    batch = await whole(feeder)
    assert [(row.index, row.line) for row in batch.invalid] == [(1, 3), (2, 4)]
    assert feeder.known_invalid == set()
    for row in batch.invalid:
        desk.wrote(FAILURES, invalid_record(row, SENT_AT))
    again = desk.feeder()
    assert again.known_invalid == {(r.index, invalid_message(r)) for r in batch.invalid}
    assert (await whole(again)).invalid == batch.invalid


async def test_a_pilot_reads_only_the_first_rows(desk: Desk) -> None:
    desk.rows(*"abcdef")
    assert asked(await whole(desk.feeder(6, stop=2))) == ["a", "b"]


# --- counts -----------------------------------------------------------------------------------


def counted(feeder: Feeder, queue: Queue, batch: Batch | None = None) -> tuple[int, int, int]:
    """ok, failed and left as the engine counts them."""
    feeder.restored(queue)
    if batch is not None:
        queue.ok -= batch.partial + batch.orphans
        queue.failed -= batch.lost_failures
        queue.invalid = len(batch.invalid)
    assert queue.prompts == queue.answered + queue.failed + queue.invalid + queue.left
    return queue.answered, queue.failed, queue.left


async def test_what_is_on_disk_counts_before_the_source_is_read(desk: Desk) -> None:
    talk = {"turns": ["t", "u"]}
    desk.rows("a", "b", "c", talk, "e")
    desk.saved("a")
    desk.failed("b")
    desk.saved(talk, 0)
    feeder = desk.feeder(5)
    assert counted(feeder, Queue("D", 5)) == (2, 1, 2)
    batch = await whole(feeder)
    assert counted(feeder, Queue("D", 5), batch) == (1, 1, 3)  # the talk has a turn left


async def test_prompts_that_left_the_source_are_reported_and_do_not_count(desk: Desk) -> None:
    desk.rows("a", "x", "y")
    for text in ("a", "b", "c"):
        desk.saved(text)
    desk.failed("d")
    feeder = desk.feeder(3)
    assert counted(feeder, Queue("D", 3)) == (2, 1, 0)  # four are on disk, three is the total
    batch = await whole(feeder)
    assert asked(batch) == ["x", "y"]
    assert counted(feeder, Queue("D", 3), batch) == (1, 0, 2)


async def test_a_smaller_total_than_before_never_shows_more_than_itself(desk: Desk) -> None:
    desk.rows(*"abcdefgh")
    for text in "abcdef":
        desk.saved(text)
    feeder = desk.feeder(2)
    queue = Queue("D", 2)
    assert counted(feeder, queue) == (2, 0, 0)
    batch = await whole(feeder)
    assert batch.jobs == []
    assert counted(feeder, Queue("D", 2), batch) == (2, 0, 0)


async def test_while_lost_prompts_are_not_yet_noticed_the_numbers_still_add_up(desk: Desk) -> None:
    desk.rows(*"xyz")
    for text in "abc":
        desk.saved(text)
    feeder, queue = desk.feeder(3), Queue("D", 3)
    feeder.restored(queue)
    queue.in_flight.update([job_of("x"), job_of("y")])
    assert (queue.answered, len(queue.in_flight), queue.left) == (1, 2, 0)


async def test_a_pilot_reports_no_prompt_as_lost(desk: Desk) -> None:
    desk.rows(*"abcd")
    desk.saved("d")
    batch = await whole(desk.feeder(4, stop=2))
    assert (asked(batch), batch.orphans) == (["a", "b"], 0)


@pytest.mark.parametrize("count", [2, 3])
async def test_shards_are_dealt_by_content_and_cover_each_prompt_once(
    desk: Desk, count: int
) -> None:
    texts = [f"prompt {n}" for n in range(60)]
    dealt: list[str] = []
    for index in range(1, count + 1):
        desk.rows(*texts[index:], *texts[:index])  # whatever the order
        dealt += asked(await whole(desk.feeder(60, shard=Shard(index, count))))
    assert sorted(dealt) == sorted(texts)
    assert len(dealt) == 60


async def test_another_shards_rows_in_the_same_folder_are_not_lost(desk: Desk) -> None:
    texts = [f"prompt {n}" for n in range(20)]
    desk.rows(*texts)
    for text in texts:
        desk.saved(text)
    batch = await whole(desk.feeder(20, shard=Shard(1, 2)))
    assert (batch.jobs, batch.orphans) == ([], 0)


@pytest.mark.parametrize("index", [1, 2, 3, 4])
async def test_a_shard_with_more_prompts_than_its_even_share_has_lost_none(
    desk: Desk, index: int
) -> None:
    texts = [f"prompt {n}" for n in range(200)]
    desk.rows(*texts)
    shard = Shard(index, 4)
    mine = [text for text in texts if shard.takes(prompt_of(text, dataset="D"))]
    assert len(mine) != shard.expects(200) == 50
    for text in mine:
        desk.saved(text)
    feeder, queue = desk.feeder(200, shard=shard, whole=200), Queue("D", shard.expects(200))
    feeder.restored(queue)
    assert (queue.answered, queue.left) == (len(mine), max(0, 50 - len(mine)))
    while not (batch := await feeder.read()).exhausted:
        assert queue.answered == queue.ok == len(mine)
    assert (batch.orphans, batch.lost_failures) == (0, 0)
    assert (queue.prompts, queue.answered, queue.left) == (len(mine), len(mine), 0)


async def test_a_shard_counts_what_its_source_lost(desk: Desk) -> None:
    texts = [f"prompt {n}" for n in range(40)]
    mine = [text for text in texts if Shard(1, 2).takes(prompt_of(text, dataset="D"))]
    for text in mine:
        desk.saved(text)
    desk.rows(*(text for text in texts if text not in mine[:3]))
    feeder, queue = desk.feeder(37, shard=Shard(1, 2), whole=37), Queue("D", 19)
    feeder.restored(queue)
    while not (batch := await feeder.read()).exhausted:
        pass
    assert batch.orphans == 3
    assert (queue.prompts, queue.ok - batch.orphans) == (len(mine) - 3, len(mine) - 3)


# --- retry failed -----------------------------------------------------------------------------


async def test_failed_prompts_are_read_again_and_only_these(desk: Desk) -> None:
    desk.rows("a", "b", "c")
    desk.failed("b")
    feeder = desk.feeder()
    assert asked(await whole(feeder)) == ["a", "c"]
    feeder.again(set(feeder.failed))
    assert feeder.failed == set()
    batch = await whole(feeder)
    assert (asked(batch), batch.partial, batch.orphans) == (["b"], 0, 0)


async def test_a_retry_in_the_same_session_pays_no_earlier_turn_again(desk: Desk) -> None:
    """What this session itself wrote is known to the retry: its rows and its attempt numbers."""
    talk = {"turns": ["a", "b"]}
    desk.rows(talk)
    feeder = desk.feeder()
    (job,) = (await whole(feeder)).jobs
    assert job.turn == 0
    desk.sent(talk, 0)
    desk.saved(talk, 0)
    for attempt in (1, 2):
        desk.sent(talk, 1, attempt=attempt)
        desk.wrote(ATTEMPTS, {"id": job.prompt.id(1), "attempt": attempt, "family": "bad_request"})
    desk.failed(talk, 1)
    feeder.failed.add(job.prompt.key)
    feeder.again(set(feeder.failed))
    (again,) = (await whole(feeder)).jobs
    assert (again.turn, again.answers, again.attempt) == (1, ["<ours 0>"], 2)


async def test_a_retry_while_the_sink_writes_repairs_nothing_under_it(desk: Desk) -> None:
    desk.rows("a")
    desk.failed("a")
    feeder = desk.feeder()
    await whole(feeder)
    with (desk.folder / ROWS).open("ab") as file:
        file.write(b'{"id":"D/half a line')
    feeder.again(set(feeder.failed))
    assert asked(await whole(feeder)) == ["a"]
    assert (desk.folder / ROWS).read_bytes() == b'{"id":"D/half a line'


async def test_reading_runs_off_the_loop(desk: Desk) -> None:
    desk.rows(*(f"{n}" for n in range(600)))
    feeder = desk.feeder(600)
    reading = asyncio.create_task(feeder.read())
    turns = 0
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 1
    assert len(reading.result().jobs) == 512
    jobs: list[Job] = (await feeder.read()).jobs
    assert len(jobs) == 88
    assert (await feeder.read()).exhausted


def test_an_invalid_row_is_worded_with_its_line() -> None:
    assert invalid_message(InvalidRow("D", 3, 7, "broken")) == "line 7: broken"
