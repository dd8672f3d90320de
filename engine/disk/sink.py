"""Append lines to the run's files: grouped, never dropped, counted only once the OS has them.

The one writer of a run directory's JSON-lines files. A write that fails (disk full, read-only,
vanished) is repeated from the very byte where it stopped until it succeeds; meanwhile `trouble`
says why, and whatever was put stays in memory. What was written stays in memory too until it is
synced, so that a file that vanished under us can be written again.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiofiles

from engine.disk.jsonlines import dump_line

SYNC_EVERY_S = 1.0
RETRY_EVERY_S = 1.0
SLOW_S = 3.0
"""A write that takes longer than this is a disk in trouble."""
GATHER_S = 0.005
"""What comes this soon after a write shares the next one: each costs two changes of thread."""

Done = Callable[[], None]


class Sink:
    """`put` a record; its `done` is called in the loop once the bytes are with the OS."""

    def __init__(self, folder: Path, *, owned: Callable[[], bool] = lambda: True) -> None:
        self._folder = folder
        self._owned = owned
        self._pending: dict[str, bytearray] = {}
        self._done: list[Done] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._files: dict[str, Any] = {}
        self._unsynced: dict[str, bytearray] = {}
        """Per file the lines since the last one that surely reached the disk."""
        self._lost: set[str] = set()
        """Files whose path leads elsewhere now: to be opened anew, and written again."""
        self._writer = ThreadPoolExecutor(1, "sink-write")
        self._syncer = ThreadPoolExecutor(1, "sink-sync")
        self._write_trouble = ""
        self._sync_trouble = ""
        self._writing: tuple[str, float] | None = None
        """The file that is being written, since when by the loop's clock."""
        self.fault: Exception | None = None
        """The first exception of a `done` callback; writing goes on, `run` raises it at its end."""

    @property
    def owned(self) -> bool:
        """Whether the run directory is still this run's."""
        return self._owned()

    @property
    def trouble(self) -> str:
        """Why nothing can be written at present; empty while all is well."""
        return self._write_trouble or self._stalled() or self._sync_trouble

    def _stalled(self) -> str:
        if self._writing is None:
            return ""
        name, since = self._writing
        seconds = asyncio.get_running_loop().time() - since
        return f"{name}: a write has taken {seconds:.0f} s so far" if seconds > SLOW_S else ""

    def put(self, name: str, record: Any, done: Done | None = None) -> None:
        """Queue one record for a file (a path below the run directory)."""
        self.put_bytes(name, dump_line(record), done)

    def put_bytes(self, name: str, line: bytes, done: Done | None = None) -> None:
        """Queue one line that is already encoded."""
        self._pending.setdefault(name, bytearray()).extend(line)
        if done is not None:
            self._done.append(done)
        self._wake.set()

    async def commit(self) -> None:
        """Return once everything that was put before is with the OS."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._wake.set()
        await waiter

    async def run(self) -> None:
        """Write until `close`; one batch for each file at a time."""
        syncing = asyncio.create_task(self._sync_forever())
        try:
            while not (self._closing and not self._pending and not self._waiters):
                await self._wake.wait()
                self._wake.clear()
                await self._write_batch()
                await asyncio.sleep(GATHER_S)
            syncing.cancel()
            await self._sync()
            while any(self._unsynced.get(name) for name in self._lost):
                await self._write_batch()
                await self._sync()
        finally:
            syncing.cancel()
            await asyncio.gather(syncing, return_exceptions=True)
            self._refuse_waiters()
            await self._close_files()
        if self.fault is not None:
            raise self.fault

    def close(self) -> None:
        """Let `run` end once everything is written."""
        self._closing = True
        self._wake.set()

    async def _write_batch(self) -> None:
        pending, self._pending = self._pending, {}
        done, self._done = self._done, []
        waiters, self._waiters = self._waiters, []
        for name in sorted(self._lost | pending.keys(), key=_can_wait):
            await self._write(name, pending.get(name, bytearray()))
        for call in done:
            try:
                call()
            except Exception as error:  # noqa: BLE001 - kept for `run`: other rows must be written
                self.fault = self.fault or error
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _write(self, name: str, data: bytearray) -> None:
        rest = memoryview(data)
        while rest or name in self._lost:
            try:
                if name in self._lost:
                    rest = memoryview(await self._reopen(name) + rest)
                rest = rest[await self._write_some(name, rest) :]
            except OSError as error:
                self._write_trouble = f"{name}: {error.strerror or error}"
                await asyncio.sleep(RETRY_EVERY_S)
            else:
                self._write_trouble = ""

    async def _write_some(self, name: str, data: memoryview) -> int:
        self._writing = (name, asyncio.get_running_loop().time())
        try:
            file = await self._open(name)
            written: int = await file.write(data)
        finally:
            self._writing = None
        self._unsynced.setdefault(name, bytearray()).extend(data[:written])
        return written

    async def _open(self, name: str) -> Any:
        file = self._files.get(name)
        if file is None:
            path = self._folder / name
            if not self._folder.is_dir():
                raise FileNotFoundError(2, "the run directory has vanished")
            if not self.owned:
                raise FileExistsError(17, "the run directory now belongs to another run")
            path.parent.mkdir(exist_ok=True)
            file = await aiofiles.open(path, "ab", buffering=0, executor=self._writer)
            self._files[name] = file
        return file

    async def _reopen(self, name: str) -> bytearray:
        """Open a lost file's path anew; returns the lines that are not in what lies there."""
        stale = self._files.pop(name, None)
        if stale is not None:
            await stale.close()
        await self._open(name)
        missing = await asyncio.get_running_loop().run_in_executor(
            self._writer, _missing, self._folder / name, self._unsynced.get(name, bytearray())
        )
        self._unsynced.pop(name, None)
        self._lost.discard(name)
        return missing

    async def _sync_forever(self) -> None:
        while True:
            await asyncio.sleep(SYNC_EVERY_S)
            await self._sync()

    async def _sync(self) -> None:
        loop = asyncio.get_running_loop()
        trouble = ""
        for name in self._files.keys() - self._lost:
            size = len(self._unsynced.get(name, b""))
            descriptor, path = self._files[name].fileno(), self._folder / name
            try:
                here = await loop.run_in_executor(
                    self._syncer, _reach_disk, descriptor, path, size > 0
                )
            except OSError as error:
                trouble = f"{name}: {error.strerror or error}"
            else:
                self._note_synced(name, size, here=here)
        self._sync_trouble = trouble

    def _note_synced(self, name: str, size: int, *, here: bool) -> None:
        lines = self._unsynced.get(name, bytearray())
        if here:
            del lines[: lines.rfind(b"\n", 0, size) + 1]  # a begun line stays whole
        else:
            self._lost.add(name)
            self._wake.set()

    def _refuse_waiters(self) -> None:
        """Nobody may wait for a writer that has ended."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(RuntimeError("the sink has ended"))

    async def _close_files(self) -> None:
        for file in self._files.values():
            await file.close()
        self._files.clear()
        self._writer.shutdown(wait=False)
        self._syncer.shutdown(wait=False)


def _can_wait(name: str) -> bool:
    """What announces a request comes last: it has not left yet, the rest is paid for."""
    return name.endswith("/sent.jsonl")


def _reach_disk(descriptor: int, path: Path, dirty: bool) -> bool:
    """Sync what is dirty; False where the path does not lead to this file any more."""
    if dirty:
        os.fsync(descriptor)
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except (FileNotFoundError, NotADirectoryError):
        return False


def _missing(path: Path, lines: bytearray) -> bytearray:
    """Those of the lines that do not stand at the end of the file.

    A folder that was moved away and back, or a file that an editor replaced, holds some of them.
    """
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 2 * len(lines)))
        end = file.read()
    held = set(end.splitlines(keepends=True))
    missing = (line for line in bytes(lines).splitlines(keepends=True) if line not in held)
    begun = b"\n" if end and not end.endswith(b"\n") else b""
    return bytearray(begun + b"".join(missing))
