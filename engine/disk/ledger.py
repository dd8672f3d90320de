"""What earlier sessions left on disk, folded: which generations exist, failed, or were only asked.

A million rows are kept as sorted columns of numbers; by name is known only what is unfinished.
"""

from __future__ import annotations

from array import array
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.disk.entries import moment
from engine.disk.jsonlines import Position, load_line
from engine.disk.keytable import Columns, generation_number, prompt_number, request_number
from engine.disk.mark import Mark
from engine.faults.families import FAMILIES
from engine.money.resend import may_be_billed
from engine.view.glimpse import FAILURES_KEPT, bucket
from engine.view.series import Quantiles
from engine.view.snapshot import FailureLine

ROWS, SENT, FAILURES, ATTEMPTS = "rows.jsonl", "sent.jsonl", "failures.jsonl", "attempts.jsonl"
FILES = (ROWS, SENT, FAILURES, ATTEMPTS)
_SEAL_AFTER = 1 << 15
_CUT = 1


@dataclass(slots=True)
class Open:
    """A generation that was asked for and has no row."""

    attempt: int = 0
    """The highest number of an attempt that was ever sent."""
    billed: int = 0
    """Attempts that may have been billed without our seeing their replies."""
    at: str = ""
    """When the last of these was sent, ISO 8601."""
    ignore: list[str] = field(default_factory=list)
    """Slugs of the hosts that the last request asked the router to leave out."""


@dataclass(slots=True)
class Ledger:
    """One dataset's files, folded. Keys are `hash16.occurrence`, ids are rows' ids."""

    generations: Columns = field(default_factory=lambda: Columns("Q"))
    """Per turn that has a row the row's byte offset in rows.jsonl."""
    prompts: Columns = field(default_factory=lambda: Columns("B"))
    """Per prompt that has a row whether its conversation ended on one cut by length."""
    new_generations: dict[int, int] = field(default_factory=dict)
    new_prompts: dict[int, int] = field(default_factory=dict)
    """What was folded since the last `seal`."""
    open: dict[str, Open] = field(default_factory=dict)
    """Per id of a generation without a row that was asked for."""
    failed: dict[str, str] = field(default_factory=dict)
    """Per key the family of a prompt that was given up; a row of the same turn supersedes it."""
    invalid: set[tuple[int, str]] = field(default_factory=set)
    """(index, message) of unreadable source rows that are already recorded."""
    unknown: list[dict[str, Any]] = field(default_factory=list)
    """sent.jsonl records without a row or an attempt: what a kill left open."""
    positions: dict[str, Position] = field(default_factory=dict)
    """Per file how far it is folded."""
    torn: int = 0
    rows: int = 0
    doubled: int = 0
    completion_tokens: int = 0
    exportable_tokens: int = 0
    cost_usd: float = 0.0
    costs_known: int = 0
    costs_unknown: int = 0
    unpriced: int = 0
    """Rows whose cost nobody told."""
    billed_unseen: int = 0
    """Attempts that may have been billed unseen, of generations with a row too."""
    attempt_errors: int = 0
    latency: Quantiles = field(default_factory=Quantiles)
    exactness: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    finish_reasons: Counter[str] = field(default_factory=Counter)
    given_up: deque[FailureLine] = field(default_factory=lambda: deque(maxlen=FAILURES_KEPT))
    """The newest prompts given up; a row of the same turn supersedes its failure."""
    mark: Mark | None = None
    """How far the source was read, of which these rows are."""
    remark: str = ""
    """What is to be said of how it was read: an index that had to be made anew."""

    def done(self, key: str, turn: int) -> bool:
        """Whether this generation has its row."""
        return self.place(generation_number(prompt_number(key), turn)) is not None

    def offset(self, identifier: str) -> int:
        """Where a row begins in rows.jsonl, in bytes; KeyError where there is none."""
        key, turn = split_id(identifier)
        place = self.place(generation_number(prompt_number(key), turn))
        if place is None:
            raise KeyError(identifier)
        return place

    def known(self, key: str) -> bool:
        """Whether the prompt has a row, of whatever turn."""
        return self._flags(prompt_number(key)) is not None

    def cut(self, key: str) -> bool:
        """Whether the prompt's conversation ended on a row cut by length."""
        return self._flags(prompt_number(key)) == _CUT

    def attempt(self, identifier: str) -> int:
        """The highest attempt number that was ever sent for a generation without a row."""
        found = self.open.get(identifier)
        return 0 if found is None else found.attempt

    def add(self, prompt: int, generation: int, offset: int, *, cut: bool) -> None:
        """Take in a generation's row."""
        self.new_generations[generation] = offset
        flags = self._flags(prompt)
        if flags is None:
            self.new_prompts[prompt] = _CUT * cut
        elif cut and not flags:
            self._set_cut(prompt)
        if len(self.new_generations) >= _SEAL_AFTER:
            self.seal()

    def seal(self) -> None:
        """Move what is new into the columns."""
        self.generations.merge(self.new_generations)
        self.prompts.merge(self.new_prompts)
        self.new_generations, self.new_prompts = {}, {}

    def _set_cut(self, prompt: int) -> None:
        if prompt in self.new_prompts:
            self.new_prompts[prompt] = _CUT
        else:
            self.prompts.values[self.prompts.find(prompt)] = _CUT

    def place(self, generation: int) -> int | None:
        """The byte offset of a generation's row in rows.jsonl; None where it has none."""
        offset = self.new_generations.get(generation)
        if offset is None and (place := self.generations.find(generation)) >= 0:
            return self.generations.values[place]
        return offset

    def _flags(self, prompt: int) -> int | None:
        flags = self.new_prompts.get(prompt)
        if flags is None and (place := self.prompts.find(prompt)) >= 0:
            return self.prompts.values[place]
        return flags


