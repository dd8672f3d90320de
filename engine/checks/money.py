"""What a run will cost and how long it will take: low, middle and high, with what they assume.

Until rows are on disk, the tokens of an answer and the speed of a host are assumptions, and the
texts say so; a pilot (`run --limit 20`) replaces them by what it measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from engine.checks.pilot import ENOUGH, Pilot, Spread, spread
from engine.checks.route import Offer, Span
from engine.pace.held import DOUBLING_S
from engine.pace.limits import START
from engine.plan import DEFAULT_MAX_TOKENS

THINKING_TOKENS = Spread(500, 1700, 4000)
"""Completion tokens of a thinking model's answer; the middle is the story's own mean."""
PLAIN_TOKENS = Spread(150, 500, 1500)
TOKENS_PER_S = Spread(15, 30, 60)
"""Speed of one request at a busy host, slow to fast."""
CONTENT_SHARE = 0.4
"""Share of a thinking model's completion that is content, which later turns carry."""
HELD_SHARE = Spread(1.0, 0.75, 0.5)
"""Share of the concurrency that the endpoint takes, in the low, middle and high case."""

Cases = tuple[float, float, float]
"""Low, middle, high."""


@dataclass(frozen=True, slots=True)
class Need:
    """What one dataset has to do, and what is known of it."""

    name: str
    left: int
    """Generations without a row."""
    generations: int
    first_tokens: int
    """Prompt tokens of all first turns; `later_tokens` of the others without our own answers."""
    later_tokens: int
    carried: int
    """Our own answers that all later turns carry, added up."""
    max_turns: int
    max_tokens: int | None
    token_budget: int | None
    max_cost_usd: float | None
    offer: Offer
    pilot: Pilot = field(default_factory=Pilot)
    thinking: bool = True

    @property
    def measured(self) -> bool:
        """Whether the estimate stands on rows."""
        return self.pilot.enough

    def completion(self) -> Spread:
        """Completion tokens of one generation."""
        if self.measured:
            return spread(self.pilot.completions)
        assumed = THINKING_TOKENS if self.thinking else PLAIN_TOKENS
        cap = self.max_tokens or math.inf
        return Spread(min(assumed.low, cap), min(assumed.mean, cap), min(assumed.high, cap))

    def latency(self, completion: Spread) -> Spread:
        """Seconds of one generation."""
        if self.measured and len(self.pilot.latencies) >= ENOUGH:
            return spread(self.pilot.latencies)
        return Spread(
            completion.low / TOKENS_PER_S.high,
            completion.mean / TOKENS_PER_S.mean,
            completion.high / TOKENS_PER_S.low,
        )

    def prompt(self, completion: float) -> float:
        """Prompt tokens of one generation on average, where answers have so many tokens."""
        share = self.pilot.content_share if self.measured else None
        if share is None:
            share = CONTENT_SHARE if self.thinking else 1.0
        total = self.first_tokens + self.later_tokens + self.carried * completion * share
        return total / self.generations if self.generations else 0.0

    def cost(self, completion: float, case: int) -> float | None:
        """USD of one generation; by the endpoint's prices, else as the rows were billed.

        The low case is that of the cheapest host, the high one that of the dearest.
        """
        asked, written = self.offer.prompt_usd, self.offer.completion_usd
        if asked is None or written is None:
            return self.pilot.cost_per_row if self.measured else None
        dear = case / 2
        return self.prompt(completion) * _between(asked, dear) + completion * _between(
            written, dear
        )


