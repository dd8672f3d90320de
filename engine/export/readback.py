"""Reads a finished file as its trainer will, before it takes its place."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from engine.errors import EaglegenError
from engine.export.catalogue import Format, check_record
from engine.export.columns import read_columns

_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class FileReport:
    """What one file really holds."""

    rows: int
    bytes: int
    sha256: str
    tokens: int = 0
    """Ids in it; 0 in files of text."""
    supervised: int = 0
    longest: int = 0
    zero_mask: int = 0
    """Rows with ids of which none is supervised."""


def read_back(path: Path, form: Format) -> FileReport:
    """Read every record of a file; raises EaglegenError where one is not as it must be."""
    rows = tokens = supervised = longest = zero_mask = 0
    for record in _records(path, form):
        rows += 1
        try:
            check_record(record, form)
        except (ValueError, TypeError, KeyError) as error:
            raise EaglegenError(f"{path}, record {rows}, cannot be used: {error}") from None
        if "input_ids" in form.keys and record["input_ids"] is not None:
            length, ones = len(record["input_ids"]), record["loss_mask"].count(1)
            tokens += length
            supervised += ones
            longest = max(longest, length)
            zero_mask += not ones
    size, digest = path.stat().st_size, _sha256(path)
    return FileReport(rows, size, digest, tokens, supervised, longest, zero_mask)


def _records(path: Path, form: Format) -> Iterator[Any]:
    if form.columns:
        yield from read_columns(path)
        return
    with path.open("rb") as file:
        for line in file:
            try:
                yield orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise EaglegenError(f"{path}: a line that is no JSON: {error}") from None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
