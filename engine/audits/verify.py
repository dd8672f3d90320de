"""Audits a run directory: nothing torn, nothing doubled, ids that say what they claim.

Structural faults (a line that is no row, a doubled id, ids that do not decode to the text, a row
that is missing) are faults; grades, and what changed with the manifest, are findings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from engine.audits.audit import ProviderTally, Tally, audit
from engine.audits.rowlines import lines, pieces, whole_end
from engine.audits.survey import DatasetSurvey, Kit, Survey, survey
from engine.audits.workers import Workers
from engine.disk.entries import PROBLEMS, event_problem
from engine.disk.jsonlines import load_line
from engine.disk.ledger import ATTEMPTS, FAILURES, ROWS, SENT, split_id
from engine.disk.rundir import EVENTS, STATUS, read_json
from engine.manifest import Manifest

FAULTS_KEPT = 1000
UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class Fault:
    """One structural fault: where it is, and what is wrong."""

    place: str
    what: str


@dataclass(slots=True)
class DatasetReport:
    """One dataset's audit."""

    name: str
    prompts: int | None
    """The manifest's prompt total; None where the manifest does not name the dataset any more."""
    tally: Tally
    prompts_with_rows: int = 0
    failed: int = 0
    invalid: int = 0
    """Unreadable source rows."""
    requests: int = 0
    attempts: int = 0
    open: int = 0
    """Requests without a known outcome: a kill left them, or the run is live."""
    set_aside: int = 0
    """Torn lines that a resume moved aside, to `*.torn`."""
    ids: set[str] = field(default_factory=set)
    """Of its rows: what other runs' rows are compared with."""

    @property
    def surplus(self) -> int:
        """Prompts with rows beyond the manifest's total: the source or the manifest changed."""
        return 0 if self.prompts is None else max(0, self.prompts_with_rows - self.prompts)


@dataclass(slots=True)
class ProviderReport:
    """One provider's rows."""

    name: str
    tally: ProviderTally = field(default_factory=ProviderTally)
    profile: str = ""
    prompt_words: str = ""


@dataclass(slots=True)
class Report:
    """The audit of a whole run directory."""

    folder: str
    tokenizer: str
    live: bool
    """A process is doing this run: only what was whole when the audit began is judged."""
    datasets: list[DatasetReport] = field(default_factory=list)
    providers: dict[str, ProviderReport] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    """The first FAULTS_KEPT of them."""
    fault_count: int = 0

    def fault(self, place: str, what: str) -> None:
        """Note one structural fault."""
        self.fault_count += 1
        if len(self.faults) < FAULTS_KEPT:
            self.faults.append(Fault(place, what))


def verify_run(folder: Path, manifest: Manifest, work: Workers[Kit], *, live: bool) -> Report:
    """Audit everything."""
    report = Report(str(folder), manifest.endpoint.tokenizer, live)
    found = survey(folder, manifest, work)
    for dataset in found.datasets:
        _audit_rows(report, found, dataset, work)
        _audit_outcomes(report, report.datasets[-1], dataset)
    for _ in _records(report, folder / EVENTS, EVENTS, event_problem):
        pass
    _describe_providers(report, found)
    if not live:
        _audit_status(report, read_json(folder / STATUS))
    return report


def _audit_rows(report: Report, found: Survey, dataset: DatasetSurvey, work: Workers[Kit]) -> None:
    part = DatasetReport(dataset.name, dataset.prompts, Tally())
    report.datasets.append(part)
    place = f"{dataset.name}/{ROWS}"
    for number, what in dataset.problems:
        report.fault(f"{place}:{number}", what)
    report.fault_count += dataset.unreadable + dataset.doubled - len(dataset.problems)
    if dataset.torn and not report.live:
        report.fault(f"{place}:{dataset.lines + 1}", "a torn last line")
    row = 0
    for tally in work.map(audit, found.batches(dataset, range(len(dataset)))):
        for position, what in tally.faults:
            report.fault(f"{place}:{dataset.numbers[row + position]}", what)
        row += tally.rows
        _merge(report, part.tally, tally)
    part.ids = dataset.ids
    part.prompts_with_rows = len({split_id(identifier)[0] for identifier in dataset.ids})


