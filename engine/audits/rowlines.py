"""The whole lines of rows.jsonl, in pieces that several processes can share, and read by place.

A file that is being written is read up to the last newline it had when it was looked at first,
so that two passes over a live run see the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.disk.entries import filled, row_problem
from engine.disk.jsonlines import load_line

PIECE_BYTES: Final = 4 << 20
_BLOCK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a file that begins and ends with a line."""

    path: Path
    begin: int
    end: int


def whole_end(path: Path) -> int:
    """Offset after the last newline of a file; 0 where it has none or there is no file."""
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        position = file.seek(0, 2)
        while position > 0:
            begin = max(0, position - _BLOCK)
            file.seek(begin)
            found = file.read(position - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            position = begin
    return 0


def pieces(path: Path, end: int, size: int = PIECE_BYTES) -> Iterator[Piece]:
    """The first `end` bytes in pieces of about `size`."""
    begin = 0
    if not end:
        return
    with path.open("rb") as file:
        while begin < end:
            file.seek(min(end - 1, begin + size))
            file.readline()
            stop = min(end, file.tell())
            yield Piece(path, begin, stop)
            begin = stop


def lines(piece: Piece) -> Iterator[tuple[int, bytes]]:
    """(byte offset, line without its newline) of every line of a piece."""
    offset = piece.begin
    with piece.path.open("rb") as file:
        file.seek(piece.begin)
        text = file.read(piece.end - piece.begin)
    for line in text.removesuffix(b"\n").split(b"\n"):
        yield offset, line
        offset += len(line) + 1


def parse_row(line: bytes, dataset: str) -> dict[str, Any]:
    """A line of a dataset's rows.jsonl; raises ValueError that says why it is none."""
    try:
        row = load_line(line)
    except ValueError:
        raise ValueError("a line that is no JSON") from None
    if problem := row_problem(row, dataset):
        raise ValueError(problem)
    return filled(row)


def read_at(path: Path, places: list[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """The rows at these (offset, length) places, which were found valid before."""
    with path.open("rb") as file:
        for offset, length in places:
            file.seek(offset)
            yield filled(load_line(file.read(length)))
