"""The provider itself: decides a request's fate, lets it generate, charges it and answers."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from typing import TYPE_CHECKING

from engine.clock import SystemClock
from engine.simulator.account import Account
from engine.simulator.composer import Composer
from engine.simulator.faults import FAULTS, Fault
from engine.simulator.generations import Generations
from engine.simulator.intake import Intake
from engine.simulator.ledger import Entry, Ledger
from engine.simulator.outgoing import Outgoing, RefusedError
from engine.simulator.reply import Usage
from engine.simulator.routing import NoRouteError, route
from engine.simulator.weather import concerning, drawn_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.simulator.call import Call
    from engine.simulator.scenario import Host, Scenario, Window

_ELSEWHERE = frozenset({429, 500, 502, 503, 504, 524, 529})
"""Refusals of one host after which the router may ask the next one."""
_NOTHING = Usage(0, 0, 0)


class Provider:
    """One provider with its account, ledger and weather; `chat` is called once per request."""

    def __init__(self, scenario: Scenario, ledger: Ledger) -> None:
        self.scenario = scenario
        self.ledger = ledger
        self.account = Account(scenario.account)
        self.in_flight = 0
        self._clock = SystemClock()
        delay_s = scenario.generation_delay_s / scenario.speed
        self.generations = Generations(scenario.canonical, delay_s, self._clock)
        self._intake = Intake(scenario, self._clock)
        self._composer = Composer(scenario)
        self._by_host: Counter[str] = Counter()
        self._slots = {h.tag: asyncio.Semaphore(h.slots) for h in scenario.providers if h.slots}

    async def chat(
        self, raw: bytes, headers: Mapping[str, str], is_gone: Callable[[], bool]
    ) -> Outgoing:
        """Answer one `POST /chat/completions`; a client that leaves is charged all the same."""
        call = self._intake.arrive(raw)
        try:
            if name := self.account.key_fault(headers.get("Authorization")):
                raise self._composer.refused(FAULTS[name], call, self.scenario.providers[0])
            self._intake.check(call)
            reply = await self._routed(call, is_gone)
        except RefusedError as refused:
            await self._sleep(self.scenario.latency.refusal_s)
            reply = refused.reply
            self._enter(call, reply.status, refused.fault, cancelled=is_gone())
        reply.headers["X-Generation-Id"] = call.id
        return reply

    async def _routed(self, call: Call, is_gone: Callable[[], bool]) -> Outgoing:
        """Generate at the first host that the router names, or at the next ones if it may."""
        try:
            hosts = route(self.scenario.providers, call.wish, call.max_tokens, call.rng)
        except NoRouteError as exc:
            raise RefusedError(404, exc.body, fault="no_route") from None
        if not self.scenario.router_fallback or call.wish.get("allow_fallbacks") is False:
            return await self._at(call, hosts[0], is_gone)
        for host in hosts[:-1]:
            try:
                return await self._at(call, host, is_gone)
            except RefusedError as refused:
                if refused.reply.status not in _ELSEWHERE:
                    raise
        return await self._at(call, hosts[-1], is_gone)

    async def _at(self, call: Call, host: Host, is_gone: Callable[[], bool]) -> Outgoing:
        """Generate at one host; raises RefusedError where it does not take the request."""
        call.provider = host.name
        windows = concerning(call.windows, host)
        fault = self._fate(call, host, windows)
        if fault is not None and not fault.late and (fault.refuse or fault.html):
            raise self._composer.refused(fault, call, host)
        hold = self._hold(call, host)
        if name := self.account.money_fault(hold):
            raise self._composer.refused(FAULTS[name], call, host)
        self._start(host, hold)
        try:
            await self._work(call, host, windows)
        finally:
            self._stop(host, hold)
        return self._completed(call, host, fault, cancelled=is_gone())

    def _completed(
        self, call: Call, host: Host, fault: Fault | None, *, cancelled: bool
    ) -> Outgoing:
        reply, usage = self._composer.completed(call, host, fault)
        cost = sum(usage.cost(host))
        self.account.usage += cost
        name = fault.name if fault else None
        entry = self._enter(call, reply.status, name, usage=usage, cost=cost, cancelled=cancelled)
        self.generations.add(entry, "stop")
        return reply

    def _fate(self, call: Call, host: Host, windows: list[Window]) -> Fault | None:
        """Return what goes wrong with this request, if anything does."""
        if call.fault is not None:
            return call.fault
        if refusal := self._full(host, windows):
            return FAULTS[refusal]
        if call.prompt_tokens + (call.max_tokens or 0) > host.context_length:
            return FAULTS["context_length"]
        name = drawn_fault(self.scenario, host, windows, call.rng)
        return FAULTS[name] if name else None

    def _full(self, host: Host, windows: list[Window]) -> str | None:
        for window in windows:
            flying = self._by_host[host.tag] if window.provider else self.in_flight
            if window.capacity is not None and flying >= window.capacity:
                return window.refusal
        if host.capacity is not None and self._by_host[host.tag] >= host.capacity:
            return "rate_limit_upstream"
        return None

    async def _work(self, call: Call, host: Host, windows: list[Window]) -> None:
        """Take the time of a generation; where a host has slots, wait for one first."""
        latency = self.scenario.latency
        seconds = 0.0
        if latency.mean_s > 0:
            mu = math.log(latency.mean_s) - latency.sigma * latency.sigma / 2
            factor = math.prod((host.latency_factor, *(w.latency_factor for w in windows)))
            seconds = call.rng.lognormvariate(mu, latency.sigma) * factor
        slots = self._slots.get(host.tag)
        if slots is None:
            await self._sleep(seconds)
            return
        async with slots:
            await self._sleep(seconds)

    def _start(self, host: Host, hold: float) -> None:
        self.in_flight += 1
        self._by_host[host.tag] += 1
        self.account.held += hold
        self.ledger.max_in_flight = max(self.ledger.max_in_flight, self.in_flight)

    def _stop(self, host: Host, hold: float) -> None:
        self.in_flight -= 1
        self._by_host[host.tag] -= 1
        self.account.held -= hold

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.scenario.speed)

    def _hold(self, call: Call, host: Host) -> float:
        """Return the estimated cost of a request: its input and the most that it may write."""
        most = self.scenario.account.assumed_max_tokens
        output = min(call.max_tokens or most, most)
        return sum(Usage(call.prompt_tokens, output, 0).cost(host))

    def _enter(
        self,
        call: Call,
        status: int,
        fault: str | None,
        *,
        usage: Usage = _NOTHING,
        cost: float = 0.0,
        cancelled: bool,
    ) -> Entry:
        entry = Entry(
            at=call.wall,
            id=call.id,
            prompt_hash=call.prompt_hash,
            body_hash=call.body_hash,
            attempt=call.attempt,
            provider=call.provider,
            status=status,
            fault=fault,
            cost=cost,
            cached=False,
            cancelled=cancelled,
            prompt_tokens=usage.prompt,
            completion_tokens=usage.completion,
            reasoning_tokens=usage.reasoning,
            latency_s=self._clock.monotonic() - call.started,
        )
        self.ledger.add(entry)
        return entry
