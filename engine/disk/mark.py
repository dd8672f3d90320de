"""How far a source was read, and what of that is unfinished: the rest need not be read again.

A mark stands in the resume index. It says that all rows of the source's first bytes are finished
but a few, which it names. It holds only while these bytes are the same (their SHA-256 is), and
only with the very rows on disk that the index beside it stands for.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from engine.disk.keytable import Occurrences

_BLOCK: Final = 1 << 20


class Place(NamedTuple):
    """Where a row of a source stands."""

    row: int
    """Among its rows, from 0."""
    line: int
    """From 1."""
    begin: int
    """In bytes."""
    occurrence: int
    """The number of the prompt among its doubles, from 0."""


class Prefix:
    """SHA-256 of what was read of a file so far.

    Of the very bytes that became prompts: the file may be replaced while it is read.
    """

    def __init__(self) -> None:
        self._sha = hashlib.sha256()

    def add(self, data: bytes) -> None:
        """What was read next."""
        self._sha.update(data)

    def sha256(self) -> str:
        """In hexadecimal."""
        return self._sha.hexdigest()

    @classmethod
    def of(cls, path: Path, end: int) -> Prefix:
        """The first `end` bytes of a file, or all of a shorter one; raises OSError."""
        made = cls()
        with path.open("rb") as file:
            while end and (block := file.read(min(_BLOCK, end))):
                made.add(block)
                end -= len(block)
        return made


@dataclass(slots=True)
class Mark:
    """How far a source was read."""

    bytes: int
    rows: int
    lines: int
    sha256: str
    """Of these bytes."""
    dealt: int
    """Rows of this shard."""
    finished: int
    """Prompts that have all their rows on disk."""
    open: list[Place]
    """Rows that are to be read again: unfinished, failed, or unreadable."""
    occurrences: Occurrences = field(default_factory=Occurrences)
