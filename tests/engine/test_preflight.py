"""Before the run: what the endpoint says of itself, against the real local provider."""

from __future__ import annotations

from typing import Any

import pytest
from misbehaving import closed_port, misbehaving, pages, reply

from engine.errors import EndpointError, ExitCode, UsageError
from engine.manifest import Endpoint
from engine.plan import EndpointFacts
from engine.preflight import inspect
from engine.simulator import Scenario, serve
from engine.wire.client import Client

MODEL = "moonshotai/kimi-k2.5"
SLUG = "moonshotai/kimi-k2.5-0127"


async def ask(url: str, *, key: str | None = None, **endpoint: Any) -> EndpointFacts:
    asked = Endpoint(base_url=url, **{"model": MODEL, "tokenizer": "kimi-k2.5", **endpoint})
    async with Client(url, key=key, headers={}) as client:
        return await inspect(client, asked)


async def inspected(
    scenario: dict[str, Any] | None = None, *, key: str | None = None, **endpoint: Any
) -> EndpointFacts:
    async with serve(Scenario.from_dict(scenario or {})) as provider:
        return await ask(provider.base_url, key=key, **endpoint)


async def refused(
    scenario: dict[str, Any] | None = None, *, key: str | None = None, **endpoint: Any
) -> EndpointError:
    with pytest.raises(EndpointError) as caught:
        await inspected(scenario, key=key, **endpoint)
    assert caught.value.exit_code is ExitCode.ENDPOINT
    return caught.value


async def test_openrouter_is_known_by_its_prices_and_any_host_may_answer() -> None:
    facts = await inspected()
    assert (facts.api, facts.token_ids, facts.avoidable) == ("openrouter", False, True)
    assert facts.aliases == {SLUG}
    assert facts.providers is None
    assert facts.slugs == {
        "SiliconFlow": "siliconflow",
        "AtlasCloud": "atlas-cloud",
        "Novita": "novita",
    }


async def test_the_worst_case_is_that_of_the_dearest_host_that_may_answer() -> None:
    facts = await inspected()
    assert facts.prompt_usd == pytest.approx(0.60e-6)
    assert facts.completion_usd == pytest.approx(3.0e-6)
    pinned = await inspected(provider={"only": ["siliconflow", "atlas-cloud"]})
    assert pinned.completion_usd == pytest.approx(2.5e-6)


@pytest.mark.parametrize(
    ("routing", "providers", "avoidable"),
    [
        (
            {"order": ["siliconflow/int4"], "allow_fallbacks": False},
            {"siliconflow/int4", "SiliconFlow"},
            False,
        ),
        ({"order": ["siliconflow/int4"]}, None, True),
        (
            {"only": ["siliconflow", "novita"]},
            {"siliconflow", "novita", "SiliconFlow", "Novita"},
            True,
        ),
        ({"ignore": ["novita", "atlas-cloud"]}, None, False),
        ({"quantizations": ["int4"]}, None, True),
        ({"max_price": {"completion": 2.3}}, None, False),
    ],
)
async def test_routing_says_who_may_answer_and_whether_one_can_be_avoided(
    routing: dict[str, Any], providers: set[str] | None, avoidable: bool
) -> None:
    facts = await inspected(provider=routing)
    assert facts.providers == providers
    assert facts.avoidable is avoidable


@pytest.mark.parametrize("model", [SLUG, MODEL + ":nitro", MODEL + ":floor", MODEL + ":exacto"])
async def test_a_dated_slug_or_a_route_suffix_names_the_same_model(model: str) -> None:
    facts = await inspected(model=model)
    assert facts.aliases == {SLUG}
    assert len(facts.slugs) == 3


async def test_a_model_that_is_gone_ends_before_anything_is_spent() -> None:
    error = await refused(model="moonshotai/kimi-k3")
    assert "no model moonshotai/kimi-k3" in error.message
    assert error.hint


