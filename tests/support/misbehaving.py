"""Loopback servers that answer as badly as a test asks, byte by byte."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class Wire:
    """One connection, seen from the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def request(self) -> bytes:
        """Head and body of the next request; empty where the client has gone."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return b""
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        return head + await self.reader.readexactly(length)

    async def send(self, data: bytes) -> None:
        """Send these bytes now."""
        self.writer.write(data)
        await self.writer.drain()

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        raw: socket.socket = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Behaviour = Callable[[Wire], Awaitable[None]]


@dataclass
class Server:
    """What a server has seen so far."""

    url: str
    port: int
    connections: int = 0
    open: int = 0
    requests: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def misbehaving(
    behaviour: Behaviour, *, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Server]:
    """Serve connections by `behaviour`; each is closed when it returns."""
    seen = Server("", 0)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        tasks.add(task)
        seen.connections += 1
        seen.open += 1
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await behaviour(Wire(reader, writer))
        finally:
            seen.open -= 1
            tasks.discard(task)
            writer.close()
            with suppress(ConnectionError, ssl.SSLError, asyncio.CancelledError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls, limit=1 << 24)
    seen.port = server.sockets[0].getsockname()[1]
    seen.url = f"{'https' if tls else 'http'}://127.0.0.1:{seen.port}/v1"
    try:
        yield seen
    finally:
        server.close()
        working = list(tasks)
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
        await server.wait_closed()


def replying(*replies: bytes) -> Behaviour:
    """Answer the first request with these bytes, then close."""

    async def behave(wire: Wire) -> None:
        await wire.request()
        for reply in replies:
            await wire.send(reply)

    return behave


def pages(answers: dict[str, bytes]) -> Behaviour:
    """Answer each path with its whole reply, keeping the connection; 404 elsewhere."""
    missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"

    async def behave(wire: Wire) -> None:
        while head := await wire.request():
            path = head.split(b" ", 2)[1].decode()
            await wire.send(answers.get(path, missing))

    return behave


def reply(body: bytes, *, status: str = "200 OK", headers: str = "") -> bytes:
    """A whole, correct reply."""
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def closed_port() -> int:
    """A port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
