"""What earlier sessions left on disk: folded in any order, whole at every point of truncation."""

from __future__ import annotations

from array import array
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_rows import bare_row

from engine.disk.jsonlines import dump_line, read_lines
from engine.disk.ledger import (
    ATTEMPTS,
    FAILURES,
    ROWS,
    SENT,
    Ledger,
    fold_attempt,
    fold_failure,
    fold_row,
    fold_sent,
    read_rows_at,
    settle,
    split_id,
)
from engine.disk.restore import read_ledger
from engine.faults.families import FAMILIES
from engine.view.stats import Totals

FILES = (ROWS, SENT, FAILURES, ATTEMPTS)


def identifier(prompt: int, turn: int = 0) -> str:
    return f"D/{prompt:016x}.0#{turn}"


def row(prompt: int, turn: int = 0, *, attempts: int = 1, **more: Any) -> dict[str, Any]:
    usage = {"completion_tokens": 10 + prompt, "cost": (prompt + 1) / 1024}
    given = {"exactness": "matched", "latency_s": 1.5, "usage": usage, **more}
    content = f"ä{prompt}.{turn}"
    return bare_row(identifier(prompt, turn), content=content, attempts=attempts, **given)


def attempt(prompt: int, turn: int = 0, *, number: int = 1, **more: Any) -> dict[str, Any]:
    return {
        "id": identifier(prompt, turn),
        "attempt": number,
        "family": "rate_limit",
        "cost": None,
        "sent": True,
        **more,
    }


def sent(prompt: int, turn: int = 0, *, number: int = 1) -> dict[str, Any]:
    return {"id": identifier(prompt, turn), "attempt": number, "at": "2026-11-30T14:03:22.125Z"}


def failure(prompt: int, turn: int = 0, family: str = "bad_request") -> dict[str, Any]:
    return {"id": identifier(prompt, turn), "family": family, "message": "no", "index": prompt}


def invalid(index: int) -> dict[str, Any]:
    message = f"line {index}: broken"
    return {"id": None, "family": "invalid_row", "message": message, "index": index}


def write(folder: Path, files: dict[str, list[dict[str, Any]]]) -> None:
    folder.mkdir(exist_ok=True)
    for name, records in files.items():
        (folder / name).write_bytes(b"".join(map(dump_line, records)))


