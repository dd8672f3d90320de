"""The parts of one running session, held together so that each has one writer."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field

from engine.clock import Clock
from engine.course import Course
from engine.disk.sink import Sink
from engine.events import Event
from engine.feed.feeder import Feeder
from engine.journal import Journal
from engine.money.gate import Gate
from engine.money.resend import Traces, resend_after_s
from engine.pace.breaker import Breakers
from engine.pace.deadline import deadline_s
from engine.pace.limits import Limiter
from engine.pace.retry import RetryPolicy
from engine.plan import DatasetPlan, Plan
from engine.reading import Reader
from engine.schedule import Schedule
from engine.view.stats import RunStats
from engine.wire.client import Client
from engine.wire.reply import Expectation
from engine.wire.request import Asking


@dataclass(slots=True)
class Session:
    """Everything the conductor, the settling of outcomes and the steering share."""

    plan: Plan
    clock: Clock
    rng: random.Random
    client: Client
    asking: Asking
    reader: Reader
    sink: Sink
    journal: Journal
    schedule: Schedule
    stats: RunStats
    gate: Gate
    limiter: Limiter
    breakers: Breakers
    retry: RetryPolicy
    traces: Traces
    feeders: dict[str, Feeder]
    course: Course = field(default_factory=Course)
    plans: dict[str, DatasetPlan] = field(init=False)
    """The datasets' plans by name."""
    excluded: set[str] = field(default_factory=set)
    """Providers that an operator excluded."""
    list_priced: bool = False
    """Whether some row's cost was reckoned from list prices, the reply not having told it."""
    attempts: dict[asyncio.Task[None], str] = field(default_factory=dict)
    """Running attempts and the ids they are for."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.plans = {plan.name: plan for plan in self.plan.datasets}

    def emit(self, event: Event) -> None:
        """Let the statistics fold an event."""
        self.stats.fold(event, self.clock.monotonic(), self.clock.wall())

    def deadline_s(self, dataset: str) -> float:
        """Wall-clock seconds for one attempt of this dataset."""
        limits = self.plan.manifest.limits
        return deadline_s(limits.request_timeout_s, self.stats.datasets[dataset].latency)

    def resend_after_s(self, dataset: str) -> float:
        """Seconds after its start before a request that we lost sight of may be sent again."""
        limits = self.plan.manifest.limits
        stats = self.stats.datasets[dataset]
        return resend_after_s(limits.request_timeout_s, stats.latency, stats.generated)

    def expectation(self, plan: DatasetPlan, factor: int, *, tools: bool) -> Expectation:
        """What a reply must look like to be this model's answer."""
        cap = plan.max_tokens
        return Expectation(
            model=self.plan.manifest.endpoint.model,
            aliases=self.plan.facts.aliases,
            providers=self.plan.facts.providers,
            max_tokens=None if cap is None else cap * factor,
            thinking=self.plan.manifest.endpoint.thinking,
            tools=tools,
        )