def fold_row(ledger: Ledger, row: dict[str, Any], offset: int) -> int:
    """Count one row that `row_problem` let in; returns its request's number.

    A second row of the same id is counted as doubled and otherwise ignored.
    """
    key, turn = split_id(row["id"])
    prompt = prompt_number(key)
    generation = generation_number(prompt, turn)
    request = request_number(generation, row.get("attempts") or 1)
    if ledger.place(generation) is not None:
        ledger.doubled += 1
        return request
    ledger.add(prompt, generation, offset, cut=row["finish_reason"] == "length")
    ledger.open.pop(row["id"], None)
    _count_row(ledger, row)
    return request


def _count_row(ledger: Ledger, row: dict[str, Any]) -> None:
    usage = row["usage"]
    counted = usage.get("completion_tokens")
    tokens = counted or 0
    ledger.rows += 1
    ledger.completion_tokens += tokens
    if counted is not None:
        ledger.lengths[bucket(tokens)] += 1
    ledger.finish_reasons[row["finish_reason"]] += 1
    cost = usage.get("cost")
    ledger.unpriced += cost is None
    _fold_cost(ledger, cost)
    ledger.latency.add(row.get("latency_s") or 0.0)
    ledger.exactness[row["exactness"]] += 1
    ledger.flags.update(row["flags"])
    if row["exactness"] in {"engine", "matched"} and not row["flags"]:
        ledger.exportable_tokens += tokens


def fold_attempt(ledger: Ledger, attempt: dict[str, Any]) -> int:
    """Count one attempt that did not become a row; rows must be folded before.

    Returns its request's number.
    """
    family = FAMILIES.get(attempt["family"])
    if family is None or family.counts:
        ledger.attempt_errors += 1
    sent, cost = bool(attempt.get("sent")), attempt.get("cost")
    if cost is not None or sent:
        _fold_cost(ledger, cost)
    found = _asked(ledger, attempt)
    if may_be_billed(attempt.get("status"), cost, sent=sent):
        ledger.billed_unseen += 1
        if found is not None:
            found.billed += 1
            found.at = max(found.at, attempt.get("started_at") or "")
    return number_of(attempt)


def fold_sent(ledger: Ledger, record: dict[str, Any]) -> None:
    """Note how a generation without a row was asked last; rows must be folded before."""
    found = _asked(ledger, record)
    if found is not None:
        found.ignore = list(record.get("ignore") or ())


def fold_failure(ledger: Ledger, failure: dict[str, Any]) -> None:
    """Note a prompt that was given up, or an unreadable source row; rows must be folded before."""
    if failure.get("id") is None:
        ledger.invalid.add((failure["index"], failure["message"]))
        return
    key, turn = split_id(failure["id"])
    if not ledger.done(key, turn):
        ledger.failed[key] = failure["family"]
        ledger.given_up.append(_failure_line(failure))


def settle(ledger: Ledger, sent: Iterable[dict[str, Any]], settled: array[int]) -> None:
    """Keep those of the sent records whose request has neither become a row nor an attempt."""
    outcomes = Columns("B")
    outcomes.keys = array("Q", sorted(settled))
    ledger.unknown = [r for r in sent if outcomes.find(number_of(r)) < 0]


def number_of(record: dict[str, Any]) -> int:
    """The number of the request that a record of sent.jsonl or attempts.jsonl is of."""
    key, turn = split_id(record["id"])
    return request_number(generation_number(prompt_number(key), turn), record["attempt"])


def split_id(identifier: str) -> tuple[str, int]:
    """`B6/0123456789abcdef.0#1` into (`0123456789abcdef.0`, 1)."""
    key, _, turn = identifier.rpartition("/")[2].partition("#")
    return key, int(turn)


def read_rows_at(folder: Path, offsets: list[int]) -> Iterator[dict[str, Any]]:
    """The rows at these byte offsets: our own earlier answers of a conversation."""
    with (folder / ROWS).open("rb") as file:
        for offset in offsets:
            file.seek(offset)
            yield load_line(file.readline())


def _asked(ledger: Ledger, record: dict[str, Any]) -> Open | None:
    """Attempt numbers never repeat, even where power loss took lines of sent.jsonl."""
    identifier, attempt = record["id"], record["attempt"]
    if ledger.done(*split_id(identifier)):
        return None
    found = ledger.open.setdefault(identifier, Open())
    found.attempt = max(found.attempt, attempt)
    return found


def _failure_line(failure: dict[str, Any]) -> FailureLine:
    message, attempts = failure.get("message") or "", failure.get("attempts") or 0
    at = moment(failure["at"]) if failure.get("at") else 0.0
    return FailureLine(failure["id"], at, failure["family"], message, attempts)


def _fold_cost(ledger: Ledger, cost: float | None) -> None:
    if cost is None:
        ledger.costs_unknown += 1
    else:
        ledger.cost_usd += cost
        ledger.costs_known += 1
