"""What an export says of itself: rows in and out, why rows stayed, what every file holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.audits.survey import Survey
from engine.export.catalogue import REASONS, Format
from engine.export.making import Made
from engine.export.readback import FileReport
from engine.export.selection import LENGTH
from engine.format import plural


@dataclass(slots=True)
class Counts:
    """What became of the rows of one dataset, or of all."""

    rows_in: int = 0
    rows_out: int = 0
    tokens: int = 0
    """Of prompts and completions that went out, where their ids are known."""
    supervised: int = 0
    longest: int = 0
    clipped: int = 0
    resplit: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, made: Made) -> None:
        """Count a batch."""
        self.rows_out += len(made.lines)
        self.tokens += sum(made.tokens)
        self.supervised += sum(made.supervised)
        self.longest = max(self.longest, *made.tokens, 0)
        self.clipped += made.clipped
        self.resplit += made.resplit
        self.left_out.update(made.left_out)

    def merge(self, other: Counts) -> None:
        """Add another dataset's."""
        self.rows_in += other.rows_in
        self.rows_out += other.rows_out
        self.tokens += other.tokens
        self.supervised += other.supervised
        self.longest = max(self.longest, other.longest)
        self.clipped += other.clipped
        self.resplit += other.resplit
        self.left_out.update(other.left_out)


def left_out_words(left_out: dict[str, int]) -> str:
    """Rows left out, by reason: `8 ambiguous, 4 cut by length`."""
    ordered = sorted(left_out.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number:,} {REASONS.get(reason, reason)}" for reason, number in ordered)


def dataset_records(counts: dict[str, Counts]) -> dict[str, dict[str, Any]]:
    """Each dataset's counts as plain JSON."""
    return {
        name: {
            "rows_in": part.rows_in,
            "rows_out": part.rows_out,
            "tokens": part.tokens,
            "supervised_tokens": part.supervised,
            "left_out": dict(part.left_out),
        }
        for name, part in counts.items()
    }


def total_record(total: Counts) -> dict[str, Any]:
    """The counts over all datasets as plain JSON."""
    return {
        "rows_in": total.rows_in,
        "rows_out": total.rows_out,
        "left_out": dict(total.left_out),
        "tokens": total.tokens,
        "supervised_tokens": total.supervised,
        "longest_row": total.longest,
        "clipped_rows": total.clipped,
        "resplit_rows": total.resplit,
    }


def file_record(name: str, file: FileReport) -> dict[str, Any]:
    """What a file holds, as plain JSON."""
    return {
        "name": name,
        "rows": file.rows,
        "tokens": file.tokens,
        "supervised_tokens": file.supervised,
        "longest_row": file.longest,
        "zero_mask_rows": file.zero_mask,
        "bytes": file.bytes,
        "sha256": file.sha256,
    }


def notes(form: Format, found: Survey, total: Counts, *, live: bool) -> Iterator[str]:
    """What the file's user has to know."""
    if live:
        yield "the run is live: its rows up to now"
    yield from form.notes
    if total.resplit:
        yield f"{plural(total.resplit, 'row')} will be encoded to other ids than were sampled"
    for name, tally in found.grades.prompts.items():
        if words := tally.words():
            yield f"{name or 'the server'} {words}; its rows go out with the prompt as we render it"


def left_over(found: Survey) -> Iterator[str]:
    """Datasets that stay out because the manifest does not name them any more."""
    for dataset in found.datasets:
        if dataset.prompts is None and len(dataset):
            rows = plural(len(dataset), "row")
            yield f"{dataset.name} is not in the manifest any more: --only takes its {rows}"


def cut_notes(form: Format, total: Counts, *, asked: bool) -> Iterator[str]:
    """That rows cut by length stay out although they were `asked` for."""
    number = total.left_out.get(LENGTH, 0)
    if asked and number and not form.tokens:
        rows = plural(number, "row")
        yield f"{rows} cut by length stay out: as text, {form.name} would learn to end there"


def place_notes(out: Path, replaced: Sequence[str], *, made_folder: bool) -> Iterator[str]:
    """What has become of the place that the files went to."""
    if replaced:
        yield f"replaced {plural(len(replaced), 'file')} of an earlier export"
    if made_folder:
        yield f"made the folder {out.parent}"
