"""A discrete-event world for budgets: replies whose latency grows with their length."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class World:
    """Lengths are lognormal with a cap, as of thinking models; times in seconds."""

    budget: int = 10_000_000
    in_flight: int = 2000
    mean_tokens: float = 1662.0
    sigma: float = 0.8
    most_tokens: int = 8192
    tokens_per_s: float = 20.0
    speed_sigma: float = 0.0
    """Hosts differ: the log-deviation of the speed."""
    ramp_s: float = 5.0
    """The limit starts at 32 and doubles in this time; 0: it opens at once."""
    refused: float = 0.0
    """Share of the requests that a 429 ends at once."""
    seed: int = 3

    def limit(self, now: float) -> float:
        """How many requests may be in flight."""
        if not self.ramp_s:
            return self.in_flight
        return min(self.in_flight, 32 * 2 ** min(30.0, now / self.ramp_s))

    def replies(self) -> Iterator[tuple[float, int | None]]:
        """Latency and tokens of one request after the other; None: refused."""
        rng = Random(self.seed)
        mu = math.log(self.mean_tokens) - self.sigma**2 / 2
        while True:
            if rng.random() < self.refused:
                yield 0.05, None
                continue
            tokens = min(self.most_tokens, max(1, int(rng.lognormvariate(mu, self.sigma))))
            yield 1.0 + tokens / self.tokens_per_s * rng.lognormvariate(0, self.speed_sigma), tokens


@dataclass
class Course:
    """How a simulated dataset went."""

    tokens: int = 0
    peak: int = 0
    ended_at: float = 0.0


def play(
    world: World,
    may_start: Callable[[float, dict[int, float]], bool],
    ended: Callable[[int | None, float], None],
) -> Course:
    """Run a world to its end; `may_start` sees the time and the starts of what is in flight."""
    course = Course()
    replies = world.replies()
    events: list[tuple[float, int, int | None]] = []
    flying: dict[int, float] = {}
    now, number = 0.0, 0
    while True:
        while len(flying) < world.limit(now) and may_start(now, flying):
            latency, tokens = next(replies)
            number += 1
            flying[number] = now
            heapq.heappush(events, (now + latency, number, tokens))
        course.peak = max(course.peak, len(flying))
        if not events:
            course.ended_at = now
            return course
        at, done, tokens = heapq.heappop(events)
        now = at
        ended(tokens, now - flying.pop(done))
        course.tokens += tokens or 0
