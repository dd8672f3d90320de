"""A line between client and provider that can be cut: every open connection is reset at once."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PIECE = 1 << 16


class Line:
    """Forwards TCP to the provider's port."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._clients: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Event | None = None
        self._listening = threading.Event()
        self.port = 0
        self.cuts = 0
        """Connections that were reset."""

    def base_url(self, url: str) -> str:
        """The provider's address, by way of this line."""
        return url.replace(f":{self._target}/", f":{self.port}/")

    def cut(self) -> None:
        """Reset what is open now; the provider does not hear of it, and works on."""
        assert self._loop is not None
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result(10)

    async def _cut(self) -> None:
        for writer in list(self._clients):
            connection = writer.transport.get_extra_info("socket")
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            self.cuts += 1

    async def _serve(self) -> None:
        self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        await self._ended.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._clients.add(writer)
        try:
            await asyncio.gather(_pour(reader, back), _pour(there, writer))
        finally:
            self._clients.discard(writer)
            for each in (writer, back):
                each.close()

    def work(self) -> None:
        asyncio.run(self._serve())

    def end(self) -> None:
        assert self._loop is not None
        assert self._ended is not None
        self._loop.call_soon_threadsafe(self._ended.set)

    def wait(self) -> None:
        assert self._listening.wait(10)


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes until this end is closed; a reset at the other end is none of its business."""
    with suppress(ConnectionError):
        while data := await reader.read(_PIECE):
            with suppress(ConnectionError):
                writer.write(data)
                await writer.drain()


@contextmanager
def line_to(port: int) -> Iterator[Line]:
    """A line to a port of this machine, for as long as the context lasts."""
    line = Line(port)
    thread = threading.Thread(target=line.work, name="line")
    thread.start()
    try:
        line.wait()
        yield line
    finally:
        line.end()
        thread.join()
