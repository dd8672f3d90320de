"""The provider on a loopback port: routes by path, with no framework between."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web

from engine.simulator.delivery import DELIVERIES, is_gone
from engine.simulator.event_delivery import send_events
from engine.simulator.ledger import Ledger
from engine.simulator.pages import page, prefix_of
from engine.simulator.provider import Provider

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from engine.simulator.account import Account
    from engine.simulator.scenario import Scenario

_LARGEST_REQUEST = 64 * 2**20
_BACKLOG = 4096


@dataclass(frozen=True, slots=True)
class Simulator:
    """A provider that listens: its address, its ledger, its account."""

    base_url: str
    port: int
    provider: Provider

    @property
    def scenario(self) -> Scenario:
        """What it plays."""
        return self.provider.scenario

    @property
    def ledger(self) -> Ledger:
        """What it was asked and what it charged."""
        return self.provider.ledger

    @property
    def account(self) -> Account:
        """The money of whoever asks."""
        return self.provider.account


@asynccontextmanager
async def serve(
    scenario: Scenario,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ledger_path: Path | None = None,
    keep_entries: bool = True,
) -> AsyncIterator[Simulator]:
    """Listen while the context is open, in the running loop; port 0 takes a free one."""
    ledger = Ledger(ledger_path, keep=keep_entries)
    provider = Provider(scenario, ledger)
    working: set[asyncio.Task[Any]] = set()
    server = web.Server(
        partial(_tracked, provider, working),
        request_factory=_request,
        access_log=None,
        keepalive_timeout=scenario.keepalive_s,
    )
    runner = web.ServerRunner(server, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, backlog=_BACKLOG).start()
        bound = runner.addresses[0][1]
        yield Simulator(f"http://{host}:{bound}{prefix_of(scenario)}", bound, provider)
    finally:
        await _end(working)
        await runner.cleanup()
        ledger.close()


async def _end(working: set[asyncio.Task[Any]]) -> None:
    """Cancel what is in work: the web server would wait for its replies."""
    tasks = list(working)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _tracked(
    provider: Provider, working: set[asyncio.Task[Any]], request: web.BaseRequest
) -> web.StreamResponse:
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("a request is handled in a task of its own")
    working.add(task)
    try:
        return await _handle(provider, request)
    finally:
        working.discard(task)


def _request(
    message: Any, payload: Any, protocol: Any, writer: Any, task: asyncio.Task[None]
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(
        message, payload, protocol, writer, task, loop, client_max_size=_LARGEST_REQUEST
    )


async def _handle(provider: Provider, request: web.BaseRequest) -> web.StreamResponse:
    if request.method == "POST" and request.path.endswith("/v1/chat/completions"):
        raw = await request.read()
        reply = await provider.chat(raw, request.headers, partial(is_gone, request))
    else:
        reply = page(provider, request)
    if reply.stream is not None:
        return await send_events(request, reply, reply.stream)
    return await DELIVERIES[reply.delivery](request, reply)