async def test_a_route_that_leaves_no_host_names_those_there_are() -> None:
    error = await refused(provider={"only": ["deepinfra"]})
    assert "none of the 3 hosts" in error.message
    for tag in ("siliconflow/int4", "atlas-cloud/int4", "novita"):
        assert tag in error.hint


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (None, "wants a key and none is set (HTTP 401"),
        ("sk-wrong", "does not accept the key (HTTP 401"),
    ],
)
async def test_a_key_that_is_not_accepted_is_told_without_repeating_it(
    key: str | None, words: str
) -> None:
    error = await refused({"account": {"keys": ["sk-right"]}}, key=key)
    assert words in error.message
    assert "EAGLEGEN_API_KEY" in error.hint
    assert "sk-" not in str(error)


async def test_the_right_key_is_sent() -> None:
    facts = await inspected({"account": {"keys": ["sk-right"]}}, key="sk-right")
    assert facts.api == "openrouter"


@pytest.mark.parametrize("api", ["vllm", "sglang"])
async def test_a_server_of_ones_own_gives_ids_where_they_are_wanted(api: str) -> None:
    facts = await inspected({"api": api})
    assert (facts.api, facts.token_ids, facts.avoidable) == (api, True, False)
    assert (facts.providers, facts.completion_usd) == (None, None)
    assert (await inspected({"api": api}, tokenizer="none")).token_ids is False
    unwanted = {"token_ids": "no"}
    assert (await inspected({"api": api}, **unwanted)).token_ids is False
    assert (await inspected({"api": api}, api="openai")).api == "openai"


@pytest.mark.parametrize("api", ["vllm", "openai"])
async def test_routing_that_would_not_be_obeyed_is_refused(api: str) -> None:
    with pytest.raises(UsageError, match=f"would not be sent: this endpoint's API is {api}"):
        await inspected({"api": "vllm"}, api=api, provider={"order": ["novita"]})


async def test_a_server_of_ones_own_that_serves_another_model_says_which() -> None:
    error = await refused({"api": "vllm"}, model="other/model")
    assert MODEL in error.hint


async def test_what_the_manifest_says_goes_before_what_the_pages_show() -> None:
    assert (await inspected(api="openai")).api == "openai"


async def test_nobody_there_is_an_endpoint_error_that_says_what_to_check() -> None:
    with pytest.raises(EndpointError) as caught:
        await ask(f"http://127.0.0.1:{closed_port()}/v1")
    assert "does not answer (connect:" in caught.value.message
    assert "base_url" in caught.value.hint


PLAIN = reply(b'{"object":"list","data":[{"id":"m","owned_by":"me"}]}')


@pytest.mark.parametrize(
    "answers",
    [
        {"/v1/models": PLAIN},
        {},
        {"/v1/models": reply(b"<html>hello</html>")},
        {"/v1/models": reply(b"oops", status="500 Oops")},
        {"/v1/models": reply(b'{"data":{"x":1}}')},
        {"/v1/models": reply(b'{"data":[null,7,"m",[]]}')},
        {"/v1/models": reply(b"[]")},
    ],
)
async def test_a_server_without_a_usable_page_of_models_is_taken_as_plain(
    answers: dict[str, bytes],
) -> None:
    async with misbehaving(pages(answers)) as server:
        facts = await ask(server.url)
    assert facts == EndpointFacts(api="openai", avoidable=False)


@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden"])
async def test_a_guarded_server_that_refuses_the_key_ends_the_run_at_once(status: str) -> None:
    async with misbehaving(pages({"/v1/models": reply(b"{}", status=status)})) as server:
        with pytest.raises(EndpointError, match="wants a key and none is set"):
            await ask(server.url)


@pytest.mark.parametrize(
    "hosts", [b"", b"nonsense", b'{"data":null}', b'{"data":{"endpoints":[7,{}]}}']
)
async def test_hosts_that_cannot_be_read_leave_the_price_of_the_models_page(hosts: bytes) -> None:
    listed = b'{"data":[{"id":"%s","pricing":{"prompt":"0.000001","completion":"0.000002"}}]}'
    answers = {
        "/v1/models": reply(listed % MODEL.encode()),
        f"/v1/models/{MODEL}/endpoints": reply(hosts),
    }
    async with misbehaving(pages(answers)) as server:
        facts = await ask(server.url)
    assert (facts.api, facts.aliases, facts.providers) == ("openrouter", frozenset(), None)
    if b"{}" not in hosts:
        assert (facts.prompt_usd, facts.completion_usd) == (1e-6, 2e-6)