def facts(ledger: Ledger) -> dict[str, Any]:
    """Everything of a ledger that must not depend on the order of lines."""
    ledger.seal()
    fields = {name: getattr(ledger, name) for name in Ledger.__dataclass_fields__}
    fields.pop("positions")
    fields["generations"] = ledger.generations.keys  # where they stand depends on the order
    fields["prompts"] = ledger.prompts.keys, ledger.prompts.values
    fields["latency"] = sorted(ledger.latency.buckets())
    fields["unknown"] = sorted((r["id"], r["attempt"]) for r in ledger.unknown)
    return fields


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A dataset's folder: it bears the dataset's name."""
    return tmp_path / "D"


HISTORY: dict[str, list[dict[str, Any]]] = {
    # 0: one turn; 1: two turns, retried; 2: cut by length; 3: given up; 4: failed, then answered;
    # 5: in flight at the kill, second attempt; 6: an unreadable row; 7: cancelled
    SENT: [
        sent(0),
        sent(1),
        sent(1, number=2),
        sent(1, 1),
        sent(2),
        sent(3),
        sent(4),
        sent(4, number=2),
        sent(5),
        sent(5, number=2),
        sent(7),
    ],
    ROWS: [
        row(0),
        row(1, attempts=2),
        row(2, finish_reason="length", flags=["truncated"]),
        row(1, 1, exactness="mismatch"),
        row(4, attempts=2),
    ],
    ATTEMPTS: [
        attempt(1),
        attempt(3, family="bad_request", cost=0.0),
        attempt(4, cost=0.25),
        attempt(5, sent=False, cost=0.0),
        attempt(7, family="cancelled"),
    ],
    FAILURES: [failure(3), failure(4), invalid(6)],
}


def test_files_are_folded_to_what_a_resume_needs(folder: Path) -> None:
    write(folder, HISTORY)
    ledger = read_ledger(folder)
    key = {number: f"{number:016x}.0" for number in range(8)}
    done = {(n, turn) for n in key for turn in range(3) if ledger.done(key[n], turn)}
    assert done == {(0, 0), (1, 0), (1, 1), (2, 0), (4, 0)}
    assert {n for n in key if ledger.known(key[n])} == {0, 1, 2, 4}
    assert len(ledger.prompts) + len(ledger.new_prompts) == 4
    assert {n for n in key if ledger.cut(key[n])} == {2}
    assert ledger.failed == {key[3]: "bad_request"}
    assert ledger.invalid == {(6, "line 6: broken")}
    assert [(r["id"], r["attempt"]) for r in ledger.unknown] == [(identifier(5), 2)]
    assert {n: ledger.attempt(identifier(n)) for n in (3, 5, 7)} == {3: 1, 5: 2, 7: 1}
    assert (ledger.rows, ledger.doubled, ledger.torn) == (5, 0, 0)
    assert ledger.completion_tokens == 10 + 11 + 12 + 11 + 14
    assert ledger.exportable_tokens == 10 + 11 + 14
    assert ledger.exactness == Counter(matched=4, mismatch=1)
    assert ledger.flags == Counter(truncated=1)
    assert ledger.cost_usd == (1 + 2 + 3 + 2 + 5) / 1024 + 0.25
    assert ledger.attempt_errors == 4
    assert ledger.costs_unknown == 2


def test_an_empty_or_missing_folder_is_an_empty_ledger(folder: Path) -> None:
    assert facts(read_ledger(folder)) == facts(Ledger())


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_restored_error_count_is_the_live_one(family: str) -> None:
    ledger = Ledger()
    fold_attempt(ledger, attempt(1, family=family))
    assert ledger.attempt_errors == int(FAMILIES[family].counts)


def test_unknown_stays_unknown_and_is_never_zero(folder: Path) -> None:
    ledger = Ledger()
    fold_row(ledger, row(1, usage={"completion_tokens": None, "cost": None}), 0)
    totals = Totals()
    totals.restore(ledger)
    assert (ledger.costs_known, ledger.costs_unknown) == (0, 1)
    assert totals.cost is None
    write(folder, {ROWS: [row(1, usage={}, attempts=None)]})
    assert read_ledger(folder).costs_unknown == 1


def test_a_failure_is_superseded_by_a_row_and_by_a_later_failure() -> None:
    ledger = Ledger()
    fold_row(ledger, row(4), 0)
    fold_failure(ledger, failure(4))
    assert ledger.failed == {}
    fold_failure(ledger, failure(4, 1, "bad_request"))
    fold_failure(ledger, failure(4, 1, "moderation"))
    assert ledger.failed == {f"{4:016x}.0": "moderation"}


def test_attempt_numbers_go_on_even_where_power_loss_took_lines_of_what_was_sent(
    folder: Path,
) -> None:
    write(folder, {SENT: [sent(1)], ATTEMPTS: [attempt(1), attempt(1, number=2)]})
    assert read_ledger(folder).attempt(identifier(1)) == 2


def test_a_doubled_row_is_counted_once_and_told(folder: Path) -> None:
    write(folder, {ROWS: [row(1), row(2), row(1)]})
    ledger = read_ledger(folder)
    assert (ledger.rows, ledger.doubled, ledger.completion_tokens) == (2, 1, 11 + 12)
    assert ledger.offset(identifier(1)) == 0


def test_our_own_earlier_answers_are_found_by_their_offsets(folder: Path) -> None:
    write(folder, HISTORY)
    ledger = read_ledger(folder)
    offsets = [ledger.offset(identifier(1, turn)) for turn in (0, 1)]
    assert [found["content"] for found in read_rows_at(folder, offsets)] == ["ä1.0", "ä1.1"]
    with pytest.raises(KeyError):
        ledger.offset(identifier(1, 2))


def test_ids_are_split_at_their_ends() -> None:
    assert split_id("a/b#c/0123456789abcdef.12#34") == ("0123456789abcdef.12", 34)


@settings(deadline=None)
@given(st.permutations(HISTORY[ROWS]), st.permutations(HISTORY[ATTEMPTS]))
def test_the_fold_does_not_depend_on_the_order_of_completion(
    rows: list[dict[str, Any]], attempts: list[dict[str, Any]]
) -> None:
    mixed, plain = Ledger(), Ledger()
    for ledger, ours, theirs in (
        (mixed, rows, attempts),
        (plain, HISTORY[ROWS], HISTORY[ATTEMPTS]),
    ):
        for offset, record in enumerate(ours):
            fold_row(ledger, record, offset)
        for record in theirs:
            fold_attempt(ledger, record)
        for record in HISTORY[FAILURES]:
            fold_failure(ledger, record)
    assert facts(mixed) == facts(plain)


# --- truncation -------------------------------------------------------------------------------


def expected(kept: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """The facts of whole lines, folded by hand."""
    ledger = Ledger()
    settled = array("Q", (fold_row(ledger, record, 0) for record in kept[ROWS]))
    settled.extend(fold_attempt(ledger, record) for record in kept[ATTEMPTS])
    for record in kept[FAILURES]:
        fold_failure(ledger, record)
    for record in kept[SENT]:
        fold_sent(ledger, record)
    settle(ledger, kept[SENT], settled)
    want = {(r["id"], r["attempts"]) for r in kept[ROWS]}
    want |= {(r["id"], r["attempt"]) for r in kept[ATTEMPTS]}
    assert ledger.unknown == [r for r in kept[SENT] if (r["id"], r["attempt"]) not in want]
    return facts(ledger)


@pytest.mark.parametrize("name", FILES)
def test_at_every_point_of_truncation_whole_lines_stay_and_the_torn_one_lies_aside(
    folder: Path, name: str
) -> None:
    write(folder, HISTORY)
    path, aside = folder / name, folder / f"{name}.torn"
    data = path.read_bytes()
    ends = [0]
    for record in HISTORY[name]:
        ends.append(ends[-1] + len(dump_line(record)))
    for cut in range(len(data) + 1):
        aside.unlink(missing_ok=True)
        path.write_bytes(data[:cut])
        count = sum(end <= cut + 1 for end in ends[1:])  # a line may lack its newline
        torn = data[ends[count] : cut]
        want = expected({**HISTORY, name: HISTORY[name][:count]}) | {"torn": int(bool(torn))}
        assert facts(read_ledger(folder)) == want
        assert path.read_bytes() == data[: ends[count]]
        assert (aside.read_bytes() if torn else b"\n") == torn + b"\n"
        assert aside.exists() == bool(torn)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_run_that_is_killed_again_and_again_neither_loses_nor_doubles(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    """Each session asks what is undone; a kill truncates the unsynced tail of any file."""
    folder = tmp_path_factory.mktemp("killed") / "D"
    folder.mkdir()
    prompts = range(6)
    for _ in range(data.draw(st.integers(1, 4))):
        ledger = read_ledger(folder)
        before = {name: (folder / name).read_bytes() for name in FILES if (folder / name).exists()}
        session = Session(folder, ledger)
        for prompt in prompts:
            if not ledger.done(f"{prompt:016x}.0", 0):
                session.ask(prompt, data.draw(st.sampled_from(["row", "fault", "open"])))
        for name in FILES:
            path = folder / name
            if path.exists():  # what an earlier session saw on disk had been synced by then
                least = len(before.get(name, b""))
                path.write_bytes(
                    path.read_bytes()[: data.draw(st.integers(least, path.stat().st_size))]
                )
    ledger = read_ledger(folder)
    ids = [r["id"] for r in records(folder / ROWS)]
    assert len(ids) == len(set(ids)) == ledger.rows
    assert ledger.doubled == 0
    numbers = [(r["id"], r["attempt"]) for r in records(folder / SENT)]
    assert len(numbers) == len(set(numbers))
    assert set(numbers) <= (
        {(r["id"], r["attempts"]) for r in records(folder / ROWS)}
        | {(r["id"], r["attempt"]) for r in records(folder / ATTEMPTS)}
        | {(r["id"], r["attempt"]) for r in ledger.unknown}
    )


class Session:
    """Writes what a session writes, in its order: sent first, then the outcome."""

    def __init__(self, folder: Path, ledger: Ledger) -> None:
        self._folder = folder
        self._ledger = ledger
        for record in ledger.unknown:
            number = record["attempt"]
            self._append(ATTEMPTS, {**record, "family": "unknown", "attempt": number, "sent": True})

    def ask(self, prompt: int, outcome: str) -> None:
        number = self._ledger.attempt(identifier(prompt)) + 1
        self._append(SENT, sent(prompt, number=number))
        if outcome == "row":
            self._append(ROWS, row(prompt, attempts=number))
        elif outcome == "fault":
            self._append(ATTEMPTS, attempt(prompt, number=number))

    def _append(self, name: str, record: dict[str, Any]) -> None:
        with (self._folder / name).open("ab") as file:
            file.write(dump_line(record))


def records(path: Path) -> list[dict[str, Any]]:
    return [record for _, record in read_lines(path)]
