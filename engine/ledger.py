"""What an earlier session left on disk: which generations exist, failed, or have no known end."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from engine.families import FAMILIES
from engine.glimpse import FAILURES_KEPT, bucket
from engine.jsonlines import load_line, read_lines, repair_tail
from engine.series import Quantiles
from engine.snapshot import FailureLine

ROWS, SENT, FAILURES, ATTEMPTS = "rows.jsonl", "sent.jsonl", "failures.jsonl", "attempts.jsonl"


@dataclass(slots=True)
class Ledger:
    """One dataset's files, folded. Keys are `hash16.occurrence`, ids are rows' ids."""

    turns: dict[str, int] = field(default_factory=dict)
    """Per key a bit mask of the turns that have a row."""
    cut: set[str] = field(default_factory=set)
    """Keys whose conversation ended on a row cut by length."""
    offsets: dict[str, int] = field(default_factory=dict)
    """Per id the row's byte offset in rows.jsonl."""
    failed: dict[str, str] = field(default_factory=dict)
    """Per key the family of a prompt that was given up; a row of the same turn supersedes it."""
    invalid: set[tuple[int, str]] = field(default_factory=set)
    """(index, message) of unreadable source rows that are already recorded."""
    unknown: list[dict[str, Any]] = field(default_factory=list)
    """sent.jsonl records without a row or an attempt: what a kill left open."""
    attempts: dict[str, int] = field(default_factory=dict)
    """Per id the highest attempt number that was ever sent."""
    torn: int = 0
    rows: int = 0
    doubled: int = 0
    completion_tokens: int = 0
    exportable_tokens: int = 0
    cost_usd: float = 0.0
    costs_known: int = 0
    costs_unknown: int = 0
    attempt_errors: int = 0
    latency: Quantiles = field(default_factory=Quantiles)
    exactness: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    finish_reasons: Counter[str] = field(default_factory=Counter)
    given_up: deque[FailureLine] = field(default_factory=lambda: deque(maxlen=FAILURES_KEPT))
    """The newest prompts given up; a row of the same turn supersedes its failure."""

    def done(self, key: str, turn: int) -> bool:
        """Whether this generation has its row."""
        return bool(self.turns.get(key, 0) >> turn & 1)


def read_ledger(folder: Path) -> Ledger:
    """Repair torn tails, then fold one dataset's files."""
    torn = sum(bool(repair_tail(folder / name)) for name in (ROWS, SENT, FAILURES, ATTEMPTS))
    ledger = fold_files(folder)
    ledger.torn = torn
    return ledger


def fold_files(folder: Path) -> Ledger:
    """Fold one dataset's files as they stand; safe while the sink writes to them."""
    ledger = Ledger()
    settled: set[tuple[str, int]] = set()
    for offset, row in read_lines(folder / ROWS):
        fold_row(ledger, row, offset)
        settled.add((row["id"], row.get("attempts") or 1))
    for _, attempt in read_lines(folder / ATTEMPTS):
        fold_attempt(ledger, attempt)
        settled.add((attempt["id"], attempt["attempt"]))
    for _, failure in read_lines(folder / FAILURES):
        fold_failure(ledger, failure)
    _fold_sent(ledger, (record for _, record in read_lines(folder / SENT)), settled)
    return ledger


def fold_row(ledger: Ledger, row: dict[str, Any], offset: int) -> None:
    """Count one row; a second row of the same id is counted as doubled and otherwise ignored."""
    key, turn = split_id(row["id"])
    if ledger.done(key, turn):
        ledger.doubled += 1
        return
    ledger.turns[key] = ledger.turns.get(key, 0) | 1 << turn
    ledger.offsets[row["id"]] = offset
    if row.get("finish_reason") == "length":
        ledger.cut.add(key)
    usage = row.get("usage") or {}
    ledger.rows += 1
    tokens = usage.get("completion_tokens") or 0
    ledger.completion_tokens += tokens
    if usage.get("completion_tokens") is not None:
        ledger.lengths[bucket(tokens)] += 1
    ledger.finish_reasons[str(row.get("finish_reason"))] += 1
    _fold_cost(ledger, usage.get("cost"))
    ledger.latency.add(row.get("latency_s") or 0.0)
    ledger.exactness[row.get("exactness") or "unverified"] += 1
    ledger.flags.update(row.get("flags") or ())
    if row.get("exactness") in {"engine", "matched"} and not row.get("flags"):
        ledger.exportable_tokens += tokens


def fold_attempt(ledger: Ledger, attempt: dict[str, Any]) -> None:
    """Count one attempt that did not become a row."""
    family = FAMILIES.get(str(attempt.get("family")))
    if family is None or family.counts:
        ledger.attempt_errors += 1
    if attempt.get("cost") is not None or attempt.get("sent"):
        _fold_cost(ledger, attempt.get("cost"))
    _count_attempt(ledger, attempt)


def fold_failure(ledger: Ledger, failure: dict[str, Any]) -> None:
    """Note a prompt that was given up, or an unreadable source row; rows must be folded before."""
    if failure.get("id") is None:
        ledger.invalid.add((failure["index"], failure["message"]))
        return
    key, turn = split_id(failure["id"])
    if not ledger.done(key, turn):
        ledger.failed[key] = failure["family"]
        ledger.given_up.append(_failure_line(failure))


def _failure_line(failure: dict[str, Any]) -> FailureLine:
    message, attempts = str(failure.get("message") or ""), failure.get("attempts") or 0
    at = datetime.fromisoformat(failure["at"]).timestamp() if failure.get("at") else 0.0
    return FailureLine(failure["id"], at, failure["family"], message, attempts)


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


def _fold_cost(ledger: Ledger, cost: float | None) -> None:
    if cost is None:
        ledger.costs_unknown += 1
    else:
        ledger.cost_usd += cost
        ledger.costs_known += 1


def _fold_sent(
    ledger: Ledger, records: Iterator[dict[str, Any]], settled: set[tuple[str, int]]
) -> None:
    for record in records:
        _count_attempt(ledger, record)
        if (record["id"], record["attempt"]) not in settled:
            ledger.unknown.append(record)


def _count_attempt(ledger: Ledger, record: dict[str, Any]) -> None:
    """Attempt numbers never repeat, even where power loss took lines of sent.jsonl."""
    identifier, attempt = record["id"], record["attempt"]
    if attempt > ledger.attempts.get(identifier, 0):
        ledger.attempts[identifier] = attempt
