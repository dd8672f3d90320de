"""The resume index changes nothing but time, whatever became of it or of the files beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_rows import bare_row

from engine.disk.index import INDEX, StaleIndexError, load_index, save_index
from engine.disk.jsonlines import dump_line
from engine.disk.ledger import ATTEMPTS, FAILURES, FILES, ROWS, SENT, Ledger
from engine.disk.lost import lost_of
from engine.disk.restore import Upkeep, fold_files, read_ledger
from engine.view.stats import Totals

AT = "2026-11-30T14:03:22.125Z"


def identifier(prompt: int, turn: int = 0) -> str:
    return f"D/{prompt:016x}.0#{turn}"


class Desk:
    """A dataset's files, appended to as a session does."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "D"
        self.folder.mkdir()

    def put(self, name: str, *records: Any) -> None:
        with (self.folder / name).open("ab") as file:
            file.writelines(map(dump_line, records))

    def sent(self, prompt: int, attempt: int = 1, **more: Any) -> None:
        self.put(SENT, {"id": identifier(prompt), "attempt": attempt, "at": AT, **more})

    def saved(self, prompt: int, attempt: int = 1, **more: Any) -> None:
        usage = {"completion_tokens": 10 + prompt, "cost": 0.25}
        row = bare_row(identifier(prompt), index=prompt, attempts=attempt, usage=usage) | more
        self.put(ROWS, row)

    def lost(self, prompt: int, attempt: int = 1, **more: Any) -> None:
        record = {"id": identifier(prompt), "attempt": attempt, "family": "deadline", "sent": True}
        self.put(ATTEMPTS, {**record, "started_at": AT, **more})

    def failed(self, prompt: int) -> None:
        self.put(FAILURES, {"id": identifier(prompt), "family": "moderation", "index": prompt})

    def step(self, kind: str, prompt: int) -> None:
        """One thing that a session does."""
        if kind == "odd":
            self.put(ROWS, {"a": 1})
            return
        ledger = fold_files(self.folder)
        attempt = ledger.attempt(identifier(prompt)) + 1
        if ledger.done(f"{prompt:016x}.0", 0):
            return
        self.sent(prompt, attempt, ignore=["x"] * (prompt % 2))
        if kind in {"row", "cut"}:
            self.saved(prompt, attempt, finish_reason="length" if kind == "cut" else "stop")
        elif kind in {"lost", "failed"}:
            self.lost(prompt, attempt, cost=0.5 if kind == "failed" else None)
        if kind == "failed":
            self.failed(prompt)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def facts(ledger: Ledger) -> dict[str, Any]:
    ledger.seal()
    found = {name: getattr(ledger, name) for name in Ledger.__dataclass_fields__}
    found.pop("remark")
    for name in ("generations", "prompts"):
        columns = found[name]
        found[name] = list(zip(columns.keys, columns.values, strict=True))
    found["latency"] = sorted(ledger.latency.buckets())
    lost = lost_of(ledger)
    return found | {"lost": (lost.open, lost.count, lost.unpriced_rows)}


def filled(desk: Desk, prompts: int = 40) -> None:
    for prompt in range(prompts):
        desk.step(("row", "lost", "cut", "open", "failed")[prompt % 5], prompt)


def test_what_an_index_holds_is_what_the_files_say(desk: Desk) -> None:
    filled(desk)
    plain = read_ledger(desk.folder, save_bytes=1 << 40)
    assert not (desk.folder / INDEX).exists()
    read_ledger(desk.folder, save_bytes=0)
    found = load_index(desk.folder)
    assert found is not None
    assert (found.rows, found.given_up) == (16, Ledger().given_up)  # failures are read anew
    assert facts(read_ledger(desk.folder)) == facts(plain)


STEPS = st.tuples(
    st.sampled_from(["row", "cut", "lost", "failed", "open", "odd"]), st.integers(0, 9)
)


@settings(deadline=None, max_examples=60)
@given(st.lists(STEPS, max_size=25), st.lists(st.integers(0, 25), max_size=4))
def test_wherever_it_was_saved_the_next_ledger_is_the_same(
    tmp_path_factory: Any, steps: list[tuple[str, int]], saves: list[int]
) -> None:
    desk = Desk(tmp_path_factory.mktemp("run"))
    for number, (kind, prompt) in enumerate(steps):
        if number in saves:
            read_ledger(desk.folder, save_bytes=0)
        desk.step(kind, prompt)
    with_index = facts(read_ledger(desk.folder))
    (desk.folder / INDEX).unlink(missing_ok=True)
    assert with_index == facts(read_ledger(desk.folder))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_damaged_index_is_made_anew(tmp_path_factory: Any, data: Any) -> None:
    desk = Desk(tmp_path_factory.mktemp("run"))
    filled(desk, 12)
    want = facts(read_ledger(desk.folder, save_bytes=0))
    path = desk.folder / INDEX
    whole = path.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    if data.draw(st.booleans()):
        path.write_bytes(whole[:place])
    else:
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
    ledger = read_ledger(desk.folder)
    assert "made anew from 5 rows" in ledger.remark
    assert facts(ledger) == want
    assert read_ledger(desk.folder).remark == ""


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda rows: rows[:-1], "rows.jsonl is shorter than it was"),
        (
            lambda rows: [*rows[:-1], dump_line({"other": 1}), *rows[:1] * 9],
            "rows.jsonl has changed",
        ),
        (lambda rows: [*rows[1:], *rows[:9]], "rows.jsonl has changed"),
        (lambda rows: [*rows[1:3], rows[0], *rows[3:]], "rows.jsonl has changed"),
    ],
)
def test_rows_that_were_edited_are_read_anew(desk: Desk, change: Any, says: str) -> None:
    """In the last case the file's size and its last 4 KB are what they were."""
    for prompt in range(60):
        desk.saved(prompt)
    read_ledger(desk.folder, save_bytes=0)
    path = desk.folder / ROWS
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    ledger = read_ledger(desk.folder)
    assert says in ledger.remark
    (desk.folder / INDEX).unlink()
    assert facts(ledger) == facts(read_ledger(desk.folder))


