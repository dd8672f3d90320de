"""The resume index: a ledger in a file, so that a resume reads only what was added since.

`rows.jsonl` stays the one truth. The index says how far it has read each of the dataset's files,
and is believed only where they still are what it read: no shorter, with the same bytes before
that place, with some of the rows where it says that they begin, and, where nothing was added since,
not written to at all. It can be deleted at any time.
"""

from __future__ import annotations

import os
import struct
import sys
import zlib
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

import orjson

from engine.disk.jsonlines import Position, dump, load_line
from engine.disk.keytable import Columns, Occurrences, generation_number, prompt_number
from engine.disk.ledger import ATTEMPTS, ROWS, SENT, Ledger, Open, split_id
from engine.disk.mark import Mark, Place
from engine.view.series import Quantiles

INDEX: Final = "resume.index"
READ: Final = (ROWS, ATTEMPTS, SENT)
"""The files that an index stands for; failures.jsonl is small and read anew."""
_MAGIC: Final = b"eaglegen resume index 1\n"
_HEAD: Final = struct.Struct("<QI")
"""Length and CRC-32 of the JSON that follows."""
_TAIL_BYTES: Final = 4096
_SAMPLES: Final = 32
_NUMBERS: Final = (
    *("rows", "doubled", "completion_tokens", "exportable_tokens", "cost_usd", "costs_known"),
    *("costs_unknown", "unpriced", "billed_unseen", "attempt_errors"),
)
_MARK: Final = ("bytes", "rows", "lines", "sha256", "dealt", "finished")
_COUNTERS: Final = ("exactness", "flags", "lengths", "finish_reasons")


class StaleIndexError(Exception):
    """An index that does not fit the files beside it; the text says why."""


def save_index(folder: Path, ledger: Ledger) -> None:
    """Replace a dataset's index; where that fails, the next resume only takes longer."""
    ledger.seal()
    columns = _columns(ledger)
    head = dump(_record(folder, ledger, columns))
    temporary = folder / f".{INDEX}.new"
    try:
        _sync(folder)
        with temporary.open("wb") as file:
            file.write(_MAGIC + _HEAD.pack(len(head), zlib.crc32(head)) + head)
            for column in columns:
                column.tofile(file)
        temporary.replace(folder / INDEX)
    except OSError:  # a full disk needs the room
        with suppress(OSError):
            temporary.unlink()


def _sync(folder: Path) -> None:
    """Power loss may not take from a file what the index says is in it."""
    for name in READ:
        path = folder / name
        if path.is_file():
            with path.open("rb") as file:
                os.fsync(file.fileno())


def load_index(folder: Path, *, marked: bool = True) -> Ledger | None:
    """The ledger in a dataset's index, with its mark if `marked`; None where there is no index.

    Raises StaleIndexError where it is damaged or no longer true.
    """
    path = folder / INDEX
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            record = _read_head(file)
            ledger = _ledger(record, marked=marked)
            for column, (length, crc) in zip(_columns(ledger), record["columns"], strict=marked):
                column.fromfile(file, length)
                if zlib.crc32(column) != crc:
                    raise StaleIndexError("it is damaged")
    except (OSError, EOFError, ValueError, KeyError, TypeError, struct.error):
        raise StaleIndexError("it is damaged") from None
    _compare(folder, ledger, record["tails"], record.get("written", {}))
    return ledger


def _columns(ledger: Ledger) -> list[array[int]]:
    return [
        *(ledger.generations.keys, ledger.generations.values),
        *(ledger.prompts.keys, ledger.prompts.values),
        *(ledger.mark.occurrences.columns() if ledger.mark else ()),
    ]


