"""A run's files against the provider's own ledger: is every request and every charge known?"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def _records(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    for path in sorted(folder.glob(f"*/{name}.jsonl")):
        with path.open("rb") as lines:
            yield from map(json.loads, lines)


@dataclass(slots=True)
class Books:
    """The run's files against the provider's ledger."""

    prompts: int
    rows: int
    doubled: int
    failed: int
    requests: int
    attempts: int
    charged: int
    charged_unseen: int
    """Charges beyond one a row: replies that were paid for and lost on their way."""
    lost_replies: int
    """Attempts that the run wrote down as sent, with no cost told."""

    @classmethod
    def of(cls, folder: Path, ledger: Path, prompts: int) -> Books:
        """Read both."""
        ids = Counter(row["id"] for row in _records(folder, "rows"))
        attempts = list(_records(folder, "attempts"))
        with ledger.open("rb") as lines:
            entries = [json.loads(line) for line in lines]
        charged = [entry for entry in entries if entry["cost"] > 0]
        unseen = sum(a["sent"] and a["cost"] is None for a in attempts)
        return cls(
            prompts=prompts,
            rows=sum(ids.values()),
            doubled=sum(count - 1 for count in ids.values()),
            failed=len({failure["id"] for failure in _records(folder, "failures")}),
            requests=len(entries),
            attempts=len(attempts),
            charged=len(charged),
            charged_unseen=len(charged) - sum(ids.values()),
            lost_replies=unseen,
        )

    @property
    def exact(self) -> bool:
        """Every request is a row or an attempt, every prompt has its row, each charge is known."""
        return (
            self.requests == self.rows + self.attempts
            and self.rows + self.failed == self.prompts
            and self.doubled == 0
            and self.charged_unseen <= self.lost_replies
        )
