"""The provider itself: decides a request's fate, lets it generate, charges it and answers."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson

from engine.clock import SystemClock
from engine.simulator.account import Account
from engine.simulator.cache import STATUS, ResponseCache, replay, wish_of
from engine.simulator.composer import Composer, Finished
from engine.simulator.faults import FAULTS, Fault
from engine.simulator.generations import Generations
from engine.simulator.intake import Intake
from engine.simulator.ledger import Entry, Ledger
from engine.simulator.outgoing import Outgoing, RefusedError, Stream
from engine.simulator.routing import NoRouteError, route
from engine.simulator.sse import events
from engine.simulator.traffic import Traffic
from engine.simulator.usage import NOTHING, Usage
from engine.simulator.weather import concerning, drawn_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.simulator.cache import Kept, Wish
    from engine.simulator.call import Call
    from engine.simulator.scenario import Host, Scenario, Window

_ELSEWHERE = frozenset({429, 500, 502, 503, 504, 524, 529})
"""Refusals of one host after which the router may ask the next one."""


class Provider:
    """One provider with its account, ledger and weather; `chat` is called once per request."""

    def __init__(self, scenario: Scenario, ledger: Ledger) -> None:
        self.scenario = scenario
        self.ledger = ledger
        self.account = Account(scenario.account)
        self._clock = SystemClock()
        self.generations = Generations(scenario, self._clock)
        self._cache = ResponseCache(self._clock)
        self._traffic = Traffic(scenario)
        self._intake = Intake(scenario, self._clock)
        self._composer = Composer(scenario, self._intake, self.account)
        self._hosts = scenario.hosts

    @property
    def in_flight(self) -> int:
        """Requests that hosts are working on."""
        return self._traffic.in_flight

    async def chat(
        self, raw: bytes, headers: Mapping[str, str], is_gone: Callable[[], bool]
    ) -> Outgoing:
        """Answer one `POST /chat/completions`; a client that leaves is charged all the same."""
        call = self._intake.arrive(raw)
        try:
            reply = await self._answered(call, headers, is_gone)
        except RefusedError as refused:
            await self._traffic.sleep(self.scenario.latency.refusal_s)
            reply = self._composer.worded(refused)
            self._enter(call, reply.status, refused.fault, cancelled=is_gone())
        if self.scenario.api == "openrouter":
            reply.headers["X-Generation-Id"] = call.id
        return reply

    async def _answered(
        self, call: Call, headers: Mapping[str, str], is_gone: Callable[[], bool]
    ) -> Outgoing:
        if name := self.account.key_fault(headers.get("Authorization")):
            raise self._composer.refused(FAULTS[name], call, self._hosts[0])
        self._intake.check(call)
        wish = wish_of(headers, call.raw) if self.scenario.response_cache else None
        if wish is not None and (kept := self._cache.find(wish)):
            return await self._hit(call, kept, is_gone)
        reply = await self._routed(call, wish, is_gone)
        if wish is not None:
            reply.headers[STATUS] = "MISS"
        return reply

    async def _hit(self, call: Call, kept: Kept, is_gone: Callable[[], bool]) -> Outgoing:
        await self._traffic.sleep(self.scenario.latency.refusal_s)
        call.provider = kept.entry.provider
        entry = self._enter(call, 200, None, cached=True, cancelled=is_gone())
        # The page of a hit tells the counts of the generation that it repeats.
        source = kept.entry
        self.generations.add(
            replace(
                entry,
                prompt_tokens=source.prompt_tokens,
                completion_tokens=source.completion_tokens,
                reasoning_tokens=source.reasoning_tokens,
            ),
            kept.finish,
        )
        return replay(kept, call.id)

    async def _routed(self, call: Call, wish: Wish | None, is_gone: Callable[[], bool]) -> Outgoing:
        """Generate at the first host that the router names, or at the next ones if it may."""
        if self.scenario.api != "openrouter":
            return await self._at(call, self._hosts[0], wish, is_gone)
        try:
            hosts = route(self._hosts, call.wish, call.max_tokens, call.rng)
        except NoRouteError as exc:
            raise RefusedError(exc.reply, fault="no_route") from None
        if not self.scenario.router_fallback or call.wish.get("allow_fallbacks") is False:
            return await self._at(call, hosts[0], wish, is_gone)
        for host in hosts[:-1]:
            try:
                return await self._at(call, host, wish, is_gone)
            except RefusedError as refused:
                if refused.reply.status not in _ELSEWHERE:
                    raise
        return await self._at(call, hosts[-1], wish, is_gone)

    async def _at(
        self, call: Call, host: Host, wish: Wish | None, is_gone: Callable[[], bool]
    ) -> Outgoing:
        """Generate at one host; raises RefusedError where it does not take the request."""
        call.provider = host.name
        call.prompt_tokens = self._intake.count_prompt(call, host)
        windows = concerning(call.windows, host)
        fault = self._fate(call, host, windows)
        if fault is not None and fault.at_once:
            raise self._composer.refused(fault, call, host)
        seconds = self._traffic.duration(call, host, windows)
        hold = self._hold(call, host)
        self._start(host, hold)
        if call.streams:
            return await self._streamed(call, host, fault, seconds, hold)
        try:
            await self._traffic.work(host, seconds)
        finally:
            self._stop(host, hold)
        done = self._composer.completed(call, host, fault)
        entry = self._charge(call, host, fault, done, cancelled=is_gone())
        good = fault is None or fault.edit is None or self.scenario.caches_bad_replies
        if wish is not None and done.body is not None and good:
            self._cache.keep(wish, done.body, entry, done.finish)
        return done.reply

    async def _streamed(
        self, call: Call, host: Host, fault: Fault | None, seconds: float, hold: float
    ) -> Outgoing:
        """Return the reply as events; whoever sends them says when they ended, and how far."""
        rules = self.scenario.stream
        await self._traffic.work(host, seconds * rules.first_share)
        done = self._composer.completed(call, host, fault)
        body = done.body or orjson.loads(done.reply.body)
        usage_sent = self.scenario.api == "openrouter" or call.wants_usage
        written = events(body, self.scenario, wants_usage=usage_sent)

        def ended(share: float) -> None:
            self._stop(host, hold)
            gone = share < 1
            usage = done.usage
            if gone and host.cancels:
                usage = replace(usage, completion=int(usage.completion * share))
            self._charge(call, host, fault, replace(done, usage=usage), cancelled=gone)

        pause_s = seconds * (1 - rules.first_share) / len(written) / self.scenario.speed
        stream = Stream(written, pause_s, rules.comments, rules.split_bytes, ended)
        return replace(done.reply, stream=stream)

    def _fate(self, call: Call, host: Host, windows: list[Window]) -> Fault | None:
        """Return what goes wrong with this request, if anything does."""
        if call.fault is not None:
            return call.fault
        if refusal := self._traffic.refusal(host, windows):
            return FAULTS[refusal]
        if call.prompt_tokens + (call.max_tokens or 0) > host.context_length:
            return FAULTS["context_length"]
        if refusal := self.account.money_fault(self._hold(call, host)):
            return FAULTS[refusal]
        name = drawn_fault(self.scenario, host, windows, call.rng)
        return FAULTS[name] if name else None

    def _hold(self, call: Call, host: Host) -> float:
        """Return the estimated cost of a request: its input and the most that it may write."""
        most = self.scenario.account.assumed_max_tokens
        output = min(call.max_tokens or most, most)
        return sum(Usage(call.prompt_tokens, output, 0).cost(host))

    def _start(self, host: Host, hold: float) -> None:
        self._traffic.start(host)
        self.account.held += hold
        self.ledger.max_in_flight = max(self.ledger.max_in_flight, self.in_flight)

    def _stop(self, host: Host, hold: float) -> None:
        self._traffic.stop(host)
        terms = self.scenario.account
        if terms.in_flight_budget is None:
            self.account.release(hold)
            return
        settled = terms.settlement_s / self.scenario.speed
        asyncio.get_running_loop().call_later(settled, self.account.release, hold)

    def _charge(
        self, call: Call, host: Host, fault: Fault | None, done: Finished, *, cancelled: bool
    ) -> Entry:
        cost = sum(done.usage.cost(host))
        self.account.usage += cost
        name = fault.name if fault else None
        entry = self._enter(
            call, done.reply.status, name, usage=done.usage, cost=cost, cancelled=cancelled
        )
        self.generations.add(entry, done.finish)
        return entry

    def _enter(
        self,
        call: Call,
        status: int,
        fault: str | None,
        *,
        usage: Usage = NOTHING,
        cost: float = 0.0,
        cached: bool = False,
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
            cached=cached,
            cancelled=cancelled,
            prompt_tokens=usage.prompt,
            completion_tokens=usage.completion,
            reasoning_tokens=usage.reasoning,
            latency_s=self._clock.monotonic() - call.started,
        )
        self.ledger.add(entry)
        return entry
