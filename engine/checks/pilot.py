"""What rows on disk tell of the rows to come: tokens, seconds and dollars of one generation."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from engine.disk.entries import row_problem
from engine.disk.jsonlines import Position, read_on
from engine.disk.ledger import ROWS, Ledger, fold_row

ENOUGH = 5
"""Rows below which nothing is concluded from them."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Of one generation: low and high are guesses, or the 10th and 90th percentile measured."""

    low: float
    mean: float
    high: float


@dataclass(slots=True)
class Pilot:
    """One dataset's rows on disk, folded without changing a file (a run may be writing them)."""

    ledger: Ledger = field(default_factory=Ledger)
    completions: array[float] = field(default_factory=lambda: array("d"))
    """Completion tokens of each row that was counted (a cache hit is not)."""
    latencies: array[float] = field(default_factory=lambda: array("d"))
    reasoning_tokens: int = 0
    reasoning_rows: int = 0
    cut: int = 0
    """Rows that ended at max_tokens."""

    @property
    def enough(self) -> bool:
        """Whether there are rows enough to reckon with."""
        return len(self.completions) >= ENOUGH

    @property
    def content_share(self) -> float | None:
        """Share of the completion tokens that a later turn is given back."""
        total = sum(self.completions)
        if self.reasoning_rows < len(self.completions) or total <= 0:
            return None
        return max(0.0, 1 - self.reasoning_tokens / total)

    @property
    def cost_per_row(self) -> float | None:
        """USD as billed; None where nobody said."""
        known = self.ledger.costs_known
        return self.ledger.cost_usd / known if known else None


def read_pilot(folder: Path) -> Pilot:
    """Fold the rows of one dataset's folder; a missing one holds none."""
    pilot = Pilot()
    problem = partial(row_problem, dataset=folder.name)
    for offset, row in read_on(folder / ROWS, Position(), problem):
        before = pilot.ledger.rows
        fold_row(pilot.ledger, row, offset)
        if pilot.ledger.rows > before:
            _measure(pilot, row)
    return pilot


def spread(values: array[float]) -> Spread:
    """10th percentile, mean and 90th percentile of at least one value."""
    ranked = sorted(values)
    mean = sum(ranked) / len(ranked)
    low, high = (ranked[round(share * (len(ranked) - 1))] for share in (0.1, 0.9))
    return Spread(min(low, mean), mean, max(high, mean))


def _measure(pilot: Pilot, row: Mapping[str, Any]) -> None:
    usage = row.get("usage")
    counts = usage if isinstance(usage, Mapping) else {}
    written, thought = counts.get("completion_tokens"), counts.get("reasoning_tokens")
    pilot.cut += row.get("finish_reason") == "length"
    if not isinstance(written, int) or written <= 0:
        return
    pilot.completions.append(written)
    if isinstance(thought, int):
        pilot.reasoning_tokens += thought
        pilot.reasoning_rows += 1
    latency = row.get("latency_s")
    if isinstance(latency, int | float) and latency > 0:
        pilot.latencies.append(latency)
