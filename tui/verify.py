"""`eaglegen-tui verify`: prints the audit of a run directory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from engine.errors import ExitCode
from engine.format import compact, percent, plural, safe_text, thousands
from engine.jsonlines import dump_line
from engine.readers import vocabulary_of
from engine.settings import load_settings
from engine.verify import DatasetReport, ProviderReport, Report, read_run, verify_run

_GRADES = ("engine", "matched", "ambiguous", "mismatch", "unverified")


def verify(folder: Path, *, as_json: bool) -> int:
    """Audit and print; structural faults give exit 3, grades are only reported."""
    manifest = read_run(folder)
    codes = vocabulary_of(manifest, load_settings(Path.cwd()))
    report = verify_run(folder, manifest, codes)
    if as_json:
        sys.stdout.buffer.write(dump_line(asdict(report)))
    else:
        sys.stdout.write("\n".join(_lines(report)) + "\n")
    return int(ExitCode.INCOMPLETE if report.fault_count else ExitCode.OK)


def _lines(report: Report) -> Iterator[str]:
    for part in report.datasets:
        yield from _dataset(part)
    if report.providers:
        yield ""
        yield "providers"
    for provider in sorted(report.providers.values(), key=lambda p: -p.rows):
        yield from _provider(provider, report.tokenizer)
    yield ""
    if not report.fault_count:
        yield f"✓ {safe_text(report.folder)}: no structural fault"
        return
    for fault in report.faults:
        yield f"✗ {safe_text(fault.place)}: {safe_text(fault.what)}"
    yield f"✗ {plural(report.fault_count, 'structural fault')} in {safe_text(report.folder)}"


def _dataset(part: DatasetReport) -> Iterator[str]:
    yield (
        f"{part.name} · {thousands(part.prompts)} prompts: "
        f"{thousands(part.prompts_with_rows)} with rows "
        f"({percent(part.prompts_with_rows, part.prompts)}), {thousands(part.failed)} failed"
    )
    grades = ", ".join(
        f"{thousands(part.grades[grade])} {grade}" for grade in _GRADES if part.grades[grade]
    )
    yield f"    {plural(part.rows, 'row')}: {grades or 'none'}"
    flags = ", ".join(f"{thousands(n)} {flag}" for flag, n in part.flags.most_common())
    yield (
        f"    {compact(part.exportable_tokens)} of {compact(part.completion_tokens)} "
        f"completion tokens can be exported" + (f"; flagged: {flags}" if flags else "")
    )
    open_ = part.requests - part.rows - part.attempts
    if open_ > 0:
        yield f"    {plural(open_, 'request')} without a known outcome; the next run records them"


def _provider(provider: ProviderReport, tokenizer: str) -> Iterator[str]:
    name = safe_text(provider.name)
    if tokenizer == "none":
        yield f"    {name}: {plural(provider.rows, 'row')}"
        return
    yield (
        f"    {name}: {percent(provider.sure, provider.rows)} of "
        f"{plural(provider.rows, 'row')} sure, profile {provider.profile or 'unknown'}"
    )
    if provider.prompt_words:
        yield f"        {safe_text(provider.prompt_words)}"
