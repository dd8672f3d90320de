"""What earlier sessions left that may have been billed unseen, from one dataset's files."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.jsonlines import read_lines
from engine.ledger import ATTEMPTS, SENT, Ledger, split_id
from engine.resend import may_be_billed


@dataclass(slots=True)
class Request:
    """The last request of one generation whose reply nobody saw, and how many there were."""

    count: int = 0
    at: str = ""
    """When it was sent, ISO 8601."""
    ignore: list[str] = field(default_factory=list)
    """Slugs of the hosts that it asked the router to leave out."""


@dataclass(slots=True)
class Lost:
    """One dataset's requests without a reply; `open`: those whose generation has no row yet."""

    open: dict[str, Request] = field(default_factory=dict)
    count: int = 0
    """Of generations with a row, too."""
    unpriced_rows: int = 0
    """Rows whose cost nobody told."""


def read_lost(folder: Path, ledger: Ledger) -> Lost:
    """Read attempts.jsonl once more, and sent.jsonl where a request has to be repeated.

    `ledger` is the one of these files, as it was read.
    """
    lost = Lost(unpriced_rows=ledger.costs_unknown)
    for _, attempt in read_lines(folder / ATTEMPTS):
        sent, cost = bool(attempt.get("sent")), attempt.get("cost")
        lost.unpriced_rows -= sent and cost is None
        if may_be_billed(attempt.get("status"), cost, sent=sent):
            _note(lost, ledger, attempt["id"], attempt["started_at"])
    for record in ledger.unknown:
        _note(lost, ledger, record["id"], record["at"])
    if lost.open:
        for _, record in read_lines(folder / SENT):
            _note_hosts(lost, record)
    return lost


def _note(lost: Lost, ledger: Ledger, identifier: str, at: str) -> None:
    lost.count += 1
    if ledger.done(*split_id(identifier)):
        return
    request = lost.open.setdefault(identifier, Request())
    request.count += 1
    request.at = max(request.at, at)


def _note_hosts(lost: Lost, record: dict[str, Any]) -> None:
    request = lost.open.get(record["id"])
    if request is not None:
        request.ignore = list(record.get("ignore", ()))
