"""control.sock: commands in, snapshots out, as JSON lines (DESIGN §6). The engine's side."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.clock import Clock, iso
from engine.commands import Command, from_wire
from engine.disk.jsonlines import dump_line, load_line
from engine.errors import EaglegenError, UsageError
from engine.link.picture import to_line
from engine.link.socketplace import bind, unbind
from engine.view.snapshot import Snapshot

MAX_HZ, MAX_LINE = 10.0, 1 << 16
FAREWELL_S = 1.0
"""How long the end of a run waits for its viewers to take the last snapshot."""
SEND_BYTES = 1 << 15
"""What the system may hold for a viewer: it should not look at what was true long ago."""
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
        self._viewers: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()
        self._line: tuple[Snapshot, bytes] | None = None

    async def start(self) -> str:
        """Listen; returns why it cannot where the system has no place for a socket."""
        try:
            bound, self._path = bind(self._folder)
            self._server = await asyncio.start_unix_server(self._serve, sock=bound, limit=MAX_LINE)
        except OSError as error:
            return f"no control socket: {error}; `attach` and `control` will not reach this run"
        return ""

    async def close(self) -> None:
        """Give the last snapshot to whoever subscribed, then go; a viewer that hangs is left."""
        if self._server is not None:
            self._server.close()
        self._closing.set()
        await asyncio.sleep(0)
        if self._viewers:
            await asyncio.wait(set(self._viewers), timeout=FAREWELL_S)
        for peer in self._peers:
            peer.cancel()
        await asyncio.gather(*self._peers, return_exceptions=True)
        if self._path is not None:
            unbind(self._folder, self._path)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a connection is served in a task
        self._peers.add(task)
        # drain waits until the peer's socket has it all
        writer.transport.set_write_buffer_limits(0)
        try:
            while line := await _line_of(reader, writer):
                await self._answer(line, writer)
        except ConnectionError:
            pass  # the peer left
        except asyncio.CancelledError:
            writer.transport.abort()  # the run has ended, and the peer takes nothing
        finally:
            self._peers.discard(task)
            writer.close()

    async def _answer(self, line: bytes, writer: asyncio.StreamWriter) -> None:
        try:
            message = load_line(line)
        except ValueError:
            message = None
        if isinstance(message, dict) and message.get("command") == "subscribe":
            await self._subscribe(message, writer)
        else:
            await _say(self._obey(message), writer)

    def _obey(self, message: Any) -> dict[str, Any]:
        if not isinstance(message, Mapping):
            return _refusal("a command is one JSON object on one line")
        try:
            said = self._apply(from_wire(message))
        except EaglegenError as error:
            return _refusal(str(error))
        except Exception as error:  # noqa: BLE001 - a fault of ours is an answer, not the end of the peer
            return _refusal(f"a fault of ours ({type(error).__name__})")
        return {"ok": True, "applied_at": iso(self._clock.wall()), "said": said}

    async def _subscribe(self, message: Mapping[str, Any], writer: asyncio.StreamWriter) -> None:
        try:
            pause = 1.0 / _hz(message.get("hz", 2))
        except UsageError as error:
            await _say(_refusal(str(error)), writer)
            return
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)
        stream = asyncio.create_task(self._stream(pause, writer))
        self._viewers.add(stream)
        try:
            await stream
        finally:
            self._viewers.discard(stream)

    async def _stream(self, pause: float, writer: asyncio.StreamWriter) -> None:
        """Whole snapshots until the peer leaves; one that is slow gets fewer, never a backlog."""
        while True:
            last = self._closing.is_set()
            snapshot = self._snapshot()
            writer.write(self._encoded(snapshot))
            await writer.drain()
            if last or snapshot.exit_code is not None:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), pause)

    def _encoded(self, snapshot: Snapshot) -> bytes:
        """The snapshot's line; several viewers share it."""
        if self._line is None or self._line[0] is not snapshot:
            self._line = snapshot, to_line(snapshot)
        return self._line[1]


async def _line_of(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """The next line; empty at the end, or where a line has none within MAX_LINE bytes."""
    try:
        return await reader.readline()
    except ValueError:
        await _say(_refusal(f"a line holds at most {MAX_LINE} bytes"), writer)
        return b""


async def _say(answer: dict[str, Any], writer: asyncio.StreamWriter) -> None:
    writer.write(dump_line(answer))
    await writer.drain()


def _refusal(error: str) -> dict[str, Any]:
    return {"ok": False, "error": error}


def _hz(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= MAX_HZ:
        raise UsageError(f"subscribe: hz must be above 0 and at most {MAX_HZ:g}, not {value!r}")
    return float(value)
