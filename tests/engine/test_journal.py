"""The journal: on disk for scripts, in memory for the screen, and what a resume learns of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from virtual_clock import EPOCH, VirtualClock

from engine.disk.jsonlines import dump_line, read_lines
from engine.disk.rundir import EVENTS
from engine.disk.sink import Sink
from engine.journal import KEPT, Journal, skipped_earlier
from engine.view.snapshot import JournalEntry


async def test_an_entry_is_on_disk_and_in_memory_with_its_time_and_reason(tmp_path: Path) -> None:
    sink, clock = Sink(tmp_path), VirtualClock()
    journal = Journal(sink, clock)
    journal.note("command", "skipped B6", dataset="B6", command="skip", origin="screen")
    clock.advance(1.5)
    journal.note("state", "run running → paused")
    sink.close()
    await asyncio.create_task(sink.run())
    assert [record for _, record in read_lines(tmp_path / EVENTS)] == [
        {
            "at": "2026-11-30T14:03:22.125Z",
            "kind": "command",
            "dataset": "B6",
            "text": "skipped B6",
            "command": "skip",
            "origin": "screen",
        },
        {
            "at": "2026-11-30T14:03:23.625Z",
            "kind": "state",
            "dataset": None,
            "text": "run running → paused",
        },
    ]
    assert journal.recent[0] == JournalEntry(EPOCH, "command", "skipped B6", "B6", "screen")
    assert journal.count == 2


async def test_memory_holds_the_newest_entries_only_but_counts_all(tmp_path: Path) -> None:
    journal = Journal(Sink(tmp_path), VirtualClock())
    for n in range(KEPT + 50):
        journal.note("note", f"{n}")
    assert (len(journal.recent), journal.count) == (KEPT, KEPT + 50)
    assert journal.recent[-1].text == f"{KEPT + 49}"


def wrote(folder: Path, *orders: tuple[str, str | None]) -> None:
    lines = [
        dump_line({"kind": "command", "command": command, "dataset": dataset, "text": ""})
        for command, dataset in orders
    ]
    (folder / EVENTS).write_bytes(b"".join(lines))


def test_skips_survive_a_resume_and_pauses_do_not(tmp_path: Path) -> None:
    wrote(tmp_path, ("skip", "A"), ("pause", "B"), ("pause", None), ("throttle", None))
    assert skipped_earlier(tmp_path) == {"A"}


def test_the_last_order_counts(tmp_path: Path) -> None:
    wrote(tmp_path, ("skip", "A"), ("skip", "B"), ("unskip", "A"), ("unskip", "C"), ("skip", "B"))
    assert skipped_earlier(tmp_path) == {"B"}


def test_a_journal_that_is_missing_torn_or_holds_other_entries_is_fine(tmp_path: Path) -> None:
    assert skipped_earlier(tmp_path) == set()
    wrote(tmp_path, ("skip", "A"))
    with (tmp_path / EVENTS).open("ab") as file:
        file.write(b'{"kind":"state","command":"skip","dataset":"Z"}\nbroken\n{"kind":"comm')
    assert skipped_earlier(tmp_path) == {"A"}
