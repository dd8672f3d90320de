"""Append lines to the run's files: grouped, never dropped, counted only once the OS has them.

The one writer of a run directory's JSON-lines files. A write that fails (disk full, read-only,
vanished) is repeated from the very byte where it stopped until it succeeds; meanwhile `trouble`
says why, and whatever was put stays in memory.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiofiles

from engine.jsonlines import dump_line

SYNC_EVERY_S = 1.0
RETRY_EVERY_S = 1.0

Done = Callable[[], None]


class Sink:
    """`put` a record; its `done` is called in the loop once the bytes are with the OS."""

    def __init__(self, folder: Path, *, on_change: Callable[[str], None] = lambda _: None) -> None:
        self._folder = folder
        self._on_change = on_change
        self._pending: dict[str, bytearray] = {}
        self._done: list[Done] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._files: dict[str, Any] = {}
        self._dirty: set[str] = set()
        self._writer = ThreadPoolExecutor(1, "sink-write")
        self._syncer = ThreadPoolExecutor(1, "sink-sync")
        self.trouble = ""
        """Why nothing can be written at present; empty while all is well."""

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
        finally:
            syncing.cancel()
            await asyncio.gather(syncing, return_exceptions=True)
            await self._sync()
            await self._close_files()

    def close(self) -> None:
        """Let `run` end once everything is written."""
        self._closing = True
        self._wake.set()

    async def _write_batch(self) -> None:
        pending, self._pending = self._pending, {}
        done, self._done = self._done, []
        waiters, self._waiters = self._waiters, []
        for name, data in pending.items():
            await self._write(name, data)
        for call in done:
            call()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _write(self, name: str, data: bytearray) -> None:
        rest = memoryview(data)
        while rest:
            try:
                file = await self._open(name)
                rest = rest[await file.write(rest) :]
            except OSError as error:
                self._say(f"{name}: {error.strerror or error}")
                await asyncio.sleep(RETRY_EVERY_S)
            else:
                self._dirty.add(name)
        self._say("")

    async def _open(self, name: str) -> Any:
        file = self._files.get(name)
        if file is None:
            path = self._folder / name
            if not self._folder.is_dir():
                raise FileNotFoundError(2, "the run directory has vanished")
            path.parent.mkdir(exist_ok=True)
            file = await aiofiles.open(path, "ab", buffering=0, executor=self._writer)
            self._files[name] = file
        return file

    async def _sync_forever(self) -> None:
        while True:
            await asyncio.sleep(SYNC_EVERY_S)
            await self._sync()

    async def _sync(self) -> None:
        loop = asyncio.get_running_loop()
        for name in tuple(self._dirty):
            self._dirty.discard(name)
            file = self._files[name]
            problem = await loop.run_in_executor(
                self._syncer, _fsync, file.fileno(), self._folder / name
            )
            if problem:
                self._dirty.add(name)
                self._say(f"{name}: {problem}")
                self._files.pop(name, None)
                self._dirty.discard(name)

    async def _close_files(self) -> None:
        for file in self._files.values():
            await file.close()
        self._files.clear()
        self._writer.shutdown(wait=False)
        self._syncer.shutdown(wait=False)

    def _say(self, trouble: str) -> None:
        if trouble != self.trouble:
            self.trouble = trouble
            self._on_change(trouble)


def _fsync(descriptor: int, path: Path) -> str:
    """Reach the disk; also notice a file that was removed or replaced under us."""
    try:
        os.fsync(descriptor)
        if path.stat().st_ino != os.fstat(descriptor).st_ino:
            return "was replaced by another file"
    except FileNotFoundError:
        return "has vanished"
    except OSError as error:
        return error.strerror or str(error)
    return ""
