"""One export from beginning to end: survey, select, write, read back, publish.

Two passes over the rows, neither of which keeps them. Rows go out by dataset in manifest order,
then by their place in the source and their turn: the same run gives the same file, whatever the
order in which its replies came.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from engine.audits.survey import DatasetSurvey, Kit, Survey, survey
from engine.audits.workers import Workers
from engine.errors import EaglegenError, UsageError
from engine.export.account import (
    Counts,
    dataset_records,
    file_record,
    left_out_words,
    left_over,
    notes,
    total_record,
)
from engine.export.catalogue import Format
from engine.export.chat_template import chat_template
from engine.export.columns import ColumnsFile, require_pyarrow
from engine.export.making import make_lines
from engine.export.readback import FileReport, read_back
from engine.export.selection import Selection
from engine.export.shards import LinesFile, ShardLimits, ShardWriter
from engine.export.sidecar import check_output, publish
from engine.manifest import Manifest
from engine.rundir import RUN, read_json


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be exported, and where to."""

    folder: Path
    form: Format
    out: Path
    selection: Selection = field(default_factory=Selection)
    only: tuple[str, ...] = ()
    """Datasets; empty: all that the manifest names."""
    limits: ShardLimits = field(default_factory=ShardLimits)
    live: bool = False
    """A process is doing the run: what was whole when the export began goes out."""
    force: bool = False


def export_run(request: Request, manifest: Manifest, work: Workers[Kit]) -> dict[str, Any]:
    """Export and return the sidecar's record; raises UsageError where nothing goes out."""
    run = _identity(request.folder, manifest)
    if request.form.columns:
        require_pyarrow()
    check_output(request.out, request.folder, run, force=request.force)
    found = survey(request.folder, manifest, work)
    datasets = _chosen(found, request)
    request.out.parent.mkdir(parents=True, exist_ok=True)
    make = ColumnsFile if request.form.columns else LinesFile
    writer = ShardWriter(request.out, request.limits, make)
    try:
        counts = {
            dataset.name: _write(writer, request, found, dataset, work) for dataset in datasets
        }
        writer.close()
        total = _total(counts)
        if not total.rows_out:
            raise _nothing(total)
        files = [read_back(path, request.form) for path in writer.paths]
        _compare(request.form, total, files)
        meta = _meta(request, run, counts, total)
        places = writer.places()
        meta["files"] = [
            file_record(final.name, file) for (_, final), file in zip(places, files, strict=True)
        ]
        meta["zero_mask_rows"] = sum(file.zero_mask for file in files)
        meta["notes"] = [*notes(request.form, found, total, live=request.live)]
        meta["notes"] += [] if request.only else left_over(found)
        publish(request.out, places, _template(request.form, manifest), meta)
    finally:
        writer.close()
        writer.discard()
    return meta | {"complete": True}


def _identity(folder: Path, manifest: Manifest) -> dict[str, Any]:
    record = read_json(folder / RUN)
    return {
        "name": manifest.run.name,
        "folder": str(folder.resolve()),
        "identity": record.get("identity") if isinstance(record, dict) else None,
    }


def _chosen(found: Survey, request: Request) -> list[DatasetSurvey]:
    names = [dataset.name for dataset in found.datasets]
    unknown = sorted(set(request.only).difference(names))
    if unknown:
        raise UsageError(
            f"--only {unknown[0]}: the run has no such dataset", hint=f"It has {', '.join(names)}."
        )
    if request.only:
        return [dataset for dataset in found.datasets if dataset.name in request.only]
    return [dataset for dataset in found.datasets if dataset.prompts is not None]


def _write(
    writer: ShardWriter,
    request: Request,
    found: Survey,
    dataset: DatasetSurvey,
    work: Workers[Kit],
) -> Counts:
    counts = Counts(rows_in=dataset.lines)
    counts.left_out.update(unreadable=dataset.unreadable, doubled=dataset.doubled)
    task = partial(make_lines, request.form.name, request.selection)
    for made in work.map(task, found.batches(dataset, dataset.in_source_order())):
        for line, tokens in zip(made.lines, made.tokens, strict=True):
            writer.add(line, tokens)
        counts.add(made)
    counts.left_out = +counts.left_out
    return counts


def _total(counts: dict[str, Counts]) -> Counts:
    total = Counts()
    for part in counts.values():
        total.merge(part)
    return total


def _nothing(total: Counts) -> UsageError:
    if not total.rows_in:
        return UsageError("nothing to export: there are no rows yet")
    hint = "`--include` takes grades and flags; `verify` shows the grades by provider."
    return UsageError(f"nothing to export: {left_out_words(total.left_out)}", hint=hint)


def _compare(form: Format, total: Counts, files: list[FileReport]) -> None:
    """What was read back must be what was written; else it is not published."""
    rows = sum(file.rows for file in files)
    sums = sum(file.tokens for file in files), sum(file.supervised for file in files)
    if rows != total.rows_out or (form.tokens and sums != (total.tokens, total.supervised)):
        raise EaglegenError(
            f"{total.rows_out} rows of {total.tokens} tokens were written, but {rows} rows of "
            f"{sums[0]} were read back"
        )


def _meta(
    request: Request, run: dict[str, Any], counts: dict[str, Counts], total: Counts
) -> dict[str, Any]:
    return {
        "schema": 1,
        "run": run,
        "live": request.live,
        "format": request.form.name,
        "selection": {**request.selection.record(), "datasets": list(counts)},
        **total_record(total),
        "datasets": dataset_records(counts),
    }


def _template(form: Format, manifest: Manifest) -> str | None:
    return None if form.template is None else chat_template(form.template, manifest.endpoint)
