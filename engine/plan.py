"""Everything a run is made of before its first request: manifest, options, endpoint facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.checks.parameters import spelling_notes
from engine.disk.outfolder import check_folder, check_parts, wanted_folder
from engine.errors import SourceError, UsageError
from engine.feed.prompts import Prompt
from engine.feed.sources import count_rows
from engine.fleet.neighbours import check_shard, check_whole, place_of
from engine.fleet.shares import deal, share_of, share_words
from engine.manifest import Dataset, Manifest
from engine.money.price import Price
from engine.wire.usage import Usage

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

    def takes_row(self, index: int) -> bool:
        """Deal an unreadable row, which has no content, by its place in the source."""
        return index % self.count == self.index - 1

    def expects(self, prompts: int) -> int:
        """How many of so many prompts should fall to this shard, as far as is known unread."""
        return deal(prompts, self.index, self.count)

    @property
    def partial(self) -> bool:
        """Whether there are others."""
        return self.count > 1


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
    cheapest_prompt_usd: float | None = None
    """USD per prompt token, of the cheapest endpoint allowed: the low end of an estimate."""
    cheapest_completion_usd: float | None = None
    prices: Mapping[str, Price] = field(default_factory=dict)
    """List prices by the display name of a host; of its variants the dearest."""
    notes: tuple[str, ...] = ()

    def cost_of(self, usage: Usage, provider: str | None) -> float | None:
        """USD that a reply came to by its host's list price, else by the dearest one's.

        None where a count or a price is unknown.
        """
        other = Price(self.prompt_usd, self.completion_usd)
        return self.prices.get(provider or "", other).of(usage)


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """One dataset of this session."""

    dataset: Dataset
    prompts: int
    """The total on screen: the manifest's, or what the source holds with --allow-short.

    Of a shard: what should be dealt to it; the number that is dealt is known when all is read.
    """
    stop: int
    """How many source rows this session reads: less than `prompts` in a pilot."""
    sampling: dict[str, Any]
    whole: int = 0
    """The total over all shards; 0 where there are none."""

    @property
    def due(self) -> int:
        """Prompts that this session should do; of a shard its part of `stop`, by estimate."""
        return round(self.stop * self.prompts / self.whole) if self.whole else self.stop

    @property
    def pilot(self) -> int | None:
        """How many prompts a pilot does here; None where it is none."""
        return self.due if self.stop < (self.whole or self.prompts) else None

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
    """What this session does: of a shard, with its shares of limits and budgets."""
    options: Options
    folder: Path
    datasets: tuple[DatasetPlan, ...]
    facts: EndpointFacts = field(default_factory=EndpointFacts)
    whole: Manifest | None = None
    """The manifest of all shards; None where there are none."""

    @property
    def concurrency(self) -> int:
        """The ceiling of requests in flight at the start."""
        return self.manifest.limits.concurrency

    @property
    def recorded(self) -> Manifest:
        """What run.json holds: the numbers of the whole, whichever shard this is."""
        return self.whole or self.manifest

    @property
    def shard_record(self) -> dict[str, Any] | None:
        """Which shard this is, as run.json holds it, with the totals of the whole."""
        shard = self.options.shard
        if not shard.partial:
            return None
        totals = {plan.name: plan.whole for plan in self.datasets}
        return {"index": shard.index, "count": shard.count, "prompts": totals}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the journal says of the plan."""
        shard, sampling = self.options.shard, {plan.name: plan.sampling for plan in self.datasets}
        spelling = spelling_notes(self.manifest.endpoint, sampling)
        if self.whole is None:
            return tuple(spelling)
        return (share_words(self.whole, self.manifest, shard.index, shard.count), *spelling)

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
    shard = options.shard
    mine = share_of(manifest, shard.index, shard.count)
    folder = _folder(manifest, options)
    chosen = [d for d in mine.datasets if not options.only or d.name in options.only]
    check_parts(folder, (dataset.name for dataset in chosen))
    return Plan(
        manifest=mine,
        options=options,
        folder=folder,
        datasets=tuple(_dataset_plan(mine, dataset, options) for dataset in chosen),
        whole=manifest if shard.partial else None,
    )


def _folder(manifest: Manifest, options: Options) -> Path:
    """The run directory; shards lie side by side in the output folder."""
    root, shard = wanted_folder(options.output, manifest.output_path), options.shard
    check_folder(root)
    if not shard.partial:
        check_whole(root)
        return root
    folder = place_of(root, shard.index, shard.count)
    if folder == root:
        check_whole(root)
    else:
        check_shard(root, shard.count)
    return folder


def _with_options(manifest: Manifest, options: Options) -> Manifest:
    names = [dataset.name for dataset in manifest.datasets]
    unknown = [name for name in options.only if name not in names]
    if unknown:
        raise UsageError(
            f"--only {unknown[0]}: no such dataset", hint=f"The manifest has {', '.join(names)}."
        )
    if options.base_url is not None:
        endpoint = manifest.endpoint.at(options.base_url)
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
    sampling, shard = manifest.sampling_of(dataset), options.shard
    if not shard.partial:
        return DatasetPlan(dataset, prompts, stop, sampling)
    return DatasetPlan(dataset, shard.expects(prompts), stop, sampling, whole=prompts)
