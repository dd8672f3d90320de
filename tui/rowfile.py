"""Reads single lines of a run's growing JSON-lines files, from the end; blocks, so off the loop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from engine.disk.jsonlines import load_line

_BLOCK = 1 << 20
SEARCHED_BYTES = 256 << 20
"""How far back a row is looked for."""


class Place(NamedTuple):
    """Where a whole line stands, its newline not counted."""

    offset: int
    length: int


def backwards(path: Path, end: int | None = None) -> Iterator[Place]:
    """The whole lines that end before `end`, the last one first; none of a file that is not there.

    A last line without its newline is still being written, and is left out.
    """
    if not path.is_file():
        return
    with path.open("rb") as file:
        position = file.seek(0, 2) if end is None else end
        rest, stop = b"", -1
        while position > 0:
            begin = max(0, position - _BLOCK)
            file.seek(begin)
            text = file.read(position - begin) + rest
            cut = len(text)
            while (found := text.rfind(b"\n", 0, cut)) >= 0:
                line = begin + found + 1
                if stop >= line:
                    yield Place(line, stop - line)
                cut, stop = found, begin + found
            rest, position = text[:cut], begin
        if stop >= 0:
            yield Place(0, stop)


def after(path: Path, place: Place) -> Place | None:
    """The line after this one; None while there is none."""
    with path.open("rb") as file:
        begin = place.offset + place.length + 1
        file.seek(begin)
        line = file.readline()
    return Place(begin, len(line) - 1) if line.endswith(b"\n") else None


def before(path: Path, place: Place) -> Place | None:
    """The line before this one; None at the first."""
    return next(backwards(path, place.offset), None) if place.offset else None


def find(path: Path, identifier: str) -> Place | None:
    """The line of the row with this id, looked for from the end; None where it is too far back."""
    start = b'{"id":"' + identifier.encode("utf-8", "replace") + b'"'
    first: int | None = None
    for place in backwards(path):
        first = place.offset + place.length if first is None else first
        if read_bytes(path, Place(place.offset, min(place.length, len(start)))) == start:
            return place
        if first - place.offset > SEARCHED_BYTES:
            return None
    return None


def read_bytes(path: Path, place: Place) -> bytes:
    """The line as bytes."""
    with path.open("rb") as file:
        file.seek(place.offset)
        return file.read(place.length)


def read(path: Path, place: Place) -> dict[str, Any]:
    """The line as a record; raises ValueError where it is none, OSError where it cannot be read."""
    record = load_line(read_bytes(path, place))
    if not isinstance(record, dict):
        raise ValueError("the line holds no record")  # noqa: TRY004 - what stands there, not a type
    return record


def tail(path: Path, count: int) -> list[dict[str, Any]]:
    """The last `count` readable records, the newest first."""
    found: list[dict[str, Any]] = []
    for place in backwards(path):
        try:
            found.append(read(path, place))
        except ValueError:
            continue
        if len(found) == count:
            break
    return found
