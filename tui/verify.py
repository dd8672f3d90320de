"""`eaglegen-tui verify`: prints the audit of a run directory, or of several taken as one."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

from engine.audits.overlap import Overlap, Together, overlaps, together
from engine.audits.survey import make_kit, processes_for
from engine.audits.verify import DatasetReport, ProviderReport, Report, verify_run
from engine.audits.workers import workers
from engine.disk.jsonlines import dump_line
from engine.disk.rundir import is_held
from engine.errors import ExitCode
from engine.fleet.files import absent_prompts
from engine.fleet.runs import OpenRun, RunSet, open_runs
from engine.format import compact, percent, plural, safe_text, thousands
from engine.settings import load_settings
from engine.tokens.grades import Exactness

_GRADES: tuple[Exactness, ...] = get_args(Exactness)
_FAULTS_SHOWN = 20


def verify(folders: Sequence[Path], *, as_json: bool) -> int:
    """Audit and print; structural faults and missing shards give exit 3, grades do not."""
    runs = open_runs(folders)
    reports = _audited(runs)
    doubled = overlaps(reports)
    if as_json:
        sys.stdout.buffer.write(dump_line(_whole_record(runs, reports, doubled)))
    else:
        sys.stdout.write("\n".join(_whole_lines(runs, reports, doubled)) + "\n")
    faulty = doubled or runs.missing or any(report.fault_count for report in reports)
    return int(ExitCode.INCOMPLETE if faulty else ExitCode.OK)


def _audited(runs: RunSet) -> list[Report]:
    """Every run by itself; they share the vocabulary, which is part of their identity."""
    settings = load_settings(Path.cwd())
    endpoint = runs.manifest.endpoint
    make = partial(make_kit, endpoint, settings.tokenizer_path, settings.cache_dir)
    live = {run.folder: is_held(run.folder) for run in runs.runs}
    processes = max(processes_for(folder, live=held) for folder, held in live.items())
    with workers(make, processes) as work:
        return [
            verify_run(run.folder, run.manifest, work, live=live[run.folder]) for run in runs.runs
        ]


def _whole_record(
    runs: RunSet, reports: Sequence[Report], doubled: Sequence[Overlap]
) -> dict[str, Any]:
    if runs.single:
        return _record(reports[0])
    sums = together(reports, runs.names)
    return {
        "folders": [report.folder for report in reports],
        "missing": list(runs.missing),
        "datasets": [_sum_record(runs, part) for part in sums],
        "overlaps": [
            {"first": each.first, "second": each.second, "rows": each.rows, "id": each.example}
            for each in doubled
        ],
        "fault_count": sum(report.fault_count for report in reports) + len(doubled),
        "runs": [_record(report) for report in reports],
    }


def _sum_record(runs: RunSet, part: Together) -> dict[str, Any]:
    prompts = runs.prompts(part.name) if part.name in runs.names else None
    return {
        "name": part.name,
        "prompts": prompts,
        "prompts_with_rows": part.prompts_with_rows,
        "failed": part.failed,
        "invalid": part.invalid,
        "rows": part.rows,
        "completion_tokens": part.completion_tokens,
        "exportable_tokens": part.exportable_tokens,
    }


def _whole_lines(
    runs: RunSet, reports: Sequence[Report], doubled: Sequence[Overlap]
) -> Iterator[str]:
    if runs.single:
        if runs.sharded:
            yield f"== {safe_text(_heading(runs.runs[0]))}: totals are those of all shards"
        yield from _lines(reports[0])
        return
    for run, report in zip(runs.runs, reports, strict=True):
        yield f"== {safe_text(_heading(run))}"
        yield from _lines(report)
        yield ""
    yield f"== together: {plural(len(reports), 'run')}"
    for part in together(reports, runs.names):
        total = f"{thousands(runs.prompts(part.name))} prompts" if part.name in runs.names else ""
        yield (
            f"{part.name} · {total or 'not in the manifest any more'}: "
            f"{thousands(part.prompts_with_rows)} with rows, {thousands(part.failed)} failed, "
            f"{thousands(part.invalid)} invalid; {plural(part.rows, 'row')}, "
            f"{compact(part.exportable_tokens)} tokens can be exported"
        )
    for each in doubled:
        yield (
            f"✗ {safe_text(each.first)} and {safe_text(each.second)} both hold "
            f"{plural(each.rows, 'row')}, such as {safe_text(each.example)}"
        )
    if not doubled:
        yield "✓ no row is in two of them"
    yield from (f"✗ {label} {safe_text(runs.absence)}" for label in runs.missing)
    if runs.missing:
        absent, of = absent_prompts(runs)
        yield f"✗ {thousands(absent)} of {plural(of, 'prompt')} are not there"


def _heading(run: OpenRun) -> str:
    return f"{run.label} in {run.folder}" if run.count > 1 else run.label


def _record(report: Report) -> dict[str, Any]:
    return {
        "folder": report.folder,
        "tokenizer": report.tokenizer,
        "live": report.live,
        "datasets": [_dataset_record(part) for part in report.datasets],
        "providers": {name: _provider_record(item) for name, item in report.providers.items()},
        "fault_count": report.fault_count,
        "faults": [{"place": fault.place, "what": fault.what} for fault in report.faults],
    }


def _dataset_record(part: DatasetReport) -> dict[str, Any]:
    return {
        "name": part.name,
        "prompts": part.prompts,
        "prompts_with_rows": part.prompts_with_rows,
        "failed": part.failed,
        "invalid": part.invalid,
        "surplus": part.surplus,
        "rows": part.tally.rows,
        "requests": part.requests,
        "attempts": part.attempts,
        "open": part.open,
        "set_aside": part.set_aside,
        "completion_tokens": part.tally.completion_tokens,
        "exportable_tokens": part.tally.exportable_tokens,
        "grades": dict(part.tally.grades),
        "flags": dict(part.tally.flags),
        "finish_reasons": dict(part.tally.finish_reasons),
    }


def _provider_record(provider: ProviderReport) -> dict[str, Any]:
    return {
        "rows": provider.tally.rows,
        "sure": provider.tally.sure,
        "profile": provider.profile,
        "prompt_words": provider.prompt_words,
        "other_prompt": provider.tally.other_prompt,
        "miscounted": provider.tally.miscounted,
    }


def _lines(report: Report) -> Iterator[str]:
    for part in report.datasets:
        yield from _dataset(part)
    if report.providers:
        yield ""
        yield "providers"
    for provider in sorted(report.providers.values(), key=lambda p: -p.tally.rows):
        yield from _provider(provider, report.tokenizer)
    yield ""
    if report.live:
        yield "The run is live: this is how it stood when the audit began."
    folder = safe_text(report.folder)
    if not report.fault_count:
        yield f"✓ {folder}: no structural fault"
        return
    for fault in report.faults[:_FAULTS_SHOWN]:
        yield f"✗ {safe_text(fault.place)}: {safe_text(fault.what)}"
    yield f"✗ {plural(report.fault_count, 'structural fault')} in {folder}"


def _dataset(part: DatasetReport) -> Iterator[str]:
    tally = part.tally
    yield f"{part.name} · {_totals(part)}"
    grades = ", ".join(
        f"{thousands(tally.grades[grade])} {grade}" for grade in _GRADES if tally.grades[grade]
    )
    yield f"    {plural(tally.rows, 'row')}: {grades or 'none'}"
    flags = ", ".join(f"{thousands(n)} {flag}" for flag, n in tally.flags.most_common())
    yield (
        f"    {compact(tally.exportable_tokens)} tokens can be exported, of "
        f"{compact(tally.completion_tokens)} that were counted"
        + (f"; flagged: {flags}" if flags else "")
    )
    yield from (f"    {note}" for note in _notes(part))


def _totals(part: DatasetReport) -> str:
    with_rows = thousands(part.prompts_with_rows)
    if part.prompts is None:
        return f"not in the manifest any more: {with_rows} prompts with rows"
    return (
        f"{thousands(part.prompts)} prompts: {with_rows} with rows "
        f"({percent(part.prompts_with_rows, part.prompts)}), {thousands(part.failed)} failed, "
        f"{thousands(part.invalid)} invalid"
    )


def _notes(part: DatasetReport) -> Iterator[str]:
    if part.surplus:
        yield f"{plural(part.surplus, 'prompt')} beyond the manifest's total: its source changed"
    if part.open:
        yield f"{plural(part.open, 'request')} without a known outcome; the next run records them"
    if part.set_aside:
        yield f"{plural(part.set_aside, 'torn line')} moved aside by a resume, in *.torn"


def _provider(provider: ProviderReport, tokenizer: str) -> Iterator[str]:
    name, tally = safe_text(provider.name), provider.tally
    if tokenizer == "none":
        yield f"    {name}: {plural(tally.rows, 'row')}"
        return
    yield (
        f"    {name}: {percent(tally.sure, tally.rows)} of "
        f"{plural(tally.rows, 'row')} sure, profile {provider.profile or 'unknown'}"
    )
    if provider.prompt_words:
        yield f"        {safe_text(provider.prompt_words)}"
    if tally.other_prompt:
        rows = plural(tally.other_prompt, "row")
        yield f"        renders another prompt than the template's in {rows} (its own ids are kept)"
    if tally.miscounted:
        yield f"        counts other than its own ids in {plural(tally.miscounted, 'row')}"
