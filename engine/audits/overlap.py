"""Several audited runs as one: what they add up to, and rows that stand in two of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from engine.audits.verify import DatasetReport, Report


@dataclass(frozen=True, slots=True)
class Overlap:
    """Rows with the same id in two runs: they were paid for twice, and would train twice."""

    first: str
    second: str
    rows: int
    example: str
    """The least of their ids."""


@dataclass(slots=True)
class Together:
    """One dataset over all runs."""

    name: str
    prompts_with_rows: int = 0
    failed: int = 0
    invalid: int = 0
    rows: int = 0
    completion_tokens: int = 0
    exportable_tokens: int = 0

    def add(self, part: DatasetReport) -> None:
        """Count one run's part."""
        self.prompts_with_rows += part.prompts_with_rows
        self.failed += part.failed
        self.invalid += part.invalid
        self.rows += part.tally.rows
        self.completion_tokens += part.tally.completion_tokens
        self.exportable_tokens += part.tally.exportable_tokens


def overlaps(reports: Sequence[Report]) -> list[Overlap]:
    """Every pair of runs that holds a row twice, dataset by dataset."""
    return [
        Overlap(first.folder, second.folder, len(common), min(common))
        for first, second in combinations(reports, 2)
        for part in first.datasets
        for other in second.datasets
        if other.name == part.name and (common := part.ids & other.ids)
    ]


def together(reports: Sequence[Report], names: Sequence[str]) -> list[Together]:
    """The sums of each dataset, in manifest order, then those that no manifest names."""
    sums = {name: Together(name) for name in names}
    for report in reports:
        for part in report.datasets:
            sums.setdefault(part.name, Together(part.name)).add(part)
    return list(sums.values())
