"""A bare client in a process of its own: plain httpx, httpx over aiohttp, or aiohttp alone.

`tokenizing` is httpx over aiohttp and one encoding of each reply's text, in the same loop.

`python perf_client.py KIND BASE_URL IN_FLIGHT WARM_S WINDOW_S` prints one JSON line.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
from perf_meter import Measured, Window
from perf_provider import MODEL

Ask = Callable[[bytes], Awaitable[bytes]]
_NEVER = 3600.0
_PATH = "/chat/completions"
_HEADERS = {"content-type": "application/json"}


@asynccontextmanager
async def _httpx(base_url: str, in_flight: int) -> AsyncIterator[Ask]:
    import httpx

    limits = httpx.Limits(max_connections=in_flight, max_keepalive_connections=in_flight)
    async with httpx.AsyncClient(headers=_HEADERS, timeout=_NEVER, limits=limits) as client:

        async def ask(body: bytes) -> bytes:
            return (await client.post(base_url + _PATH, content=body)).content

        yield ask


@asynccontextmanager
async def _transport(base_url: str, in_flight: int) -> AsyncIterator[Ask]:
    import httpx
    import httpx_aiohttp

    limits = httpx.Limits(max_connections=in_flight)
    async with httpx_aiohttp.HttpxAiohttpClient(
        headers=_HEADERS, timeout=_NEVER, limits=limits
    ) as client:

        async def ask(body: bytes) -> bytes:
            return (await client.post(base_url + _PATH, content=body)).content

        yield ask


@asynccontextmanager
async def _aiohttp(base_url: str, in_flight: int) -> AsyncIterator[Ask]:
    import aiohttp

    connector = aiohttp.TCPConnector(limit=in_flight)
    async with aiohttp.ClientSession(connector=connector, headers=_HEADERS) as session:

        async def ask(body: bytes) -> bytes:
            async with session.post(base_url + _PATH, data=body) as reply:
                return await reply.read()

        yield ask


@asynccontextmanager
async def _tokenizing(base_url: str, in_flight: int) -> AsyncIterator[Ask]:
    from engine.tokens.vocabulary import load_vocabulary

    vocabulary = load_vocabulary("kimi-k2.5")
    async with _transport(base_url, in_flight) as transport:

        async def ask(body: bytes) -> bytes:
            reply = await transport(body)
            message = orjson.loads(reply)["choices"][0]["message"]
            vocabulary.encode(f"{message['reasoning']}</think>{message['content']}<|im_end|>")
            return reply

        yield ask


CLIENTS = {
    "httpx": _httpx,
    "transport": _transport,
    "aiohttp": _aiohttp,
    "tokenizing": _tokenizing,
}


async def measure(kind: str, base_url: str, in_flight: int, warm_s: float, window_s: float) -> None:
    """Keep `in_flight` requests running, and measure one window of it.

    The replies themselves look at the time: a client whose loop is stuck would oversleep a timer.
    """
    numbers = itertools.count()
    result: asyncio.Future[Measured] = asyncio.get_running_loop().create_future()
    window: Window | None = None
    begun, done = time.perf_counter(), 0

    def replied() -> None:
        nonlocal done, window
        done += 1
        elapsed = time.perf_counter() - begun
        if window is None and elapsed >= warm_s:
            window = Window(lambda: done)
        elif window is not None and elapsed >= warm_s + window_s and not result.done():
            result.set_result(window.end())

    async with CLIENTS[kind](base_url, in_flight) as ask:

        async def work() -> None:
            while not result.done():
                await ask(_body(next(numbers)))
                replied()

        workers = [asyncio.create_task(work()) for _ in range(in_flight)]
        ends: list[asyncio.Future[Any]] = [result, *workers]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for worker in workers:
            if worker.done():
                worker.result()  # a client that fails is no benchmark
        sys.stdout.write(result.result().line())
        sys.stdout.flush()
        os._exit(0)  # plain httpx needs minutes to put away what is still in flight


def _body(number: int) -> bytes:
    messages = [{"role": "user", "content": prompt_text(number)}]
    return json.dumps({"model": MODEL, "messages": messages, "max_tokens": 8192}).encode()


def prompt_text(number: int) -> str:
    """A prompt of about 300 characters, each a different one."""
    return f"Question {number}: " + "what speaks for and against a longer draft in decoding? " * 5


if __name__ == "__main__":
    kind, base_url, in_flight, warm_s, window_s = sys.argv[1:]
    asyncio.run(measure(kind, base_url, int(in_flight), float(warm_s), float(window_s)))
