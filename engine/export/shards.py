"""Writes records into one file or into shards, beside their final place until all are whole."""

from __future__ import annotations

import glob
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class RecordFile(Protocol):
    """A file of records that is being written."""

    def write(self, line: bytes) -> None:
        """Append one record, given as JSON."""
        ...

    def close(self) -> None:
        """End the file."""
        ...


class FileMaker(Protocol):
    """Opens a new file of records."""

    def __call__(self, path: Path) -> RecordFile:
        """A file at this place, which holds nothing yet."""
        ...


@dataclass(frozen=True, slots=True)
class ShardLimits:
    """How much goes into one file; no limit: all into a single file that is no shard."""

    rows: int | None = None
    tokens: int | None = None
    """A longer row has a shard of its own."""

    @property
    def sharded(self) -> bool:
        """Whether there are shards at all."""
        return self.rows is not None or self.tokens is not None

    def full(self, rows: int, tokens: int, more: int) -> bool:
        """Whether a shard with these rows and tokens has no room for a row of `more` tokens."""
        if not rows:
            return False
        too_many = self.rows is not None and rows >= self.rows
        return too_many or (self.tokens is not None and tokens + more > self.tokens)


class LinesFile:
    """JSON lines."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")

    def write(self, line: bytes) -> None:
        """Append one record."""
        self._file.write(line + b"\n")

    def close(self) -> None:
        """End the file."""
        self._file.close()


class ShardWriter:
    """Spreads records over files by the limits; the files have temporary names."""

    def __init__(self, out: Path, limits: ShardLimits, make: FileMaker) -> None:
        self._out = out
        self._limits = limits
        self._make = make
        self._current: RecordFile | None = None
        self._rows = 0
        self._tokens = 0
        self.paths: list[Path] = []
        """The files so far, at their temporary places."""
        self.discard()

    def add(self, line: bytes, tokens: int) -> None:
        """Append one record of so many tokens."""
        if self._current is None or self._limits.full(self._rows, self._tokens, tokens):
            self._current = self._next()
        self._current.write(line)
        self._rows += 1
        self._tokens += tokens

    def close(self) -> None:
        """End the last file."""
        if self._current is not None:
            self._current.close()
            self._current = None

    def discard(self) -> None:
        """Remove all temporary files, those of an export that was killed too."""
        for path in self._out.parent.glob(f".{glob.escape(self._out.name)}.*.new"):
            with suppress(FileNotFoundError):
                path.unlink()

    def places(self) -> list[tuple[Path, Path]]:
        """(temporary, final) place of each file."""
        if not self._limits.sharded:
            return [(path, self._out) for path in self.paths]
        count = len(self.paths)
        return [(path, shard(self._out, n, count)) for n, path in enumerate(self.paths)]

    def _next(self) -> RecordFile:
        self.close()
        path = self._out.with_name(f".{self._out.name}.{len(self.paths):05d}.new")
        self.paths.append(path)
        self._rows = self._tokens = 0
        return self._make(path)


def shard(out: Path, number: int, count: int) -> Path:
    """The place of one shard: `train-00002-of-00005.jsonl` beside `train.jsonl`."""
    return out.with_name(f"{out.stem}-{number:05d}-of-{count:05d}{out.suffix}")


def shards_at(out: Path) -> list[Path]:
    """Shards that lie there already, of any count."""
    digits = "[0-9]" * 5
    pattern = f"{glob.escape(out.stem)}-{digits}-of-{digits}{glob.escape(out.suffix)}"
    return sorted(out.parent.glob(pattern))
