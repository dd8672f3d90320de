"""A local provider and a client for a test: `async with playing(...) as (simulator, client)`."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx

from engine import simulator
from engine.simulator import Scenario

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from engine.simulator import Simulator

MODEL = "moonshotai/kimi-k2.5"
INSTANT: dict[str, Any] = {
    "latency": {"mean_s": 0.0, "refusal_s": 0.0},
    "generation_delay_s": 0.0,
}


@asynccontextmanager
async def playing(**changes: Any) -> AsyncIterator[tuple[Simulator, httpx.AsyncClient]]:
    """Play a scenario that answers at once, with these changes."""
    scenario = Scenario.from_dict({**INSTANT, **changes})
    async with (
        simulator.serve(scenario) as sim,
        httpx.AsyncClient(base_url=sim.base_url, timeout=10) as client,
    ):
        yield sim, client


async def ask(client: httpx.AsyncClient, text: str = "Hi", **body: Any) -> httpx.Response:
    """Send one chat request; `body` adds to it or overrides it."""
    request = {"model": MODEL, "messages": [{"role": "user", "content": text}], **body}
    return await client.post("/chat/completions", json=request)


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something becomes true; ten seconds at most."""
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("never came true")
