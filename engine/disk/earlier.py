"""Failed attempts of earlier sessions, as the error verdict needs them, from a dataset's files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import IO, Any

from engine.disk.entries import PROBLEMS, moment
from engine.disk.jsonlines import Position, load_line, read_on
from engine.disk.ledger import ATTEMPTS, ROWS, Ledger, split_id
from engine.faults.families import FAMILIES
from engine.verdicts.burst import EarlierFaults, Fate

MOST_PROMPTS = 65_536
"""Prompts told apart in one dataset; beyond, the numbers of prompts are lower bounds."""


def read_earlier(folder: Path, ledger: Ledger, *, retry_failed: bool) -> list[EarlierFaults]:
    """Read attempts.jsonl once; `ledger` is that of the same files.

    `retry_failed`: prompts that were given up are asked again in this session.
    """
    found: dict[tuple[str, str | None], EarlierFaults] = {}
    room = MOST_PROMPTS
    problem = partial(PROBLEMS[ATTEMPTS], dataset=folder.name)
    for _, attempt in read_on(folder / ATTEMPTS, Position(), problem):
        family = FAMILIES.get(attempt["family"])
        untimed = attempt.get("started_at") is None
        if untimed or (family is not None and not family.counts):
            continue
        faults = _noted(found, attempt, _ended_at(attempt))
        key, turn = split_id(attempt["id"])
        if key in faults.fates or room > 0:
            room -= key not in faults.fates
            faults.fates[key] = _fate(ledger, key, turn, retry_failed=retry_failed)
        else:
            faults.untracked = True
    _count_served(folder, ledger, found.values())
    return list(found.values())


def _noted(
    found: dict[tuple[str, str | None], EarlierFaults], attempt: dict[str, Any], at: float
) -> EarlierFaults:
    name, provider = attempt["family"], attempt.get("provider")
    faults = found.get((name, provider))
    if faults is None:
        family = FAMILIES.get(name)
        retry = family is None or family.retry
        scope = str(attempt.get("scope") or "attempt")
        faults = found[name, provider] = EarlierFaults(name, provider, scope, retry, at, at)
    faults.count += 1
    faults.first_at, faults.last_at = min(faults.first_at, at), max(faults.last_at, at)
    return faults


def _fate(ledger: Ledger, key: str, turn: int, *, retry_failed: bool) -> Fate:
    if ledger.done(key, turn):
        return "healed"
    return "given_up" if key in ledger.failed and not retry_failed else "waiting"


def _ended_at(record: dict[str, Any]) -> float:
    return moment(record["started_at"]) + float(record.get("latency_s") or 0.0)


def _count_served(folder: Path, ledger: Ledger, found: Iterable[EarlierFaults]) -> None:
    """Rows lie in the order of their ends, so that a moment is a place in the file."""
    path = folder / ROWS
    if not ledger.rows or not path.is_file():
        return
    offsets = sorted([*ledger.generations.values, *ledger.new_generations.values()])
    slow = ledger.latency.quantile(0.99) or 0.0
    with path.open("rb") as file:
        ended_by = partial(bisect_right, offsets, key=partial(_row_ended_at, file))
        for faults in found:
            last = ended_by(faults.last_at)
            faults.served_within = max(0, last - ended_by(faults.first_at))
            # what ended later than a slow reply takes was surely started after the failure
            faults.served_after = len(offsets) - ended_by(faults.last_at + slow)


def _row_ended_at(file: IO[bytes], offset: int) -> float:
    file.seek(offset)
    try:
        return _ended_at(load_line(file.readline()))
    except (KeyError, TypeError, ValueError):
        return 0.0  # a row is kept whatever its times are; here one moment less is known
