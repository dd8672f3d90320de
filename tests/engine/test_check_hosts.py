"""Which hosts a routing lets answer: our reading of it against the local provider's router."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.checks.hosts import Host, price, read_host, why_not
from engine.simulator import catalog
from engine.simulator.routing import NoRouteError, route
from engine.simulator.scenario import Host as Played
from engine.simulator.scenario import Scenario

PLAYED = (
    Played(name="SiliconFlow", tag="siliconflow/int4", quantization="int4"),
    Played(name="SiliconFlow", tag="siliconflow/fp8", quantization="fp8", prompt_usd_per_m=0.9),
    Played(name="Venice", tag="venice", max_completion_tokens=65_536, completion_usd_per_m=4.0),
    Played(name="Novita", tag="novita", quantization="bf16", completion_usd_per_m=3.0),
)
TAGS = [host.tag for host in PLAYED]
NAMES = [*TAGS, "siliconflow", "Novita", "VENICE", "elsewhere"]
some = st.lists(st.sampled_from(NAMES), max_size=3)
WISHES = st.fixed_dictionaries(
    {},
    optional={
        "ignore": some,
        "quantizations": st.lists(st.sampled_from(["int4", "fp8", "bf16", "unknown"]), max_size=3),
        "max_price": st.fixed_dictionaries(
            {},
            optional={
                "prompt": st.sampled_from([0.3, 0.45, 1.0]),
                "completion": st.sampled_from([2.25, 3.5]),
            },
        ),
        "allow_fallbacks": st.booleans(),
    },
)
BOUND = st.one_of(
    st.fixed_dictionaries({"only": some}),
    st.fixed_dictionaries({"order": some}),
    st.just({}),
)


@given(WISHES, BOUND, st.sampled_from([None, 1000, 65_536, 65_537, 200_000]))
def test_we_and_the_router_leave_the_same_hosts(
    wish: dict[str, Any], bound: dict[str, Any], max_tokens: int | None
) -> None:
    wish = wish | bound
    entries = catalog.endpoints(Scenario(providers=PLAYED))["data"]["endpoints"]
    hosts = [read_host(entry) for entry in entries]
    ours = {host.tag for host in hosts if not why_not(host, wish, max_tokens=max_tokens)}
    try:
        theirs = {host.tag for host in route(PLAYED, wish, max_tokens, Random(0))}
    except NoRouteError:
        theirs = set()
    assert ours == theirs


HOST = Host(
    "AtlasCloud",
    "atlas-cloud/int4",
    "int4",
    context_length=32_000,
    max_completion_tokens=16_000,
    prompt_usd=0.5e-6,
    completion_usd=2.5e-6,
    parameters=frozenset({"temperature"}),
)


@pytest.mark.parametrize(
    ("routing", "max_tokens", "words"),
    [
        ({"only": ["novita"]}, None, "not in `only`"),
        ({"order": ["novita"], "allow_fallbacks": False}, None, "allow_fallbacks is false"),
        ({"order": ["novita"]}, None, ""),
        ({"ignore": ["Atlas-Cloud"]}, None, "in `ignore`"),
        ({"only": ["atlascloud"]}, None, ""),
        ({"only": ["atlas-cloud/fp8"]}, None, "not in `only`"),
        ({"quantizations": ["fp8"]}, None, "int4 is not in `quantizations`"),
        ({"max_price": {"completion": "2.4"}}, None, "costs $2.50/M, max_price is $2.40"),
        ({"max_price": {"completion": 2.5, "prompt": 0.5}}, None, ""),
        ({}, 16_001, "writes at most 16,000 tokens, max_tokens is 16,001"),
        ({}, 16_000, ""),
        ({"require_parameters": True}, None, "lacks seed"),
    ],
)
def test_each_reason_has_its_words(
    routing: dict[str, Any], max_tokens: int | None, words: str
) -> None:
    reason = why_not(
        HOST, routing, max_tokens=max_tokens, needed=frozenset({"seed", "temperature"})
    )
    assert words in reason
    assert bool(words) == bool(reason)


def test_max_tokens_as_large_as_the_context_leaves_no_room() -> None:
    host = Host("A", "a", "int4", context_length=8192)
    assert "leaves no room" in why_not(host, {}, max_tokens=8192)


@pytest.mark.parametrize("entry", [{}, {"pricing": None}, {"pricing": {"prompt": "x"}, "tag": 3}])
def test_a_malformed_entry_is_a_host_of_which_little_is_known(entry: dict[str, Any]) -> None:
    host = read_host(entry)
    assert host.prompt_usd is None
    assert host.context_length is None
    assert why_not(host, {}, max_tokens=8192) == ""


@pytest.mark.parametrize(
    ("value", "usd"),
    [("0.00000045", 0.45e-6), (0, 0.0), ("-1", None), (None, None), ("nan", None), ("inf", None)],
)
def test_prices_are_read_or_unknown(value: Any, usd: float | None) -> None:
    assert price(value) == usd
