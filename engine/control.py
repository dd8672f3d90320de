"""control.sock: commands in, snapshots out, as JSON lines (DESIGN §6). The engine's side."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engine.clock import Clock, iso
from engine.commands import Command, from_wire
from engine.errors import EaglegenError, UsageError
from engine.jsonlines import dump_line, load_line
from engine.picture import to_wire
from engine.snapshot import Snapshot
from engine.socketplace import bind

MAX_HZ, MAX_LINE = 10.0, 1 << 16
Apply = Callable[[Command], str]


class ControlServer:
    """Serves one run; lives in the engine's loop."""

    def __init__(
        self, folder: Path, *, clock: Clock, apply: Apply, snapshot: Callable[[], Snapshot]
    ) -> None:
        self._folder = folder
        self._clock = clock
        self._apply = apply
        self._snapshot = snapshot
        self._server: asyncio.AbstractServer | None = None
        self._path: Path | None = None
        self._peers: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Listen; returns why it cannot where the system has no place for a socket."""
        try:
            bound, self._path = bind(self._folder)
            self._server = await asyncio.start_unix_server(self._serve, sock=bound, limit=MAX_LINE)
        except OSError as error:
            return f"no control socket: {error}; `attach` and `control` will not reach this run"
        return ""

    async def close(self) -> None:
        """Say the last snapshot to whoever subscribed, then go."""
        if self._server is not None:
            self._server.close()
        await asyncio.sleep(0)
        for peer in self._peers:
            peer.cancel()
        await asyncio.gather(*self._peers, return_exceptions=True)
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a connection is served in a task
        self._peers.add(task)
        try:
            while line := await reader.readline():
                await self._answer(line, writer)
        except (ConnectionError, ValueError, asyncio.CancelledError):
            pass  # the peer left, or sent a line without an end
        finally:
            self._peers.discard(task)
            writer.close()

    async def _answer(self, line: bytes, writer: asyncio.StreamWriter) -> None:
        try:
            message = load_line(line)
        except ValueError:
            message = None
        if isinstance(message, dict) and message.get("command") == "subscribe":
            await self._stream(message, writer)
            return
        writer.write(dump_line(self._obey(message)))
        await writer.drain()

    def _obey(self, message: Any) -> dict[str, Any]:
        if not isinstance(message, Mapping):
            return {"ok": False, "error": "a command is one JSON object on one line"}
        try:
            said = self._apply(from_wire(message))
        except EaglegenError as error:
            return {"ok": False, "error": str(error)}
        return {"ok": True, "applied_at": iso(self._clock.wall()), "said": said}

    async def _stream(self, message: Mapping[str, Any], writer: asyncio.StreamWriter) -> None:
        """Whole snapshots until the peer leaves; one that is slow gets fewer, never a backlog."""
        try:
            pause = 1.0 / _hz(message.get("hz", 2))
        except UsageError as error:
            writer.write(dump_line({"ok": False, "error": str(error)}))
            await writer.drain()
            return
        while True:
            snapshot = self._snapshot()
            writer.write(dump_line(to_wire(snapshot)))
            await writer.drain()
            if snapshot.exit_code is not None:
                return
            await asyncio.sleep(pause)


def _hz(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= MAX_HZ:
        raise UsageError(f"subscribe: hz must be above 0 and at most {MAX_HZ:g}, not {value!r}")
    return float(value)
