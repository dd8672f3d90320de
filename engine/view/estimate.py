"""What `run` itself knows of cost and time before its first request: `check`'s estimate, sampled.

It reads the first rows of each source, takes their tokens by their bytes, and counts what earlier
sessions have written; `check` tokenises every prompt and asks for every host.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from engine.checks.money import Estimate, Need, estimate
from engine.checks.pilot import Pilot
from engine.checks.route import Offer
from engine.checks.tokens import PromptCounter
from engine.disk.jsonlines import read_lines
from engine.disk.ledger import ROWS, Ledger
from engine.errors import EaglegenError
from engine.feed.prompts import Prompt
from engine.feed.sources import PromptFeed
from engine.plan import DatasetPlan, EndpointFacts, Plan
from engine.view.snapshot import Forecast
from engine.view.stats import DatasetStats

SAMPLE = 300
"""Prompts of each source, and rows on disk, that stand for all."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """Sums over the first prompts of a source."""

    prompts: int = 0
    generations: int = 0
    first: int = 0
    later: int = 0
    carried: int = 0
    max_turns: int = 1


def forecasts(plan: Plan, stats: Mapping[str, DatasetStats]) -> dict[str, Forecast]:
    """The forecast of each dataset by its name, and of the run under the empty one.

    Blocks on files. Empty where a source cannot be read: the run itself will say so.
    """
    try:
        needs = [_need(plan, dataset, stats[dataset.name]) for dataset in plan.datasets]
    except (EaglegenError, OSError, ValueError):
        return {}
    cap = plan.manifest.limits.max_cost_usd

    def reckoned(chosen: list[Need]) -> Forecast:
        found = estimate(chosen, max_cost_usd=cap, concurrency=plan.concurrency)
        return _forecast(found)

    return {"": reckoned(needs), **{need.name: reckoned([need]) for need in needs}}


def _forecast(found: Estimate) -> Forecast:
    cost, (fast, _, slow) = found.cost_usd, found.duration_s
    if cost is None:
        return Forecast(None, None, fast, slow)
    return Forecast(found.spent_usd + cost[0], found.spent_usd + cost[2], fast, slow)


def _need(plan: Plan, dataset: DatasetPlan, stats: DatasetStats) -> Need:
    sample = _sampled(plan, dataset)
    scale = dataset.due / sample.prompts if sample.prompts else 0.0
    generations = round(sample.generations * scale)
    return Need(
        name=dataset.name,
        left=max(0, generations - stats.totals.rows),
        generations=generations,
        first_tokens=round(sample.first * scale),
        later_tokens=round(sample.later * scale),
        carried=round(sample.carried * scale),
        max_turns=sample.max_turns,
        max_tokens=dataset.max_tokens,
        token_budget=dataset.dataset.token_budget,
        max_cost_usd=dataset.dataset.max_cost_usd,
        offer=_offer(plan.facts),
        pilot=_pilot(plan, dataset, stats),
        thinking=plan.manifest.endpoint.thinking,
    )


def _sampled(plan: Plan, dataset: DatasetPlan) -> _Sample:
    counter = PromptCounter(plan.manifest.endpoint, None)
    feed = PromptFeed(plan.manifest, dataset.dataset, stop=min(SAMPLE, dataset.stop))
    found = [item for item in feed.batch(SAMPLE) if isinstance(item, Prompt)]
    measures = [counter.measure(prompt) for prompt in found]
    return _Sample(
        prompts=len(found),
        generations=sum(len(each.tokens) for each in measures),
        first=sum(each.tokens[0] for each in measures),
        later=sum(sum(each.tokens[1:]) for each in measures),
        carried=sum(sum(range(len(each.tokens))) for each in measures if each.carries),
        max_turns=max((len(each.tokens) for each in measures), default=1),
    )


def _offer(facts: EndpointFacts) -> Offer:
    return Offer(
        prompt_usd=_span(facts.cheapest_prompt_usd, facts.prompt_usd),
        completion_usd=_span(facts.cheapest_completion_usd, facts.completion_usd),
    )


def _span(low: float | None, high: float | None) -> tuple[float, float] | None:
    """A price from the cheapest host's, which may be nothing, to the dearest's."""
    if high is None:
        return None
    return (high if low is None else low), high


def _pilot(plan: Plan, dataset: DatasetPlan, stats: DatasetStats) -> Pilot:
    """Rows of earlier sessions: their sums in full, their spread by the first ones."""
    totals = stats.totals
    known = Ledger(
        rows=totals.rows,
        completion_tokens=totals.completion_tokens,
        cost_usd=totals.cost_usd,
        costs_known=totals.costs_known,
    )
    pilot = Pilot(ledger=known)
    if totals.rows:
        for _, row in islice(read_lines(plan.folder / dataset.name / ROWS), SAMPLE):
            _measure(pilot.completions, pilot.latencies, row)
    return pilot


def _measure(completions: array[float], latencies: array[float], row: Mapping[str, Any]) -> None:
    usage = row.get("usage")
    written = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
    latency = row.get("latency_s")
    if isinstance(written, int) and written > 0:
        completions.append(written)
        if isinstance(latency, int | float) and latency > 0:
            latencies.append(latency)