@dataclass(frozen=True, slots=True)
class Part:
    """One dataset in one case."""

    generations: int
    completion_tokens: float
    prompt_tokens: float
    cost_usd: float | None
    seconds: float
    """Of all its requests, one after the other."""
    ends_by: str
    """`prompts`, `token_budget`, `dataset_max_cost_usd` or `max_cost_usd`."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Low, middle and high case of a run, dataset by dataset, in their order."""

    needs: tuple[Need, ...]
    low: tuple[Part, ...]
    middle: tuple[Part, ...]
    high: tuple[Part, ...]
    spent_usd: float
    ceiling_usd: float | None
    """If every answer ran into max_tokens, and nothing ended the run."""
    concurrency: int
    reserve_each_usd: float | None
    """What one request holds of the balance at most."""

    @property
    def measured(self) -> bool:
        """Whether every dataset with work left stands on rows."""
        return all(need.measured for need in self.needs if need.left)

    @property
    def cost_usd(self) -> Cases | None:
        """USD still to be spent."""
        sums = [_sum(part.cost_usd for part in case) for case in self.cases]
        low, middle, high = sums
        if low is None or middle is None or high is None:
            return None
        return low, middle, high

    @property
    def duration_s(self) -> Cases:
        """Seconds to the end, with the engine's ramp-up and the last request."""
        low, middle, high = (
            self._duration(case, share)
            for case, share in zip(
                self.cases, (HELD_SHARE.low, HELD_SHARE.mean, HELD_SHARE.high), strict=True
            )
        )
        return low, middle, high

    @property
    def cases(self) -> tuple[tuple[Part, ...], ...]:
        """The three cases."""
        return self.low, self.middle, self.high

    @property
    def reserve_usd(self) -> float | None:
        """What the whole concurrency holds of the balance at most."""
        flying = min(self.concurrency, max((need.left for need in self.needs), default=0))
        return None if self.reserve_each_usd is None else self.reserve_each_usd * flying

    def _duration(self, parts: Sequence[Part], share: float) -> float:
        requests = sum(part.generations for part in parts)
        if not requests:
            return 0.0
        flying = max(1.0, min(self.concurrency * share, requests))
        work = sum(part.seconds for part in parts) / flying
        ramp = DOUBLING_S * max(0.0, math.log2(flying / START))
        chains = [
            part.seconds / part.generations * need.max_turns
            for part, need in zip(parts, self.needs, strict=True)
            if part.generations
        ]
        return max(work + ramp, *chains) + max(chains)


def estimate(needs: Sequence[Need], *, max_cost_usd: float | None, concurrency: int) -> Estimate:
    """Reckon all three cases; the datasets share `max_cost_usd` in their order."""
    spent = sum(need.pilot.ledger.cost_usd for need in needs)
    low, middle, high = (_walk(needs, case, max_cost_usd, spent) for case in range(3))
    return Estimate(
        needs=tuple(needs),
        low=low,
        middle=middle,
        high=high,
        spent_usd=spent,
        ceiling_usd=_ceiling(needs),
        concurrency=concurrency,
        reserve_each_usd=max((usd for need in needs if (usd := _reserve(need))), default=None),
    )


def _walk(
    needs: Sequence[Need], case: int, max_cost_usd: float | None, spent: float
) -> tuple[Part, ...]:
    parts = []
    for need in needs:
        rest = None if max_cost_usd is None else max_cost_usd - spent
        part = _part(need, case, rest)
        spent += part.cost_usd or 0.0
        parts.append(part)
    return tuple(parts)


def _part(need: Need, case: int, rest_usd: float | None) -> Part:
    completion = need.completion()
    tokens = (completion.low, completion.mean, completion.high)[case]
    latency = need.latency(completion)
    seconds = (latency.low, latency.mean, latency.high)[case]
    each = need.cost(tokens, case)
    ledger = need.pilot.ledger
    limits = {
        "prompts": need.left,
        "token_budget": _fitting(need.token_budget, ledger.completion_tokens, tokens, up=True),
        "dataset_max_cost_usd": _fitting(need.max_cost_usd, ledger.cost_usd, each),
        "max_cost_usd": _fitting(rest_usd, 0.0, each),
    }
    known = {name: number for name, number in limits.items() if number is not None}
    ends_by = min(known, key=lambda name: known[name])
    done = known[ends_by]
    return Part(
        generations=done,
        completion_tokens=done * tokens,
        prompt_tokens=done * need.prompt(tokens),
        cost_usd=_times(done, each),
        seconds=done * seconds,
        ends_by=ends_by,
    )


def _times(generations: int, each: float | None) -> float | None:
    """Nothing to do costs nothing, whether or not a price is known."""
    if each is None:
        return None if generations else 0.0
    return generations * each


def _fitting(
    budget: float | None, spent: float, each: float | None, *, up: bool = False
) -> int | None:
    """How many generations a budget allows; None where it sets no bound."""
    if budget is None or not each:
        return None
    number = max(0.0, (budget - spent) / each)
    return math.ceil(number) if up else math.floor(number)


def _ceiling(needs: Sequence[Need]) -> float | None:
    if any(need.max_tokens is None for need in needs if need.left):
        return None
    return _sum(_times(need.left, need.cost(need.max_tokens or 0, 2)) for need in needs)


def _reserve(need: Need) -> float | None:
    """USD that a provider holds for one request: its prompt, and max_tokens written."""
    asked, written = need.offer.prompt_usd, need.offer.completion_usd
    if asked is None or written is None:
        return None
    most = need.max_tokens or DEFAULT_MAX_TOKENS
    return need.prompt(need.completion().mean) * asked[1] + most * written[1]


def _between(span: Span, share: float) -> float:
    return span[0] + (span[1] - span[0]) * share


def _sum(values: Iterable[float | None]) -> float | None:
    total = 0.0
    for value in values:
        if value is None:
            return None
        total += value
    return total