def _record(folder: Path, ledger: Ledger, columns: list[array[int]]) -> dict[str, Any]:
    return {
        "byteorder": sys.byteorder,
        "columns": [(len(column), zlib.crc32(column)) for column in columns],
        "positions": {name: asdict(ledger.positions[name]) for name in READ},
        "tails": {name: _tail(folder / name, ledger.positions[name].bytes) for name in READ},
        "written": {name: _written(folder / name, ledger.positions[name].bytes) for name in READ},
        "numbers": {name: getattr(ledger, name) for name in _NUMBERS},
        "counters": {name: list(getattr(ledger, name).items()) for name in _COUNTERS},
        "latency": ledger.latency.buckets(),
        "open": {identifier: asdict(found) for identifier, found in ledger.open.items()},
        "unknown": ledger.unknown,
        "mark": _mark_record(ledger.mark) if ledger.mark else None,
    }


def _mark_record(mark: Mark) -> dict[str, Any]:
    fields = {name: getattr(mark, name) for name in _MARK}
    return fields | {"open": [tuple(place) for place in mark.open], "used": len(mark.occurrences)}


def _mark(record: dict[str, Any]) -> Mark:
    fields = {name: record[name] for name in _MARK}
    places = [Place(*place) for place in record["open"]]
    return Mark(**fields, open=places, occurrences=Occurrences.unfilled(record["used"]))


def _ledger(record: dict[str, Any], *, marked: bool) -> Ledger:
    counters = {name: Counter(dict(pairs)) for name, pairs in record["counters"].items()}
    fields: dict[str, Any] = record["numbers"] | counters
    return Ledger(
        positions={name: Position(**fields) for name, fields in record["positions"].items()},
        open={identifier: Open(**fields) for identifier, fields in record["open"].items()},
        unknown=record["unknown"],
        mark=_mark(record["mark"]) if record["mark"] and marked else None,
        latency=Quantiles.of(record["latency"]),
        **fields,
    )


def _read_head(file: IO[bytes]) -> dict[str, Any]:
    if file.read(len(_MAGIC)) != _MAGIC:
        raise StaleIndexError("another version wrote it")
    length, crc = _HEAD.unpack(file.read(_HEAD.size))
    if length > os.fstat(file.fileno()).st_size:
        raise StaleIndexError("it is damaged")
    head = file.read(length)
    if zlib.crc32(head) != crc:
        raise StaleIndexError("it is damaged")
    record: dict[str, Any] = orjson.loads(head)
    if record["byteorder"] != sys.byteorder:
        raise StaleIndexError("another kind of machine wrote it")
    return record


def _compare(
    folder: Path, ledger: Ledger, tails: dict[str, int], written: dict[str, int | None]
) -> None:
    for name in READ:
        path, end = folder / name, ledger.positions[name].bytes
        size = path.stat().st_size if path.is_file() else 0
        if size < end:
            raise StaleIndexError(f"{name} is shorter than it was")
        moment = written.get(name)
        edited = moment is not None and size == end and _written(path, end) != moment
        if edited or _tail(path, end) != tails[name]:
            raise StaleIndexError(f"{name} has changed")
    if not all(_stands(folder / ROWS, ledger.generations, place) for place in _sample(ledger)):
        raise StaleIndexError(f"{ROWS} has changed")


def _written(path: Path, end: int) -> int | None:
    """When a file that ends at this place was last written to, in nanoseconds; None of others."""
    found = path.stat() if path.is_file() else None
    return found.st_mtime_ns if found is not None and found.st_size == end else None


def _tail(path: Path, end: int) -> int:
    """CRC-32 of the bytes before a place; 0 of none."""
    if not end:
        return 0
    with path.open("rb") as file:
        begin = max(0, end - _TAIL_BYTES)
        file.seek(begin)
        return zlib.crc32(file.read(end - begin))


def _sample(ledger: Ledger) -> Iterator[int]:
    """Some rows: by their hashes they stand all over the file."""
    count = len(ledger.generations)
    return iter(range(0, count, max(1, count // _SAMPLES)))


def _stands(path: Path, generations: Columns, place: int) -> bool:
    """Whether the row of a generation begins where the index says."""
    with path.open("rb") as file:
        file.seek(generations.values[place])
        line = file.readline()
    try:
        key, turn = split_id(load_line(line)["id"])
        return generation_number(prompt_number(key), turn) == generations.keys[place]
    except (ValueError, TypeError, KeyError, AttributeError):
        return False
