"""Reads large replies in a thread: tokenizing 5 MB of text would hold up the loop for a second."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from engine.feed.prompts import Message
from engine.reading import Reader, Reading
from engine.schedule import Job
from engine.wire.reply import Reply

HEAVY_CHARS = 100_000
"""About 20 ms of tokenizing, which gives up the interpreter's lock; a thread costs 0.1 ms."""


async def read_if_heavy(
    reader: Reader, job: Job, messages: list[Message], reply: Reply
) -> Reading | None:
    """The reading of a large prompt or reply, made beside the loop; None for a small one.

    A reply that has come whole is paid for: it is read to the end whoever cancels the task.
    """
    if _chars(messages, reply) < HEAVY_CHARS:
        return None
    return await _to_the_end(asyncio.to_thread(reader.read, job, messages, reply))


def _chars(messages: list[Message], reply: Reply) -> int:
    answer = len(reply.content or "") + len(reply.reasoning or "")
    return answer + sum(_length(message.get("content")) for message in messages)


def _length(content: Any) -> int:
    """Characters of a message's content, which may come in parts."""
    if isinstance(content, str):
        return len(content)
    parts = content if isinstance(content, list) else ()
    return sum(len(str(part.get("text", ""))) for part in parts if isinstance(part, dict))


async def _to_the_end(work: Coroutine[Any, Any, Reading]) -> Reading:
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            continue  # the row is what remains of an attempt that was cancelled too late
    return task.result()
