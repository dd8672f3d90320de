"""`eaglegen-tui verify`: prints the audit of a run directory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from engine.audits.survey import make_kit, processes_for
from engine.audits.verify import DatasetReport, ProviderReport, Report, read_run, verify_run
from engine.audits.workers import workers
from engine.errors import ExitCode
from engine.format import compact, percent, plural, safe_text, thousands
from engine.jsonlines import dump_line
from engine.rundir import is_held
from engine.settings import load_settings

_GRADES = ("engine", "matched", "ambiguous", "mismatch", "unverified")
_FAULTS_SHOWN = 20


def verify(folder: Path, *, as_json: bool) -> int:
    """Audit and print; structural faults give exit 3, grades are only reported."""
    manifest = read_run(folder)
    settings = load_settings(Path.cwd())
    live = is_held(folder)
    make = partial(make_kit, manifest.endpoint, settings.tokenizer_path, settings.cache_dir)
    with workers(make, processes_for(folder, live=live)) as work:
        report = verify_run(folder, manifest, work, live=live)
    if as_json:
        sys.stdout.buffer.write(dump_line(_record(report)))
    else:
        sys.stdout.write("\n".join(_lines(report)) + "\n")
    return int(ExitCode.INCOMPLETE if report.fault_count else ExitCode.OK)


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
