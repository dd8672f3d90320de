"""The opening burst: the engine, and a client of fixed concurrency, on one scenario."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from e2e_desk import MODEL, Desk
from e2e_provider import playing, slow
from money_engine import engine_on

from engine.clock import randomness
from engine.pace.retry import RetryPolicy
from engine.simulator import Simulator


@dataclass(frozen=True, slots=True)
class Burst:
    """A provider that holds so many requests, and a user who allows many more."""

    capacity: int = 40
    ceiling: int = 400
    prompts: int = 2000
    latency_s: float = 1.0

    def scenario(self) -> dict[str, Any]:
        """One host; what is beyond its capacity is refused."""
        host = {"name": "SiliconFlow", "tag": "siliconflow/int4", "capacity": self.capacity}
        return {"providers": [host], "latency": {**slow(self.latency_s), "refusal_s": 0.05}}


@dataclass(frozen=True, slots=True)
class Tally:
    """What a client came to, by the provider's own ledger."""

    failed: int
    rows: int
    steady_per_s: float
    """Replies per second from a third of them on to the last tenth."""
    seconds: float


def tally(provider: Simulator) -> Tally:
    """Count a finished session."""
    entries = provider.ledger.entries
    begin = min(entry.at for entry in entries)
    ends = sorted(entry.at + entry.latency_s - begin for entry in entries if entry.status == 200)
    first, last = len(ends) // 3, len(ends) * 9 // 10
    rate = (last - first) / (ends[last] - ends[first])
    return Tally(len(entries) - len(ends), len(ends), rate, ends[-1])


def with_engine(burst: Burst, folder: Path) -> Tally:
    """The engine, which finds its way up to the ceiling."""
    with playing(**burst.scenario()) as provider, Desk(folder, provider.base_url) as desk:
        desk.asking(
            burst.prompts, endpoint={"tokenizer": "none"}, limits={"concurrency": burst.ceiling}
        )
        outcome = engine_on(desk, patience_s=600)
        assert outcome.code == 0
        return tally(provider)


def with_fixed(burst: Burst) -> Tally:
    """A client that opens with all it may, backs off per request, and never lowers its number."""
    with playing(**burst.scenario()) as provider:
        asyncio.run(_fixed(provider.base_url, burst))
        return tally(provider)


async def _fixed(base_url: str, burst: Burst) -> None:
    numbers = iter(range(burst.prompts))
    policy, rng = RetryPolicy(), randomness(7)
    connector = aiohttp.TCPConnector(limit=burst.ceiling)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask(text: str) -> bool:
            body = {"model": MODEL, "messages": [{"role": "user", "content": text}]}
            async with session.post(f"{base_url}/chat/completions", json=body) as reply:
                await reply.read()
                return reply.status == 200

        async def work() -> None:
            for number in numbers:
                attempt = 1
                while not await ask(f"Question {number} of A?"):
                    await asyncio.sleep(policy.delay(attempt, rng, wait_s=None))
                    attempt += 1

        await asyncio.gather(*(work() for _ in range(burst.ceiling)))
