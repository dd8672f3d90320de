"""How a reply's bytes travel: whole, or in one of the ways in which connections fail."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
from typing import TYPE_CHECKING

from aiohttp import web

from engine.simulator.shapes import SURROGATE_MARK

if TYPE_CHECKING:
    from engine.simulator.outgoing import Outgoing

_KEEP_ALIVES = b"\n" * 60 + b" " * 9 + b"\n"
"""The white space that reports show before a body (facts page, §3)."""
_DRIP_S = 0.02
_DRIBBLE_S = 0.5


async def plain(_request: web.BaseRequest, reply: Outgoing) -> web.StreamResponse:
    """Send the whole body."""
    return web.Response(
        body=reply.body,
        status=reply.status,
        headers={**reply.headers, "Content-Type": reply.content_type},
    )


def _with_body(reply: Outgoing, body: bytes, **headers: str) -> web.StreamResponse:
    head = {**reply.headers, **headers, "Content-Type": reply.content_type}
    return web.Response(body=body, status=reply.status, headers=head)


async def surrogate(_request: web.BaseRequest, reply: Outgoing) -> web.StreamResponse:
    """Send half of a surrogate pair, as an escape."""
    return _with_body(reply, reply.body.replace(SURROGATE_MARK.encode(), b"half \\ud83d pair"))


async def truncated(_request: web.BaseRequest, reply: Outgoing) -> web.StreamResponse:
    """Send two thirds of the JSON as if it were all."""
    return _with_body(reply, reply.body[: len(reply.body) * 2 // 3])


async def compressed(_request: web.BaseRequest, reply: Outgoing) -> web.StreamResponse:
    """Send the body with gzip."""
    return _with_body(reply, gzip.compress(reply.body), **{"Content-Encoding": "gzip"})


async def whitespace_eof(request: web.BaseRequest, reply: Outgoing) -> web.StreamResponse:
    """Send keep-alives and end."""
    return await _dripped(request, reply, b"")


async def whitespace_json(request: web.BaseRequest, reply: Outgoing) -> web.StreamResponse:
    """Send keep-alives, then the body."""
    return await _dripped(request, reply, reply.body)


async def _opened(request: web.BaseRequest, reply: Outgoing) -> web.StreamResponse:
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    response.content_type = "application/json"
    await response.prepare(request)
    return response


async def _dripped(request: web.BaseRequest, reply: Outgoing, end: bytes) -> web.StreamResponse:
    response = await _opened(request, reply)
    for start in range(0, len(_KEEP_ALIVES), 10):
        await response.write(_KEEP_ALIVES[start : start + 10])
        await asyncio.sleep(_DRIP_S)
    await response.write(end)
    return response


async def dribble(request: web.BaseRequest, reply: Outgoing) -> web.StreamResponse:
    """Send a byte now and then, for as long as the client waits."""
    response = await _opened(request, reply)
    try:
        while not is_gone(request):
            await response.write(b" ")
            await asyncio.sleep(_DRIBBLE_S)
    except ConnectionError:
        pass
    return response


async def close(request: web.BaseRequest, _reply: Outgoing) -> web.StreamResponse:
    """Close the connection without a word."""
    if request.transport is not None:
        request.transport.close()
    return web.Response()


async def reset(request: web.BaseRequest, _reply: Outgoing) -> web.StreamResponse:
    """Reset the connection (RST)."""
    abort(request)
    return web.Response()


async def not_http(request: web.BaseRequest, _reply: Outgoing) -> web.StreamResponse:
    """Answer in no HTTP at all."""
    if request.transport is not None:
        request.transport.write(b"220 this port speaks something else\r\n\r\n")
        request.transport.close()
    return web.Response()


async def reset_in_body(request: web.BaseRequest, reply: Outgoing) -> web.StreamResponse:
    """Announce the whole body, send half of it, reset."""
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    response.content_type = "application/json"
    response.content_length = len(reply.body)
    await response.prepare(request)
    await response.write(reply.body[: len(reply.body) // 2])
    # The half must have left before the reset, which discards what is still in the buffer.
    await asyncio.sleep(_DRIP_S)
    abort(request)
    return response


def is_gone(request: web.BaseRequest) -> bool:
    """Tell whether the client has closed the connection."""
    return request.transport is None or request.transport.is_closing()


def abort(request: web.BaseRequest) -> None:
    """Reset the connection; what is still in its buffer is lost."""
    transport = request.transport
    if transport is None:
        return
    connection = transport.get_extra_info("socket")
    if connection is not None:
        # Lingering for zero seconds turns the close into a reset.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


DELIVERIES = {
    "plain": plain,
    "surrogate": surrogate,
    "truncated": truncated,
    "gzip": compressed,
    "whitespace_eof": whitespace_eof,
    "whitespace_json": whitespace_json,
    "dribble": dribble,
    "close": close,
    "reset": reset,
    "not_http": not_http,
    "reset_in_body": reset_in_body,
}
