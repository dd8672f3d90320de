"""`eaglegen-tui export`: writes training files and says what is in them, and what is not."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from engine.audits.survey import make_kit, processes_for
from engine.audits.workers import workers
from engine.disk.jsonlines import dump_line
from engine.disk.rundir import is_held
from engine.errors import ExitCode, UsageError
from engine.export.account import left_out_words
from engine.export.catalogue import format_named
from engine.export.job import Request, export_run
from engine.export.selection import selection_of
from engine.export.shards import ShardLimits
from engine.export.sidecar import meta_path, template_path
from engine.fleet.files import absent_prompts
from engine.fleet.runs import RunSet, open_runs
from engine.format import compact, plural, safe_text, thousands
from engine.settings import load_settings
from tui.outlet import say


@dataclass(frozen=True, slots=True)
class Wanted:
    """The command's options."""

    to: str
    out: Path
    only: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    max_length: int | None = None
    shard_rows: int | None = None
    shard_tokens: int | None = None
    force: bool = False


def export(folders: Sequence[Path], wanted: Wanted, *, as_json: bool) -> int:
    """Export, read back, and print the report; several runs give one file."""
    runs = open_runs(folders)
    request = _request(runs, wanted)
    settings = load_settings(Path.cwd())
    endpoint = runs.manifest.endpoint
    make = partial(make_kit, endpoint, settings.tokenizer_path, settings.cache_dir)
    places = [run.folder for run in runs.runs]
    processes = max(processes_for(folder, live=request.live) for folder in places)
    with workers(make, processes) as work:
        record = export_run(request, runs.runs[0].manifest, work)
    lacking = [f"{label} {runs.absence}" for label in runs.missing]
    if runs.single and runs.sharded:
        record["notes"].append(f"{runs.runs[0].label} only: the folder above it exports all")
    if lacking:
        absent, total = absent_prompts(runs)
        lacking.append(f"{thousands(absent)} of {plural(total, 'prompt')} are not there")
    if as_json:
        record["notes"] += lacking
        sys.stdout.buffer.write(dump_line(record))
    else:
        sys.stdout.write("\n".join(_lines(record, request, runs)) + "\n")
    sys.stdout.flush()
    for note in lacking:
        say(f"note: {safe_text(note)}\n")
    return int(ExitCode.OK)


def _request(runs: RunSet, wanted: Wanted) -> Request:
    if wanted.shard_rows is not None and wanted.shard_tokens is not None:
        raise UsageError("--shard-rows and --shard-tokens: choose one of them")
    first, *others = runs.runs
    return Request(
        folder=first.folder,
        form=format_named(wanted.to),
        out=wanted.out,
        selection=selection_of(wanted.include, wanted.max_length),
        only=wanted.only,
        limits=ShardLimits(wanted.shard_rows, wanted.shard_tokens),
        live=any(is_held(run.folder) for run in runs.runs),
        force=wanted.force,
        beside=tuple((run.folder, run.manifest) for run in others),
    )


def _lines(record: dict[str, Any], request: Request, runs: RunSet) -> Iterator[str]:
    totals = {name: runs.prompts(name) for name in runs.names}
    for name, part in record["datasets"].items():
        prompts = f" · {plural(totals[name], 'prompt')}" if name in totals else ""
        yield (
            f"{name}{prompts}: {thousands(part['rows_out'])} of "
            f"{plural(part['rows_in'], 'row')}{_sizes(part)}"
        )
        if part["left_out"]:
            yield f"    left out: {left_out_words(part['left_out'])}"
    yield ""
    yield (
        f"{thousands(record['rows_out'])} of {plural(record['rows_in'], 'row')} "
        f"for {record['format']}{_sizes(record)}; longest row {thousands(record['longest_row'])}"
    )
    if record["clipped_rows"]:
        yield f"    {plural(record['clipped_rows'], 'row')} cut to --max-length"
    for file in record["files"]:
        yield f"    {_file(request.out.with_name(file['name']), file)}"
    yield f"    {safe_text(str(meta_path(request.out)))}"
    if request.form.template is not None:
        yield f"    {safe_text(str(template_path(request.out)))}"
    yield from (f"note: {safe_text(note)}" for note in record["notes"])


def _sizes(part: dict[str, Any]) -> str:
    if not part["tokens"]:
        return ""
    return f", {compact(part['tokens'])} tokens, {compact(part['supervised_tokens'])} supervised"


def _file(path: Path, file: dict[str, Any]) -> str:
    masked = f", {plural(file['zero_mask_rows'], 'zero-mask row')}" if file["tokens"] else ""
    return (
        f"{safe_text(str(path))}: {plural(file['rows'], 'row')}{masked}, "
        f"{compact(file['bytes'])} bytes, sha256 {file['sha256']}"
    )
