"""Read prompt files lazily: jsonl, json and csv, each also .gz; parquet and hf: with the extra."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import orjson

from engine.disk.keytable import Occurrences
from engine.disk.mark import Mark, Place, Prefix
from engine.errors import SourceError
from engine.feed.prompts import Counts, InvalidRow, Prompt, RowError, make_prompt
from engine.manifest import Dataset, Manifest

FORMATS = "jsonl, json, csv (each also .gz), parquet, hf:repo/name:split"
_CSV_FIELD_LIMIT = 1 << 30
_LISTS = frozenset({"messages", "conversations", "turns"})
"""Columns of a csv whose fields are JSON."""


class Row(NamedTuple):
    """One row of a source; `value` is None where `problem` says why it could not be read."""

    line: int
    value: Any
    problem: str = ""
    begin: int = -1
    """Where it stands in a file of lines, in bytes."""
    end: int = -1


def read_rows(source: str, path: Path, prefix: Prefix | None = None) -> Iterator[Row]:
    """All rows of a source, in order; blank lines are no rows. Raises SourceError.

    `prefix` is told the bytes of a file of lines.
    """
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
    return _guarded(_jsonl(path, prefix=prefix) if reader is _jsonl else reader(path), path)


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

    def __init__(
        self,
        manifest: Manifest,
        dataset: Dataset,
        *,
        stop: int,
        mark: Mark | None = None,
        prefix: Prefix | None = None,
    ) -> None:
        """Begin with the rows that `mark` names, then go on behind it; `prefix`: what is before."""
        self._dataset = dataset
        path = manifest.source_path(dataset)
        self._open: Iterator[tuple[Place, Row]] = iter(())
        self.prefix = prefix or Prefix()
        if mark is None:
            rows, first = read_rows(dataset.source, path, self.prefix), 0
            self.occurrences = Occurrences()
        else:
            lines = _jsonl(path, mark.bytes, mark.lines, self.prefix)
            rows, first = _guarded(lines, path), mark.rows
            self.occurrences = mark.occurrences
            self._open = _at(path, mark.open)
        self._rows = enumerate(islice(rows, stop - first), first)
        self.places: list[tuple[int, int]] = []
        """(line, byte offset) of each row of the last batch."""
        self.end = Place(first, mark.lines if mark else 0, mark.bytes if mark else 0, 0)
        """Where the next row begins, if the source is a file of lines."""

    def batch(self, size: int) -> list[Prompt | InvalidRow]:
        """Up to `size` further rows; an empty list is the end."""
        self.places = []
        found: list[Prompt | InvalidRow] = []
        for place, row in islice(self._open, size):
            self.places.append((row.line, row.begin))
            found.append(self._prompt(place.row, row, _Numbered(place.occurrence)))
        for index, row in islice(self._rows, size - len(found)):
            self.places.append((row.line, row.begin))
            self.end = Place(index + 1, row.line, row.end, 0)
            found.append(self._prompt(index, row, self.occurrences))
        return found

    def _prompt(self, index: int, row: Row, occurrences: Counts) -> Prompt | InvalidRow:
        name = self._dataset.name
        if row.problem:
            return InvalidRow(name, index, row.line, row.problem)
        try:
            return make_prompt(
                row.value,
                dataset=name,
                index=index,
                turns=self._dataset.turns,
                occurrences=occurrences,
            )
        except RowError as error:
            return InvalidRow(name, index, row.line, str(error))


class _Numbered:
    """Counts for one prompt whose number among its doubles is known."""

    def __init__(self, occurrence: int) -> None:
        self._occurrence = occurrence

    def get(self, key: bytes, default: int, /) -> int:
        """The known number."""
        del key, default
        return self._occurrence

    def __setitem__(self, key: bytes, count: int, /) -> None:
        """All other doubles are counted already."""


def is_plain(source: str, path: Path) -> bool:
    """Whether a source is a file of lines in which a place can be found again."""
    return not source.startswith("hf:") and path.suffix.lower() in {".jsonl", ".ndjson"}


def _at(path: Path, places: list[Place]) -> Iterator[tuple[Place, Row]]:
    """The rows at these places, which were read before."""
    with path.open("rb") as file:
        for place in places:
            file.seek(place.begin)
            line = file.readline()
            end = place.begin + len(line)
            text = line.removeprefix(codecs.BOM_UTF8) if place.line == 1 else line
            value, problem = _value(text.strip())
            yield place, Row(place.line, value, problem, place.begin, end)


def _guarded(rows: Iterator[Row], path: Path) -> Iterator[Row]:
    try:
        yield from rows
    except (OSError, EOFError, ValueError, zlib.error, csv.Error) as error:
        raise SourceError(f"{path}: cannot be read on: {error}") from error


def _open(path: Path) -> IO[bytes]:
    return cast("IO[bytes]", gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _lines(
    path: Path, end: int = 0, before: int = 0, prefix: Prefix | None = None
) -> Iterator[Row]:
    """Lines that are not blank, from a byte offset on, with so many lines before it."""
    with _open(path) as file:
        file.seek(end)
        for number, line in enumerate(file, before + 1):
            begin, end = end, end + len(line)
            if prefix is not None:
                prefix.add(line)
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if stripped := text.strip():
                yield Row(number, stripped, "", begin, end)


def _jsonl(
    path: Path, begin: int = 0, number: int = 0, prefix: Prefix | None = None
) -> Iterator[Row]:
    for row in _lines(path, begin, number, prefix):
        value, problem = _value(row.value)
        yield Row(row.line, value, problem, row.begin, row.end)


def _value(data: bytes) -> tuple[Any, str]:
    """A JSON value, or None and what is wrong with the text."""
    try:
        return orjson.loads(data), ""
    except orjson.JSONDecodeError:
        pass
    try:  # orjson refuses escaped lone surrogates and NaN, which real sets hold
        return json.loads(data), ""
    except (ValueError, RecursionError) as error:
        return None, f"not valid JSON: {error}"


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
            value, problem = _value(data)
            if problem:
                return Row(line, None, f"{key}: {problem}")
            row[key] = value
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
