"""One export from beginning to end: survey, select, write, read back, publish.

Two passes over the rows, neither of which keeps them. Rows go out by dataset in manifest order,
then by their place in the source and their turn: the same run gives the same file, whatever the
order in which its replies came. Shards of one run, or runs that go together, give one file, as if
one process had done them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

from engine.audits.survey import DatasetSurvey, Kit, Survey, survey_all
from engine.audits.workers import Workers
from engine.disk.rundir import RUN, read_json
from engine.errors import EaglegenError, UsageError
from engine.export.account import (
    Counts,
    cut_notes,
    dataset_records,
    file_record,
    left_out_words,
    left_over,
    notes,
    place_notes,
    total_record,
)
from engine.export.catalogue import Format
from engine.export.chat_template import chat_template
from engine.export.columns import ColumnsFile, require_pyarrow
from engine.export.making import make_lines
from engine.export.readback import FileReport, read_back
from engine.export.selection import Selection
from engine.export.shards import LinesFile, ShardLimits, ShardWriter
from engine.export.sidecar import check_output, make_parent, publish
from engine.format import plural
from engine.manifest import Manifest


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
    beside: tuple[tuple[Path, Manifest], ...] = ()
    """Further run directories that go into the same file, with their manifests."""


def export_run(request: Request, manifest: Manifest, work: Workers[Kit]) -> dict[str, Any]:
    """Export and return the sidecar's record, with notes on what was there before.

    Raises UsageError where nothing goes out.
    """
    places = ((request.folder, manifest), *request.beside)
    run = _identity(places)
    if request.form.columns:
        require_pyarrow()
    replaced = _replaced(request, places, run)
    found = survey_all(places, work)
    datasets = _chosen(found, request)
    _check_distinct(datasets)
    made_folder = make_parent(request.out)
    make = ColumnsFile if request.form.columns else LinesFile
    writer = ShardWriter(request.out, request.limits, make)
    try:
        counts = {
            name: _write(writer, request, found, parts, work) for name, parts in datasets.items()
        }
        writer.close()
        total = _total(counts)
        if not total.rows_out:
            raise _nothing(total)
        files = [read_back(path, request.form) for path in writer.paths]
        _compare(request.form, total, files)
        meta = _meta(request, run, counts, total)
        written = writer.places()
        meta["files"] = [
            file_record(final.name, file) for (_, final), file in zip(written, files, strict=True)
        ]
        meta["zero_mask_rows"] = sum(file.zero_mask for file in files)
        meta["notes"] = [*notes(request.form, found, total, live=request.live)]
        meta["notes"] += [] if request.only else left_over(found)
        meta["notes"] += cut_notes(request.form, total, asked=request.selection.cut)
        publish(request.out, written, _template(request.form, manifest), meta)
    finally:
        writer.close()
        writer.discard()
    told = place_notes(request.out, [path.name for path in replaced], made_folder=made_folder)
    return meta | {"complete": True, "notes": [*meta["notes"], *told]}


def _replaced(
    request: Request, places: Sequence[tuple[Path, Manifest]], run: dict[str, Any]
) -> list[Path]:
    """The files of an earlier export that will be replaced; raises UsageError."""
    form, found = request.form.name, list[Path]()
    for folder, _ in places:
        found = check_output(request.out, folder, run, form, force=request.force)
    return found


def _identity(places: Sequence[tuple[Path, Manifest]]) -> dict[str, Any]:
    """Whose export it is; several runs together are another than each of them."""
    folder, manifest = places[0]
    record = read_json(folder / RUN)
    whose = {
        "name": manifest.run.name,
        "folder": str(folder.resolve()),
        "identity": record.get("identity") if isinstance(record, dict) else None,
    }
    if len(places) > 1:
        whose["folders"] = [str(each.resolve()) for each, _ in places]
    return whose


def _chosen(found: Survey, request: Request) -> dict[str, list[DatasetSurvey]]:
    """The parts of each dataset that goes out: one for each run that has it."""
    names = list(dict.fromkeys(dataset.name for dataset in found.datasets))
    unknown = sorted(set(request.only).difference(names))
    if unknown:
        raise UsageError(
            f"--only {unknown[0]}: the run has no such dataset", hint=f"It has {', '.join(names)}."
        )
    chosen: dict[str, list[DatasetSurvey]] = {}
    for dataset in found.datasets:
        if dataset.name in request.only or (not request.only and dataset.prompts is not None):
            chosen.setdefault(dataset.name, []).append(dataset)
    return chosen


def _check_distinct(datasets: dict[str, list[DatasetSurvey]]) -> None:
    """Raise UsageError where a row stands in two runs: it would train twice."""
    for parts in datasets.values():
        for first, second in combinations(parts, 2):
            if common := first.ids & second.ids:
                places = f"{first.path.parent} and {second.path.parent}"
                raise UsageError(
                    f"{places} both hold {plural(len(common), 'row')}, such as {min(common)}",
                    hint="Export one of them, or leave the dataset out with --only.",
                )


def _write(
    writer: ShardWriter,
    request: Request,
    found: Survey,
    parts: list[DatasetSurvey],
    work: Workers[Kit],
) -> Counts:
    counts = Counts(rows_in=sum(part.lines for part in parts))
    for part in parts:
        counts.left_out.update(unreadable=part.unreadable, doubled=part.doubled)
    task = partial(make_lines, request.form.name, request.selection)
    for made in work.map(task, found.woven(parts)):
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
