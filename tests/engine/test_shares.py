"""A shard's shares sum exactly to the manifest's numbers."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from engine_parts import HEAD, dataset_text, manifest_of
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.fleet.shares import deal, deal_usd, share_of, share_words
from engine.manifest import Manifest

LIMITS = """
[limits]
concurrency = 2000
max_cost_usd = 86.0
"""


def whole(**dataset: object) -> Manifest:
    return manifest_of(HEAD + LIMITS + dataset_text("B6", 15000, **dataset), Path("/m"))


def test_2000_over_three_shards() -> None:
    assert [deal(2000, index, 3) for index in (1, 2, 3)] == [667, 667, 666]


def test_86_dollars_over_three_shards_in_cents() -> None:
    assert [deal_usd(86.0, index, 3) for index in (1, 2, 3)] == [28.67, 28.67, 28.66]


def test_a_cap_of_less_than_a_cent_each_is_dealt_in_millionths() -> None:
    assert [deal_usd(0.005, index, 3) for index in (1, 2, 3)] == [0.001667, 0.001667, 0.001666]


@given(st.integers(0, 10**12), st.integers(1, 500))
def test_whole_numbers_sum_to_the_whole(number: int, count: int) -> None:
    parts = [deal(number, index, count) for index in range(1, count + 1)]
    assert sum(parts) == number
    assert max(parts) - min(parts) <= 1


@given(st.integers(1, 10**8), st.sampled_from([1, 100, 10**4]), st.integers(1, 300))
def test_dollars_sum_to_the_whole(units: int, per_usd: int, count: int) -> None:
    usd = units / per_usd
    parts = [deal_usd(usd, index, count) for index in range(1, count + 1)]
    assert sum(Decimal(str(part)) for part in parts) == Decimal(str(usd))


def test_every_limit_and_budget_is_shared_and_the_prompts_are_not() -> None:
    manifest = whole(token_budget=10_000_000, max_cost_usd=10.0)
    shares = [share_of(manifest, index, 4) for index in (1, 2, 3, 4)]
    assert sum(share.limits.concurrency for share in shares) == 2000
    assert sum(share.limits.max_cost_usd or 0 for share in shares) == 86.0
    assert sum(share.datasets[0].token_budget or 0 for share in shares) == 10_000_000
    assert {share.datasets[0].max_cost_usd for share in shares} == {2.5}
    assert {share.datasets[0].prompts for share in shares} == {15000}
    assert shares[1].run.name == "story shard 2/4"
    assert shares[1].identity() == manifest.identity()
    assert shares[1].output_path == manifest.output_path


def test_one_shard_is_the_whole() -> None:
    manifest = whole()
    assert share_of(manifest, 1, 1) is manifest


def test_what_has_no_budget_gets_none() -> None:
    manifest = manifest_of(HEAD + dataset_text("B6", 3))
    share = share_of(manifest, 1, 2)
    assert share.limits.max_cost_usd is None
    assert share.datasets[0].token_budget is None


@pytest.mark.parametrize(
    ("dataset", "count", "words"),
    [
        ({}, 2001, "limits.concurrency: 2000 cannot be shared by 2001 shards"),
        ({"token_budget": 2}, 3, "B6.token_budget: 2 cannot be shared by 3 shards"),
        ({"max_cost_usd": 1e-6}, 3, "B6.max_cost_usd: 1e-06 cannot be shared by 3 shards"),
    ],
)
def test_less_than_one_each_is_refused(dataset: dict[str, object], count: int, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        share_of(whole(**dataset), count, count)


def test_a_share_in_words() -> None:
    manifest = whole(token_budget=10_000_000)
    words = share_words(manifest, share_of(manifest, 3, 3), 3, 3)
    assert words == (
        "shard 3 of 3: its share is 666 of 2,000 in flight, $28.66 of $86.00, "
        "3.3M of 10M tokens of B6"
    )
