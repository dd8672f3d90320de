"""Audits the rows of a run directory: nothing torn, nothing doubled, ids that say what they claim.

Structural faults (a line that is no row, a doubled id, ids that do not decode to the text, more
prompts than the manifest has) are faults; grades are findings and only reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.audit import Auditor, Codes
from engine.errors import UsageError
from engine.jsonlines import load_line
from engine.ledger import ATTEMPTS, FAILURES, ROWS, SENT, split_id
from engine.manifest import Manifest
from engine.rundir import RUN, read_json
from engine.tokens.final import FinalGrades
from engine.tokens.grades import Graded

FAULTS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Fault:
    """One structural fault: where it is, and what is wrong."""

    place: str
    what: str


@dataclass(slots=True)
class DatasetReport:
    """One dataset's audit."""

    name: str
    prompts: int
    """The manifest's prompt total."""
    rows: int = 0
    prompts_with_rows: int = 0
    failed: int = 0
    completion_tokens: int = 0
    exportable_tokens: int = 0
    requests: int = 0
    attempts: int = 0
    grades: Counter[str] = field(default_factory=Counter)
    """Final grades: by what all rows together say of their providers."""
    flags: Counter[str] = field(default_factory=Counter)
    finish_reasons: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class ProviderReport:
    """One provider's rows."""

    name: str
    profile: str = ""
    prompt_words: str = ""
    rows: int = 0
    sure: int = 0
    """Rows graded engine or matched."""


@dataclass(slots=True)
class Report:
    """The audit of a whole run directory."""

    folder: str
    tokenizer: str
    datasets: list[DatasetReport] = field(default_factory=list)
    providers: dict[str, ProviderReport] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    """The first FAULTS_SHOWN of them."""
    fault_count: int = 0

    def fault(self, place: str, what: str) -> None:
        """Note one structural fault."""
        self.fault_count += 1
        if len(self.faults) < FAULTS_SHOWN:
            self.faults.append(Fault(place, what))


def read_run(folder: Path) -> Manifest:
    """The manifest that a run directory was made with; raises UsageError."""
    record = read_json(folder / RUN)
    if not isinstance(record, dict) or "manifest" not in record:
        raise UsageError(f"{folder} is no run directory (it has no {RUN})")
    return Manifest.model_validate(record["manifest"])


def verify_run(folder: Path, manifest: Manifest, codes: Codes | None) -> Report:
    """Audit everything; `codes` (a vocabulary) is None with `tokenizer = "none"`."""
    endpoint = manifest.endpoint
    report = Report(str(folder), endpoint.tokenizer)
    auditor = Auditor(endpoint, codes) if codes is not None else None
    final = None
    if codes is not None:
        final = FinalGrades(codes, thinking=endpoint.thinking, variant=endpoint.tokenizer)
        for dataset in manifest.datasets:
            final.learn(row for _, row in readable_rows(folder / dataset.name / ROWS))
    for dataset in manifest.datasets:
        part = DatasetReport(dataset.name, dataset.prompts)
        report.datasets.append(part)
        _audit_dataset(report, part, folder / dataset.name, final, auditor)
    if final is not None:
        _describe_providers(report, final)
    return report


def readable_rows(path: Path, report: Report | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, row) of every line that is a row; the others are faults of `report`."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            row = _row(line)
            if row is not None and line.endswith(b"\n"):
                yield number, row
            elif report is not None:
                what = "a torn last line" if not line.endswith(b"\n") else "a line that is no row"
                report.fault(f"{path.parent.name}/{path.name}:{number}", what)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = load_line(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("id"), str) else None


def _audit_dataset(
    report: Report,
    part: DatasetReport,
    folder: Path,
    final: FinalGrades | None,
    auditor: Auditor | None,
) -> None:
    seen: set[str] = set()
    keys: set[str] = set()
    numbers: list[int] = []

    def rows() -> Iterator[dict[str, Any]]:
        for number, row in readable_rows(folder / ROWS, report):
            numbers.append(number)
            yield row

    for row, graded in _graded(rows(), final):
        place = f"{part.name}/{ROWS}:{numbers[-1]}"
        if row["id"] in seen:
            report.fault(place, f"{row['id']} stands there twice")
        seen.add(row["id"])
        keys.add(split_id(row["id"])[0])
        for what in auditor.complaints(row) if auditor else ():
            report.fault(place, what)
        _count(report, part, row, graded)
    part.prompts_with_rows = len(keys)
    if len(keys) > part.prompts:
        report.fault(part.name, f"{len(keys)} prompts have rows, the manifest has {part.prompts}")
    part.failed = _failed(folder, keys)
    part.requests = _lines(folder / SENT)
    part.attempts = _lines(folder / ATTEMPTS)


def _graded(
    rows: Iterator[dict[str, Any]], final: FinalGrades | None
) -> Iterator[tuple[Any, Graded | None]]:
    if final is None:
        return ((row, None) for row in rows)
    return iter(final.grade(rows))


def _count(report: Report, part: DatasetReport, row: dict[str, Any], graded: Graded | None) -> None:
    grade = graded.exactness if graded else str(row.get("exactness") or "unverified")
    tokens = (row.get("usage") or {}).get("completion_tokens") or 0
    flags = row.get("flags") or ()
    sure = grade in {"engine", "matched"}
    part.rows += 1
    part.completion_tokens += tokens
    part.exportable_tokens += tokens if sure and not flags else 0
    part.grades[grade] += 1
    part.flags.update(flags)
    part.finish_reasons[str(row.get("finish_reason"))] += 1
    name = row.get("provider") or "unnamed"
    provider = report.providers.setdefault(name, ProviderReport(name))
    provider.rows += 1
    provider.sure += sure


def _describe_providers(report: Report, final: FinalGrades) -> None:
    for name, profile in final.profiles().items():
        if (provider := report.providers.get(name or "unnamed")) is not None:
            provider.profile = profile.name
    for name, tally in final.prompts.items():
        if (provider := report.providers.get(name or "unnamed")) is not None:
            provider.prompt_words = tally.words()


def _failed(folder: Path, keys: set[str]) -> int:
    failed = {
        split_id(row["id"])[0]
        for _, row in readable_rows(folder / FAILURES)
        if isinstance(row.get("id"), str)
    }
    return len(failed - keys)


def _lines(path: Path) -> int:
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        return sum(1 for line in file if line.strip())