def _merge(report: Report, total: Tally, more: Tally) -> None:
    total.rows += more.rows
    total.completion_tokens += more.completion_tokens
    total.exportable_tokens += more.exportable_tokens
    total.grades.update(more.grades)
    total.flags.update(more.flags)
    total.finish_reasons.update(more.finish_reasons)
    for name, tally in more.providers.items():
        provider = report.providers.setdefault(name, ProviderReport(name)).tally
        provider.rows += tally.rows
        provider.sure += tally.sure
        provider.other_prompt += tally.other_prompt
        provider.miscounted += tally.miscounted


def _audit_outcomes(report: Report, part: DatasetReport, dataset: DatasetSurvey) -> None:
    """What became of the requests and of the prompts without a row."""
    folder = dataset.path.parent
    failed: set[str] = set()
    invalid: set[tuple[Any, Any]] = set()
    for failure in _of_dataset(report, folder / FAILURES):
        identifier = failure.get("id")
        if identifier is None:
            invalid.add((failure.get("index"), failure.get("message")))
        elif identifier not in dataset.ids:  # a later row supersedes a failure
            failed.add(str(identifier).partition("#")[0])
    part.failed, part.invalid = len(failed), len(invalid)
    part.requests = sum(1 for _ in _of_dataset(report, folder / SENT))
    part.attempts = sum(1 for _ in _of_dataset(report, folder / ATTEMPTS))
    part.open = max(0, part.requests - part.tally.rows - part.attempts)
    unsent = part.tally.rows + part.attempts - part.requests
    if unsent > 0 and not report.live:
        report.fault(f"{part.name}/{SENT}", f"{unsent} rows and attempts are of no request in it")
    for path in sorted(folder.glob("*.torn")):
        part.set_aside += path.read_bytes().count(b"\n")


def _of_dataset(report: Report, path: Path) -> Iterator[dict[str, Any]]:
    name = path.parent.name
    problem = partial(PROBLEMS[path.name], dataset=name)
    return _records(report, path, f"{name}/{path.name}", problem)


def _records(
    report: Report, path: Path, place: str, problem: Callable[[Any], str]
) -> Iterator[dict[str, Any]]:
    """The records of a whole file, one by one; other lines are faults."""
    number, end = 0, whole_end(path)
    for piece in pieces(path, end):
        for _, line in lines(piece):
            number += 1
            try:
                record = load_line(line)
            except ValueError:
                record = None
            if wrong := problem(record):
                report.fault(f"{place}:{number}", wrong)
            else:
                yield record
    if path.is_file() and path.stat().st_size > end and not report.live:
        report.fault(f"{place}:{number + 1}", "a torn last line")


def _describe_providers(report: Report, found: Survey) -> None:
    for name, profile in found.grades.profiles().items():
        if (provider := report.providers.get(name or UNNAMED)) is not None:
            provider.profile = profile.name
    for name, tally in found.grades.prompts.items():
        if (provider := report.providers.get(name or UNNAMED)) is not None:
            provider.prompt_words = tally.words()


def _audit_status(report: Report, status: Any) -> None:
    """No row that status.json counted may be missing, and its totals must add up (DESIGN §5)."""
    views = status.get("datasets") if isinstance(status, dict) else None
    parts = {part.name: part for part in report.datasets}
    known = views if isinstance(views, list) else ()
    for view in (view for view in known if isinstance(view, dict)):
        name = str(view.get("name"))
        counts: list[Any] = [
            view.get(key) for key in ("ok", "failed", "invalid", "in_flight", "left")
        ]
        if all(type(count) is int for count in counts) and sum(counts) != view.get("prompts"):
            report.fault(STATUS, f"{name}: {counts} are not {view.get('prompts')} prompts")
        rows, counted = parts[name].tally.rows if name in parts else 0, view.get("rows")
        if type(counted) is int and counted > rows:
            report.fault(STATUS, f"{name}: it counted {counted} rows, {rows} are on disk")
