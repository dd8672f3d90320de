"""How a stream's events travel: each after its pause, or in one of the ways in which they fail."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

from engine.simulator.delivery import DELIVERIES, abort, is_gone
from engine.simulator.shapes import SURROGATE_MARK
from engine.simulator.sse import COMMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.simulator.outgoing import Outgoing, Stream

_BEFORE = frozenset({"reset", "close", "not_http"})
"""Deliveries that fail before the first event."""
_HALF = frozenset({"reset_in_body", "truncated", "dribble", "whitespace_eof"})
"""Deliveries that fail after half of the events (the last two: with comments)."""
_STALL_S = 0.5
_PACKET = 7


async def send_events(
    request: web.BaseRequest, reply: Outgoing, stream: Stream
) -> web.StreamResponse:
    """Send the events, and say at the end what share of them the client got."""
    if reply.delivery in _BEFORE:
        stream.ended(1.0)
        return await DELIVERIES[reply.delivery](request, reply)
    sent = 0
    response = web.StreamResponse(status=reply.status, headers=reply.headers)
    response.content_type = "text/event-stream"
    due = len(stream.events) // 2 if reply.delivery in _HALF else len(stream.events)
    try:
        await response.prepare(request)
        await response.write(COMMENT * stream.comments)
        for event in stream.events[:due]:
            await asyncio.sleep(stream.pause_s)
            for packet in _packets(event, stream):
                await response.write(packet)
            sent += 1
        await _broken(request, response, reply.delivery, stream.events[due:])
    except ConnectionError:
        pass
    finally:
        # A stream that the provider broke was generated to its end, and is charged so.
        left = sent < due and is_gone(request)
        stream.ended(sent / len(stream.events) if left else 1.0)
    return response


def _packets(event: bytes, stream: Stream) -> Iterator[bytes]:
    event = event.replace(SURROGATE_MARK.encode(), b"half \\ud83d pair")
    width = _PACKET if stream.split_bytes else len(event)
    return (event[start : start + width] for start in range(0, len(event), width))


async def _broken(
    request: web.BaseRequest, response: web.StreamResponse, delivery: str, rest: list[bytes]
) -> None:
    if delivery == "truncated" and rest:
        await response.write(rest[0][: len(rest[0]) // 2])
    while delivery == "dribble" and not is_gone(request):
        await response.write(COMMENT)
        await asyncio.sleep(_STALL_S)
    if delivery == "reset_in_body":
        await asyncio.sleep(0.02)
        abort(request)
