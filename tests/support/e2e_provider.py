"""The local provider on loopback in a thread of its own, for clients that are other processes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from engine.simulator import Scenario, Simulator, serve

QUICK: dict[str, Any] = {
    "tokenizer": "none",
    "latency": {"mean_s": 0.02, "sigma": 0.3, "refusal_s": 0.0},
    "length": {"mean_tokens": 40, "max": 200},
    "generation_delay_s": 0.0,
}
"""Short replies at once; what a test says goes before it."""


@contextmanager
def playing(*, port: int = 0, **scenario: Any) -> Iterator[Simulator]:
    """A provider that listens for as long as the context lasts; its ledger may be read."""
    played = Scenario.from_dict(QUICK | scenario)
    started: Future[tuple[Simulator, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def listen() -> None:
        async with serve(played, port=port) as simulator:
            ended = asyncio.Event()
            started.set_result((simulator, asyncio.get_running_loop(), ended))
            await ended.wait()

    def work() -> None:
        try:
            asyncio.run(listen())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=work, name="provider")
    thread.start()
    try:
        simulator, loop, ended = started.result(timeout=30)
        try:
            yield simulator
        finally:
            loop.call_soon_threadsafe(ended.set)
    finally:
        thread.join()


def slow(seconds: float) -> dict[str, float]:
    """A latency that is the same for every reply."""
    return {"mean_s": seconds, "sigma": 0.0, "refusal_s": 0.0}


def arrived(provider: Simulator) -> int:
    """Requests that have come so far, finished or not."""
    return provider.ledger.requests + provider.provider.in_flight


def is_idle(provider: Simulator) -> bool:
    """Whether everything that came is in the ledger (work goes on for clients that are gone)."""
    return provider.provider.in_flight == 0
