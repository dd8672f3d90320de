"""A discrete-event world for the limiter: providers with a capacity, and a client that obeys."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from engine.pace.limits import LimitChange, Limiter
from engine.pace.retry import RetryPolicy

TICK_S = 0.5


@dataclass(frozen=True)
class Reply:
    """What becomes of one attempt: when it ends, and its tokens (None: refused)."""

    at: float
    tokens: int | None
    retry_after_s: float | None = None


class Provider(Protocol):
    """Answers an attempt that starts now."""

    def start(self, now: float, rng: Random) -> Reply: ...


@dataclass
class Work:
    """Lengths and speed of replies: thinking models answer with a long tail."""

    mean_tokens: float = 1662.0
    tokens_per_s: float = 20.0
    first_token_s: float = 1.0
    most_tokens: int = 8192
    slower: Callable[[float], float] = lambda _now: 1.0

    def draw(self, now: float, rng: Random) -> tuple[int, float]:
        """Tokens and seconds of one reply."""
        tokens = min(self.most_tokens, 1 + int(rng.expovariate(1.0 / self.mean_tokens)))
        return tokens, (self.first_token_s + tokens / self.tokens_per_s) * self.slower(now)


@dataclass
class Capacity:
    """Holds `capacity(now)` requests and refuses the rest within the round trip."""

    capacity: Callable[[float], float]
    work: Work = field(default_factory=Work)
    retry_after_s: float | None = None
    leak: float = 0.0
    """Share refused at random, whatever is in flight."""
    ends: list[float] = field(default_factory=list)

    def start(self, now: float, rng: Random) -> Reply:
        while self.ends and self.ends[0] <= now:
            heapq.heappop(self.ends)
        full = len(self.ends) >= self.capacity(now)
        if full or (self.leak and rng.random() < self.leak):
            return Reply(now + rng.uniform(0.1, 0.5), None, self.retry_after_s)
        tokens, seconds = self.work.draw(now, rng)
        heapq.heappush(self.ends, now + seconds)
        return Reply(now + seconds, tokens)


@dataclass
class Bucket:
    """Refuses what comes faster than `per_s`, with a burst allowance."""

    per_s: float
    burst: float = 50.0
    work: Work = field(default_factory=Work)
    filled: float = 50.0
    at: float = 0.0

    def start(self, now: float, rng: Random) -> Reply:
        self.filled = min(self.burst, self.filled + (now - self.at) * self.per_s)
        self.at = now
        if self.filled < 1.0:
            return Reply(now + rng.uniform(0.1, 0.5), None)
        self.filled -= 1.0
        tokens, seconds = self.work.draw(now, rng)
        return Reply(now + seconds, tokens)


@dataclass
class Queue:
    """A server with a fixed number of slots and an endless queue: it never refuses."""

    slots: int
    work: Work = field(default_factory=Work)
    free: list[float] = field(default_factory=list)

    def start(self, now: float, rng: Random) -> Reply:
        full = len(self.free) >= self.slots
        begins = max(now, heapq.heappop(self.free)) if full else now
        tokens, seconds = self.work.draw(now, rng)
        heapq.heappush(self.free, begins + seconds)
        return Reply(begins + seconds, tokens)


@dataclass
class Result:
    """What a simulated run came to."""

    limits: list[tuple[float, int]] = field(default_factory=list)
    flights: list[tuple[float, int]] = field(default_factory=list)
    done: list[tuple[float, int]] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    changes: list[LimitChange] = field(default_factory=list)
    given_up: int = 0

    def tokens_per_s(self, start: float, end: float) -> float:
        return sum(tokens for at, tokens in self.done if start <= at < end) / (end - start)

    def refusals(self, start: float, end: float) -> int:
        return sum(1 for at in self.refused if start <= at < end)

    def refused_share(self, start: float, end: float) -> float:
        bad = self.refusals(start, end)
        return bad / max(1, bad + sum(1 for at, _ in self.done if start <= at < end))

    def mean_limit(self, start: float, end: float) -> float:
        inside = [limit for at, limit in self.limits if start <= at < end]
        return sum(inside) / len(inside)

    def mean_flight(self, start: float, end: float) -> float:
        inside = [flight for at, flight in self.flights if start <= at < end]
        return sum(inside) / len(inside)


class World:
    """The conductor's part: starts what the limit allows, retries what was refused."""

    def __init__(
        self, provider: Provider, limiter: Limiter | None, *, fixed: int = 0, seed: int = 1
    ) -> None:
        self.provider = provider
        self.limiter = limiter
        self.fixed = fixed
        """A constant limit, kept by a script whose workers sleep through their back-off."""
        self.rng = Random(seed)
        self.policy = RetryPolicy()
        self.result = Result()
        self.prompts = 10**9
        self.paused: Callable[[float], bool] = lambda _now: False
        self.at: list[tuple[float, Callable[[float], None]]] = []
        self._in_flight = 0
        self._ready: deque[int] = deque()
        self._events: list[tuple[float, int, float, int, Reply | None]] = []
        self._sequence = 0

    def run(self, until: float) -> Result:
        """Play until `until` seconds."""
        now = 0.0
        next_tick = 0.0
        pending = sorted(self.at, key=lambda item: item[0])
        self._dispatch(now)
        while now < until:
            if self._events and self._events[0][0] <= next_tick:
                now, _, started, attempt, reply = heapq.heappop(self._events)
                if reply is None:
                    self._wake(attempt)
                else:
                    self._ended(now, started, attempt, reply)
            else:
                now = next_tick
                next_tick += TICK_S
                while pending and pending[0][0] <= now:
                    pending.pop(0)[1](now)
                self._tick(now)
            self._dispatch(now)
        return self.result

    def _wake(self, attempt: int) -> None:
        if self.limiter is None:
            self._in_flight -= 1
        self._ready.append(attempt)

    def _tick(self, now: float) -> None:
        if self.limiter is not None:
            self.limiter.tick(now, self._in_flight)
            self.result.changes += self.limiter.drain_changes()
            self.result.limits.append((now, self.limiter.limit))
        self.result.flights.append((now, self._in_flight))

    def _dispatch(self, now: float) -> None:
        limit = self.fixed if self.limiter is None else self.limiter.limit
        if self.paused(now) or (self.limiter and self.limiter.held_until(now) is not None):
            return
        while self._in_flight < limit and (self._ready or self.prompts > 0):
            if self._ready:
                attempt = self._ready.popleft()
            else:
                attempt = 1
                self.prompts -= 1
            self._in_flight += 1
            reply = self.provider.start(now, self.rng)
            self._push(reply.at, now, attempt, reply)

    def _push(self, at: float, started: float, attempt: int, reply: Reply | None) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (at, self._sequence, started, attempt, reply))

    def _ended(self, now: float, started: float, attempt: int, reply: Reply) -> None:
        self._in_flight -= 1
        if reply.tokens is not None:
            self.result.done.append((now, reply.tokens))
            if self.limiter is not None:
                self.limiter.succeeded(now, now - started, reply.tokens)
            return
        self.result.refused.append(now)
        if self.limiter is not None:
            self.limiter.refused(now, "siliconflow", reply.retry_after_s, started_at=started)
        if self.policy.exhausted(attempt):
            self.result.given_up += 1
            return
        if self.limiter is None:
            self._in_flight += 1
        wait = self.policy.delay(attempt, self.rng, wait_s=reply.retry_after_s)
        self._push(now + wait, now, attempt + 1, None)
