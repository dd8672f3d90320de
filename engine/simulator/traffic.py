"""What is in flight, where, for how long, and when a host takes no more."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.simulator.call import Call
    from engine.simulator.scenario import Host, Scenario, Window


class Traffic:
    """Counts the requests in work at each host and knows their limits."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._by_host: Counter[str] = Counter()
        self._slots = {h.tag: asyncio.Semaphore(h.slots) for h in scenario.providers if h.slots}
        self._full = "rate_limit_upstream" if scenario.api == "openrouter" else "queue_full"
        self.in_flight = 0

    def refusal(self, host: Host, windows: list[Window]) -> str | None:
        """Return the fault of a host that takes no more requests, or None."""
        for window in windows:
            flying = self._by_host[host.tag] if window.provider else self.in_flight
            if window.capacity is not None and flying >= window.capacity:
                return window.refusal
        full = host.capacity is not None and self._by_host[host.tag] >= host.capacity
        return self._full if full else None

    def start(self, host: Host) -> None:
        """Count a request that a host has taken."""
        self.in_flight += 1
        self._by_host[host.tag] += 1

    def stop(self, host: Host) -> None:
        """Count its end."""
        self.in_flight -= 1
        self._by_host[host.tag] -= 1

    def duration(self, call: Call, host: Host, windows: list[Window]) -> float:
        """Draw how many seconds a generation takes, before the scenario's speed."""
        latency = self._scenario.latency
        if latency.mean_s == 0:
            return 0.0
        mu = math.log(latency.mean_s) - latency.sigma * latency.sigma / 2
        factor = math.prod((host.latency_factor, *(w.latency_factor for w in windows)))
        return call.rng.lognormvariate(mu, latency.sigma) * factor

    async def work(self, host: Host, seconds: float) -> None:
        """Take the time of a generation; where a host has slots, wait for one first."""
        slots = self._slots.get(host.tag)
        if slots is None:
            await self.sleep(seconds)
            return
        async with slots:
            await self.sleep(seconds)

    async def sleep(self, seconds: float) -> None:
        """Let seconds of the scenario pass."""
        await asyncio.sleep(seconds / self._scenario.speed)