def test_one_row_that_was_erased_in_place_is_noticed(desk: Desk) -> None:
    """Neither the size, nor the tail, nor a sampled row tells."""
    for prompt in range(400):
        desk.saved(prompt)
    read_ledger(desk.folder, save_bytes=0)
    assert read_ledger(desk.folder).remark == ""
    path = desk.folder / ROWS
    before = path.stat()
    lines = path.read_bytes().splitlines(keepends=True)
    lines[171] = b" " * (len(lines[171]) - 1) + b"\n"
    path.write_bytes(b"".join(lines))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    ledger = read_ledger(desk.folder)
    assert "rows.jsonl has changed" in ledger.remark
    assert ledger.rows == 399


@pytest.mark.parametrize("name", [ROWS, SENT, ATTEMPTS])
def test_a_file_that_vanished_takes_what_it_said_with_it(desk: Desk, name: str) -> None:
    filled(desk)
    read_ledger(desk.folder, save_bytes=0)
    (desk.folder / name).unlink()
    ledger = read_ledger(desk.folder)
    assert f"{name} is shorter than it was" in ledger.remark
    (desk.folder / INDEX).unlink()
    assert facts(ledger) == facts(read_ledger(desk.folder))


def test_a_torn_tail_is_moved_aside_and_the_index_holds(desk: Desk) -> None:
    filled(desk)
    read_ledger(desk.folder, save_bytes=0)
    desk.saved(99)
    with (desk.folder / ROWS).open("ab") as file:
        file.write(b'{"id":"D/0000')
    ledger = read_ledger(desk.folder)
    assert (ledger.torn, ledger.remark, ledger.rows) == (1, "", 17)


def test_torn_tails_of_every_file_are_moved_aside(desk: Desk) -> None:
    filled(desk)
    read_ledger(desk.folder, save_bytes=0)
    for name in FILES:
        with (desk.folder / name).open("ab") as file:
            file.write(b'{"id":"D/0000')
    ledger = read_ledger(desk.folder)
    assert (ledger.torn, ledger.rows) == (4, 16)


def test_a_folder_that_cannot_be_written_costs_only_time(desk: Desk) -> None:
    filled(desk)
    (desk.folder / INDEX).mkdir()
    assert read_ledger(desk.folder, save_bytes=0).rows == 16


def test_an_index_of_another_version_is_stale(desk: Desk) -> None:
    filled(desk)
    ledger = read_ledger(desk.folder)
    save_index(desk.folder, ledger)
    path = desk.folder / INDEX
    path.write_bytes(path.read_bytes().replace(b"index 1\n", b"index 0\n", 1))
    with pytest.raises(StaleIndexError, match="another version"):
        load_index(desk.folder)


def test_a_live_run_keeps_its_index_young(desk: Desk) -> None:
    for prompt in range(5):
        desk.saved(prompt)
    upkeep = Upkeep(desk.folder, read_ledger(desk.folder), least=1000)
    upkeep.see(0, None, skimming=False)
    assert not (desk.folder / INDEX).exists()
    for prompt in range(5, 10):
        desk.saved(prompt)
    desk.sent(11)
    with (desk.folder / ROWS).open("ab") as file:
        file.write(b'{"id":"D/half a line')
    upkeep.see(0, None, skimming=False)
    found = load_index(desk.folder)
    assert found is not None
    assert (found.rows, [r["id"] for r in found.unknown]) == (10, [identifier(11)])
    assert (desk.folder / ROWS).read_bytes().endswith(b"half a line")


def test_a_live_run_does_not_make_a_stale_index_anew(desk: Desk) -> None:
    for prompt in range(9):
        desk.saved(prompt)
    (desk.folder / INDEX).write_bytes(b"?")
    upkeep = Upkeep(desk.folder, Ledger(), least=1000)
    upkeep.see(0, None, skimming=False)
    assert (desk.folder / INDEX).read_bytes() == b"?"
    assert "made anew" in read_ledger(desk.folder).remark


def test_totals_are_restored_alike(desk: Desk) -> None:
    filled(desk)
    plain, indexed = Totals(), Totals()
    plain.restore(read_ledger(desk.folder, save_bytes=0))
    indexed.restore(read_ledger(desk.folder))
    assert plain == indexed
