"""The matching rules of DESIGN §6 for the model and the provider that answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.wire.served import model_matches, provider_matches

KIMI = "moonshotai/kimi-k2.5"


@pytest.mark.parametrize(
    "served",
    [
        KIMI,
        f"{KIMI}-0127",
        f"{KIMI}-20260127",
        f"{KIMI}-2026-01-27",
        f"{KIMI}-01-27",
        f"{KIMI}-260127",
        f"{KIMI}-2601",
        f"{KIMI}-001",
        f"{KIMI}@4d01dfe0332d",
    ],
)
def test_a_date_or_a_revision_is_the_same_model(served: str) -> None:
    assert model_matches(served, KIMI)


@pytest.mark.parametrize(
    "served",
    [
        "",
        "moonshotai/kimi-k2",
        "moonshotai/kimi-k2.6",
        "kimi-k2.5",
        f"{KIMI}-turbo",
        f"{KIMI}-turbo-0127",
        f"{KIMI}-0127-turbo",
        f"{KIMI}-thinking",
        f"{KIMI}:free",
        f"{KIMI}-0127:free",
        f"{KIMI}-5",
        f"{KIMI}-70",
        f"{KIMI}-128",
        f"{KIMI}-9999",
        f"{KIMI}-0000",
        f"{KIMI}-32k",
        f"{KIMI}0127",
        f"{KIMI} ",
        f"{KIMI}-0127\n",
        f"x{KIMI}",
        KIMI.upper(),
    ],
)
def test_nothing_looser_is(served: str) -> None:
    assert not model_matches(served, KIMI)


def test_an_alias_counts_with_its_revisions_too() -> None:
    aliases = frozenset({"moonshotai/kimi-k2.5-base"})
    assert model_matches("moonshotai/kimi-k2.5-base", KIMI, aliases)
    assert model_matches("moonshotai/kimi-k2.5-base-0127", KIMI, aliases)
    assert not model_matches("moonshotai/kimi-k2.5-bass", KIMI, aliases)


@pytest.mark.parametrize(
    ("served", "requested", "same"),
    [
        (f"{KIMI}-0127", f"{KIMI}:nitro", True),
        (f"{KIMI}:nitro", f"{KIMI}:nitro", True),
        (f"{KIMI}:exacto", f"{KIMI}:nitro", False),
        (f"{KIMI}-0127:free", f"{KIMI}:free", True),
        (KIMI, f"{KIMI}:free", False),
        ("llama3", "llama3:70b", False),
        ("llama3:70b", "llama3:70b", True),
    ],
)
def test_routing_suffixes_choose_no_model_but_tags_do(
    served: str, requested: str, same: bool
) -> None:
    assert model_matches(served, requested) is same


@given(st.text(max_size=40))
def test_a_suffix_that_is_no_revision_never_matches(suffix: str) -> None:
    if any(c.isalpha() for c in suffix) and not suffix.startswith("@"):
        assert not model_matches(KIMI + suffix, KIMI)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("SiliconFlow", "siliconflow/int4"),
        ("AtlasCloud", "atlas-cloud/int4"),
        ("Amazon Bedrock", "amazon-bedrock/us-east-2"),
        ("Novita", "novita"),
        ("Moonshot AI", "moonshotai"),
        ("siliconflow/int4", "SiliconFlow"),
    ],
)
def test_display_names_and_tags_meet_at_the_base_slug(name: str, allowed: str) -> None:
    assert provider_matches(name, {allowed, "venice"})
    assert not provider_matches(name, {"venice"})


def test_an_empty_allow_list_allows_nobody() -> None:
    assert not provider_matches("Novita", frozenset())
