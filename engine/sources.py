"""Read prompt files lazily: jsonl, json and csv, each also .gz; parquet and hf: with the extra."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import orjson

from engine.errors import SourceError
from engine.manifest import Dataset, Manifest
from engine.prompts import InvalidRow, Prompt, RowError, make_prompt

FORMATS = "jsonl, json, csv (each also .gz), parquet, hf:repo/name:split"
_CSV_FIELD_LIMIT = 1 << 30
_LISTS = frozenset({"messages", "conversations", "turns"})
"""Columns of a csv whose fields are JSON."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a source; `value` is None where `problem` says why it could not be read."""

    line: int
    value: Any
    problem: str = ""


def read_rows(source: str, path: Path) -> Iterator[Row]:
    """All rows of a source, in order; blank lines are no rows. Raises SourceError."""
    if source.startswith("hf:"):
        return _hub(source)
    kind = path.name.removesuffix(".gz").rsplit(".", 1)[-1].lower()
    reader = {
        "jsonl": _jsonl,
        "ndjson": _jsonl,
        "json": _json,
        "csv": _csv,
        "parquet": _parquet,
    }.get(kind)
    if reader is None:
        raise SourceError(f"{path}: unknown format .{kind}", hint=f"known: {FORMATS}")
    if not path.is_file():
        raise SourceError(f"{path}: no such file")
    return _guarded(reader(path), path)


def count_rows(source: str, path: Path, *, enough: int | None = None) -> int:
    """How many rows a source holds (counting stops at `enough`), unreadable ones counted."""
    plain = path.name.removesuffix(".gz").endswith(("jsonl", "ndjson"))
    rows = (
        _guarded(_lines(path), path)
        if plain and path.is_file() and not source.startswith("hf:")
        else read_rows(source, path)
    )
    return sum(1 for _ in islice(rows, enough))


class PromptFeed:
    """The first `stop` rows of one dataset as prompts, batch by batch; used by one thread."""

    def __init__(self, manifest: Manifest, dataset: Dataset, *, stop: int) -> None:
        self._dataset = dataset
        self._rows = enumerate(
            islice(read_rows(dataset.source, manifest.source_path(dataset)), stop)
        )
        self._occurrences: dict[bytes, int] = {}

    def batch(self, size: int) -> list[Prompt | InvalidRow]:
        """Up to `size` further rows; an empty list is the end."""
        return [self._prompt(index, row) for index, row in islice(self._rows, size)]

    def _prompt(self, index: int, row: Row) -> Prompt | InvalidRow:
        name = self._dataset.name
        if row.problem:
            return InvalidRow(name, index, row.line, row.problem)
        try:
            return make_prompt(
                row.value,
                dataset=name,
                index=index,
                turns=self._dataset.turns,
                occurrences=self._occurrences,
            )
        except RowError as error:
            return InvalidRow(name, index, row.line, str(error))


def _guarded(rows: Iterator[Row], path: Path) -> Iterator[Row]:
    try:
        yield from rows
    except (OSError, EOFError, ValueError, zlib.error, csv.Error) as error:
        raise SourceError(f"{path}: cannot be read on: {error}") from error


def _open(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _lines(path: Path) -> Iterator[Row]:
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if stripped := text.strip():
                yield Row(number, stripped)


def _jsonl(path: Path) -> Iterator[Row]:
    for row in _lines(path):
        yield _parsed(row.line, row.value)


def _parsed(line: int, data: bytes) -> Row:
    try:
        return Row(line, orjson.loads(data))
    except orjson.JSONDecodeError:
        pass
    try:  # orjson refuses escaped lone surrogates and NaN, which real sets hold
        return Row(line, json.loads(data))
    except (ValueError, RecursionError) as error:
        return Row(line, None, f"not valid JSON: {error}")


def _json(path: Path) -> Iterator[Row]:
    with _open(path) as file:
        try:
            value = json.loads(file.read())
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{path}: not valid JSON: {error}") from None
    if isinstance(value, dict):
        value = next((inner for inner in value.values() if isinstance(inner, list)), None)
    if not isinstance(value, list):
        raise SourceError(f"{path}: holds no list of rows")
    for number, item in enumerate(value, 1):
        yield Row(number, item)


def _csv(path: Path) -> Iterator[Row]:
    csv.field_size_limit(_CSV_FIELD_LIMIT)
    with _open(path) as raw:
        text = io.TextIOWrapper(raw, encoding="utf-8-sig", errors="surrogateescape", newline="")
        reader = csv.reader(text)
        header = next(reader, [])
        line = reader.line_num + 1
        for values in reader:
            if values:
                yield _csv_row(line, header, values)
            line = reader.line_num + 1  # a field may span lines: a row is named by its first


def _csv_row(line: int, header: list[str], values: list[str]) -> Row:
    if len(values) > len(header):
        return Row(line, None, "more fields than the header has")
    row: dict[str, Any] = {key: text for key, text in zip(header, values, strict=False) if text}
    for key, text in row.items():
        try:
            data = text.encode()
        except UnicodeEncodeError:
            return Row(line, None, f"{key} is not valid UTF-8")
        if key in _LISTS:
            inner = _parsed(line, data)
            if inner.problem:
                return Row(line, None, f"{key}: {inner.problem}")
            row[key] = inner.value
    return Row(line, row)


def _parquet(path: Path) -> Iterator[Row]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise SourceError(
            f"{path}: parquet needs the extra `hf`", hint="pip install 'eaglegen-tui[hf]'"
        ) from None
    number = 0
    for batch in parquet.ParquetFile(path).iter_batches(batch_size=256):
        for value in batch.to_pylist():
            number += 1
            yield Row(number, value)


def _hub(source: str) -> Iterator[Row]:
    try:
        from datasets import load_dataset
    except ImportError:
        raise SourceError(
            f"{source}: hub datasets need the extra `hf`", hint="pip install 'eaglegen-tui[hf]'"
        ) from None
    repo, _, split = source.removeprefix("hf:").rpartition(":")
    if not repo:
        raise SourceError(f"{source}: no split named", hint="write hf:repo/name:split")
    for number, value in enumerate(load_dataset(repo, split=split, streaming=True), 1):
        yield Row(number, value)
