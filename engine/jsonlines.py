"""JSON lines as bytes: write any text that was paid for, read whatever stands on disk."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import orjson


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
            try:
                record = load_line(line)
            except ValueError:
                record = None
            if isinstance(record, dict):
                yield offset, record
            offset += len(line)


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


def _whole(line: bytes) -> bool:
    try:
        return isinstance(load_line(line), dict)
    except ValueError:
        return False


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
