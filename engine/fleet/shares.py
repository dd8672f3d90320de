"""A shard's share of the manifest's limits and budgets; the shares sum exactly to the whole.

Shards are counted from 1. What does not divide goes to the first ones: 2000 requests in flight over
3 shards are 667, 667 and 666 (issue 6).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.errors import UsageError
from engine.format import compact, money, thousands
from engine.manifest import Dataset, Manifest

_CENT: Final = 100
_MICRO: Final = 1_000_000
"""Parts of a dollar that a cap is shared in: cents where it has no smaller ones."""


def shard_label(index: int, count: int) -> str:
    """What tells a shard from its neighbours on screen."""
    return f"shard {index}/{count}"


def deal(whole: int, index: int, count: int) -> int:
    """The part of `whole` things that falls to shard `index` of `count`."""
    return whole // count + (index <= whole % count)


def deal_usd(usd: float, index: int, count: int) -> float:
    """The part of a cap in USD that falls to a shard: in whole cents where the cap is."""
    cents = round(usd * _CENT)
    if cents >= count and abs(cents / _CENT - usd) < 1e-9:  # noqa: PLR2004 - a rounding error
        return deal(cents, index, count) / _CENT
    return deal(round(usd * _MICRO), index, count) / _MICRO


def share_of(manifest: Manifest, index: int, count: int) -> Manifest:
    """The manifest as one shard sees it; raises UsageError where there is less than one each."""
    if count == 1:
        return manifest
    limits = manifest.limits
    mine = limits.model_copy(
        update={
            "concurrency": _least_one("limits.concurrency", limits.concurrency, index, count),
            "max_cost_usd": _usd("limits.max_cost_usd", limits.max_cost_usd, index, count),
        }
    )
    run = manifest.run.model_copy(
        update={"name": f"{manifest.run.name} {shard_label(index, count)}"}
    )
    datasets = tuple(_dataset(dataset, index, count) for dataset in manifest.datasets)
    return manifest.model_copy(update={"run": run, "limits": mine, "datasets": datasets})


def share_words(whole: Manifest, mine: Manifest, index: int, count: int) -> str:
    """A shard's share as one sentence for the journal."""
    return f"shard {index} of {count}: its share is {', '.join(_parts(whole, mine))}"


def _parts(whole: Manifest, mine: Manifest) -> Iterator[str]:
    flying, all_flying = mine.limits.concurrency, whole.limits.concurrency
    yield f"{thousands(flying)} of {thousands(all_flying)} in flight"
    if whole.limits.max_cost_usd is not None:
        yield f"{money(mine.limits.max_cost_usd)} of {money(whole.limits.max_cost_usd)}"
    for all_, part in zip(whole.datasets, mine.datasets, strict=True):
        if all_.token_budget is not None:
            share = compact(part.token_budget or 0)
            yield f"{share} of {compact(all_.token_budget)} tokens of {all_.name}"
        if all_.max_cost_usd is not None:
            yield f"{money(part.max_cost_usd)} of {money(all_.max_cost_usd)} of {all_.name}"


def _dataset(dataset: Dataset, index: int, count: int) -> Dataset:
    tokens, cap = dataset.token_budget, dataset.max_cost_usd
    key = f"{dataset.name}.token_budget"
    return dataset.model_copy(
        update={
            "token_budget": None if tokens is None else _least_one(key, tokens, index, count),
            "max_cost_usd": _usd(f"{dataset.name}.max_cost_usd", cap, index, count),
        }
    )


def _usd(key: str, usd: float | None, index: int, count: int) -> float | None:
    if usd is None:
        return None
    share = deal_usd(usd, index, count)
    if share <= 0:
        raise UsageError(f"{key}: {usd} cannot be shared by {count} shards")
    return share


def _least_one(key: str, whole: int, index: int, count: int) -> int:
    if whole < count:
        raise UsageError(
            f"{key}: {whole} cannot be shared by {count} shards",
            hint="Raise it, or take fewer shards: the manifest's numbers are those of the whole.",
        )
    return deal(whole, index, count)
