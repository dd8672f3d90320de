"""Everything a run is made of before its first request: manifest, options, endpoint facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.errors import SourceError, UsageError
from engine.manifest import Dataset, Endpoint, Manifest
from engine.prompts import Prompt
from engine.sources import count_rows
from engine.usage import Usage

DEFAULT_MAX_TOKENS = 8192
"""Assumed for the worst case where the sampling sets no max_tokens."""
PROMPT_TOKENS = 2000
"""Assumed prompt length for the worst case of a request's cost."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Which prompts this process does: those whose hash falls to `index` of `count` (1-based)."""

    index: int = 1
    count: int = 1

    def takes(self, prompt: Prompt) -> bool:
        """Deal by content, so that shards never overlap however the source is ordered."""
        return int(prompt.hash[-8:], 16) % self.count == self.index - 1


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line adds to a manifest (DESIGN §5)."""

    only: tuple[str, ...] = ()
    concurrency: int | None = None
    output: Path | None = None
    base_url: str | None = None
    limit: int | None = None
    shard: Shard = field(default_factory=Shard)
    retry_failed: bool = False
    allow_short: bool = False
    max_error_rate: float | None = None


@dataclass(frozen=True, slots=True)
class EndpointFacts:
    """What the endpoint said of itself before the run; unknown is None or empty."""

    api: str = "openai"
    token_ids: bool = False
    aliases: frozenset[str] = frozenset()
    providers: frozenset[str] | None = None
    """Names under which an allowed provider may answer; None: any."""
    slugs: Mapping[str, str] = field(default_factory=dict)
    """Display name of each host the routing allows, to the slug that `provider.ignore` takes."""
    avoidable: bool = True
    """Whether the router has another host to turn to."""
    prompt_usd: float | None = None
    """USD per prompt token, of the dearest endpoint allowed."""
    completion_usd: float | None = None
    notes: tuple[str, ...] = ()

    def cost_of(self, usage: Usage) -> float | None:
        """USD that a reply came to by these prices; None where counts or prices are unknown."""
        if self.completion_usd is None or usage.completion_tokens is None:
            return None
        prompt = (usage.prompt_tokens or 0) * (self.prompt_usd or 0.0)
        return prompt + usage.completion_tokens * self.completion_usd


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """One dataset of this session."""

    dataset: Dataset
    prompts: int
    """The total on screen: the manifest's, or what the source holds with --allow-short."""
    stop: int
    """How many source rows this session reads: less than `prompts` in a pilot."""
    sampling: dict[str, Any]

    @property
    def name(self) -> str:
        """The dataset's name."""
        return self.dataset.name

    @property
    def max_tokens(self) -> int | None:
        """The sampling's cap on completion tokens."""
        for key in ("max_completion_tokens", "max_tokens"):
            value = self.sampling.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return None


@dataclass(frozen=True, slots=True)
class Plan:
    """One session of a run."""

    manifest: Manifest
    options: Options
    folder: Path
    datasets: tuple[DatasetPlan, ...]
    facts: EndpointFacts = field(default_factory=EndpointFacts)

    @property
    def concurrency(self) -> int:
        """The ceiling of requests in flight at the start."""
        return self.options.concurrency or self.manifest.limits.concurrency

    def worst_cost(self, plan: DatasetPlan) -> float:
        """USD one request may cost at most; 0 where prices are unknown."""
        prices = self.facts
        if prices.completion_usd is None:
            return 0.0
        completion = (plan.max_tokens or DEFAULT_MAX_TOKENS) * prices.completion_usd
        return completion + PROMPT_TOKENS * (prices.prompt_usd or 0.0)


def make_plan(manifest: Manifest, options: Options) -> Plan:
    """Check options and sources against the manifest; nothing is sent. Raises UsageError."""
    manifest = _with_options(manifest, options)
    chosen = [d for d in manifest.datasets if not options.only or d.name in options.only]
    return Plan(
        manifest=manifest,
        options=options,
        folder=options.output or manifest.output_path,
        datasets=tuple(_dataset_plan(manifest, dataset, options) for dataset in chosen),
    )


def _with_options(manifest: Manifest, options: Options) -> Manifest:
    names = [dataset.name for dataset in manifest.datasets]
    unknown = [name for name in options.only if name not in names]
    if unknown:
        raise UsageError(
            f"--only {unknown[0]}: no such dataset", hint=f"The manifest has {', '.join(names)}."
        )
    if options.base_url is not None:
        try:
            endpoint = Endpoint.model_validate(
                {**manifest.endpoint.model_dump(), "base_url": options.base_url}
            )
        except ValueError as error:
            reason = str(error).partition("Value error, ")[2].partition(" [")[0] or "no http(s) URL"
            raise UsageError(f"--base-url: {reason}") from None
        manifest = manifest.model_copy(update={"endpoint": endpoint})
    if options.concurrency is not None:
        limits = manifest.limits.model_copy(update={"concurrency": options.concurrency})
        manifest = manifest.model_copy(update={"limits": limits})
    return manifest


def _dataset_plan(manifest: Manifest, dataset: Dataset, options: Options) -> DatasetPlan:
    try:
        held = count_rows(dataset.source, manifest.source_path(dataset), enough=dataset.prompts)
    except SourceError as error:
        hint = error.hint or "A source's path is relative to the manifest's folder."
        raise SourceError(f"{dataset.name}: {error.message}", hint=hint) from error
    prompts = dataset.prompts
    if held < prompts:
        if not options.allow_short:
            raise SourceError(
                f"{dataset.name}: the manifest asks for {prompts} prompts, "
                f"{manifest.source_path(dataset)} holds {held}",
                hint="Correct `prompts`, or run with --allow-short to take what is there.",
            )
        prompts = held
    stop = prompts if options.limit is None else min(prompts, options.limit)
    return DatasetPlan(dataset, prompts, stop, manifest.sampling_of(dataset))
