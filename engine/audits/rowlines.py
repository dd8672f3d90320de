"""The whole lines of rows.jsonl, in pieces that several processes can share, and read by place.

A file that is being written is read up to the last newline it had when it was looked at first,
so that two passes over a live run see the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from engine.jsonlines import load_line

PIECE_BYTES: Final = 4 << 20
_BLOCK: Final = 1 << 16
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[0-9a-f]{16}\.\d{1,9}#\d{1,6}")
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "id": str,
    "index": int,
    "turn": int,
    "messages": list,
    "reasoning": (str, type(None)),
    "content": (str, type(None)),
    "tool_calls": (list, type(None)),
    "prompt_ids": (list, type(None)),
    "completion_ids": (list, type(None)),
    "exactness": str,
    "flags": list,
    "finish_reason": str,
    "provider": (str, type(None)),
    "usage": dict,
}


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
    if problem := _problem(row, dataset):
        raise ValueError(problem)
    valid: dict[str, Any] = row
    return valid


def _problem(row: Any, dataset: str) -> str:
    if not isinstance(row, dict):
        return "a line that is no row"
    for name, kinds in _TYPES.items():
        if not isinstance(row.get(name), kinds):
            return f"no row: {name} is missing or of a wrong type"
    if not _ID.fullmatch(row["id"]):
        return f"no row: {row['id'][:80]!r} is no id"
    if not row["id"].startswith(f"{dataset}/"):
        return f"{row['id']} belongs to another dataset"
    if not all(isinstance(message, dict) for message in row["messages"]):
        return "no row: a message is no object"
    return ""


def read_at(path: Path, places: list[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    """The rows at these (offset, length) places, which were found valid before."""
    with path.open("rb") as file:
        for offset, length in places:
            file.seek(offset)
            row: dict[str, Any] = load_line(file.read(length))
            yield row
