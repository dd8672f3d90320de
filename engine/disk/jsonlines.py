"""JSON lines as bytes: write any text that was paid for, read whatever stands on disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import orjson

ODD_NAMED = 5
"""Lines left out that are named by their numbers; all are counted."""
_BUFFER = 1 << 18


@dataclass(slots=True)
class Position:
    """How far a file has been read, and what of it was left out."""

    bytes: int = 0
    lines: int = 0
    odd: int = 0
    """Lines that are no records."""
    odd_first: list[int] = field(default_factory=list)
    """The numbers of the first of them, from 1."""

    def leave_out(self) -> None:
        """Note that the line read last is no record."""
        self.odd += 1
        if len(self.odd_first) < ODD_NAMED:
            self.odd_first.append(self.lines)


def dump(record: Any) -> bytes:
    """JSON bytes of anything; lone surrogates are kept as escapes."""
    try:
        return orjson.dumps(record)
    except TypeError:  # orjson writes no lone surrogates, and a reply that holds one was paid for
        return json.dumps(record, separators=(",", ":")).encode()


def dump_line(record: Any) -> bytes:
    """One JSON line with its newline."""
    return dump(record) + b"\n"


def load_line(line: bytes) -> Any:
    """Parse one line; raises ValueError."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        pass
    try:
        return json.loads(line)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def read_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Every readable line of a file as (byte offset, record); a missing file holds none.

    An unreadable line in the middle is passed over here; `verify` reports it.
    """
    if not path.is_file():
        return
    offset = 0
    with path.open("rb") as file:
        for line in file:
            record = _load(line)
            if isinstance(record, dict):
                yield offset, record
            offset += len(line)


def read_on(
    path: Path, position: Position, problem: Callable[[Any], str]
) -> Iterator[tuple[int, Any]]:
    """The records of a file's whole lines from `position` on, which moves with them.

    Yields (byte offset, record). Lines of which `problem` says that they are no records are noted
    in the position and otherwise left alone; a last line that is still being written is not read.
    """
    if not path.is_file():
        return
    with path.open("rb", buffering=_BUFFER) as file:
        file.seek(position.bytes)
        for line in file:
            if not line.endswith(b"\n"):
                return
            offset = position.bytes
            position.bytes += len(line)
            position.lines += 1
            record = _load(line)
            if problem(record):
                position.leave_out()
            else:
                yield offset, record


def repair_tail(path: Path) -> bytes:
    """Make a file end on a whole line after a kill; returns what was moved aside.

    A last line that lacks only its newline is whole and gets it. Anything else goes to
    `<name>.torn` beside the file, where it can be looked at, and is never deleted.
    """
    if not path.is_file():
        return b""
    with path.open("r+b") as file:
        start = _last_line_start(file)
        file.seek(start)
        tail = file.read()
        if not tail or (tail.endswith(b"\n") and _whole(tail)):
            return b""
        if _whole(tail):
            file.write(b"\n")
            return b""
        with path.with_name(path.name + ".torn").open("ab") as aside:
            aside.write(tail if tail.endswith(b"\n") else tail + b"\n")
        file.truncate(start)
    return tail


def _load(line: bytes) -> Any:
    """A line's value; None where it is no JSON."""
    try:
        return load_line(line)
    except ValueError:
        return None


def _whole(line: bytes) -> bool:
    return isinstance(_load(line), dict)


def _last_line_start(file: IO[bytes], block: int = 1 << 16) -> int:
    end = file.seek(0, 2)
    position = end - 1  # a newline that ends the file belongs to its last line
    while position > 0:
        begin = max(0, position - block)
        file.seek(begin)
        found = file.read(position - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        position = begin
    return 0
