"""The local provider over real loopback HTTP: replies, account, catalogue, ledger, routing."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from playing import MODEL, ask, playing, until

from engine.simulator.writer import measure_of


async def test_a_reply_has_the_shape_of_a_live_one() -> None:
    async with playing() as (_sim, client):
        response = await ask(client)
    reply = response.json()
    assert response.status_code == 200
    assert response.headers["X-Generation-Id"] == reply["id"]
    assert reply["id"].startswith("gen-")
    assert len(reply["id"].rpartition("-")[2]) == 20
    assert reply["model"] == "moonshotai/kimi-k2.5-0127"
    assert reply["provider"] in {"SiliconFlow", "AtlasCloud", "Novita"}
    (choice,) = reply["choices"]
    assert choice["finish_reason"] == choice["native_finish_reason"] == "stop"
    assert choice["message"]["reasoning"] == choice["message"]["reasoning_details"][0]["text"]
    assert choice["message"]["content"]
    assert reply["usage"]["cost"] > 0


async def test_the_counts_are_those_of_the_real_vocabulary() -> None:
    measure = measure_of("kimi-k2.5")
    async with playing(edge_newlines=1.0) as (_sim, client):
        for number, text in enumerate(["Hi", "你好", "Écris une fonction", "def f(x):"] * 5):
            reply = (await ask(client, f"{text} {number}")).json()
            message = reply["choices"][0]["message"]
            spoken = f"{message['reasoning']}</think>{message['content']}<|im_end|>"
            usage = reply["usage"]
            assert usage["completion_tokens"] == len(measure.encode(spoken))
            thought = len(measure.encode(message["reasoning"]))
            assert usage["completion_tokens_details"]["reasoning_tokens"] == thought


async def test_hi_is_nine_prompt_tokens_with_thinking_and_ten_without() -> None:
    async with playing() as (_sim, client):
        thinking = (await ask(client)).json()
        silent = (await ask(client, reasoning={"enabled": False})).json()
    assert thinking["usage"]["prompt_tokens"] == 9
    assert silent["usage"]["prompt_tokens"] == 10
    assert silent["choices"][0]["message"]["reasoning"] is None


async def test_max_tokens_cuts_at_exactly_that_many() -> None:
    async with playing(length={"mean_tokens": 400, "sigma": 0.1}) as (_sim, client):
        in_reasoning = (await ask(client, max_tokens=16)).json()
        in_content = (await ask(client, reasoning={"enabled": False}, max_tokens=50)).json()
    for reply, tokens in ((in_reasoning, 16), (in_content, 50)):
        assert reply["choices"][0]["finish_reason"] == "length"
        assert reply["usage"]["completion_tokens"] == tokens
    assert in_reasoning["choices"][0]["message"]["content"] is None


async def test_the_same_prompt_and_seed_get_the_same_answer() -> None:
    async with playing() as (_sim, client):
        first, again = (await ask(client)).json(), (await ask(client)).json()
        other = (await ask(client, seed=7)).json()
    async with playing() as (_sim, client):
        elsewhere = (await ask(client)).json()
    assert first["choices"] == again["choices"] == elsewhere["choices"]
    assert first["choices"] != other["choices"]


async def test_lengths_have_the_mean_of_the_scenario_and_a_tail() -> None:
    async with playing() as (_sim, client):
        replies = [(await ask(client, f"Question {n}")).json() for n in range(400)]
    lengths = [reply["usage"]["completion_tokens"] for reply in replies]
    assert 450 < sum(lengths) / len(lengths) < 750
    assert max(lengths) > 2000


async def test_declared_tools_are_called_in_both_modes() -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": schema}}]
    declaration = (
        "# Tools\n\n## functions\nnamespace functions {\ntype get_weather = (_: {\n"
        "  city: string\n}) => any;\n}\n"
    )
    raw = [
        {"role": "system", "name": "tool_declare", "content": declaration},
        {"role": "user", "content": "Hi"},
    ]
    async with playing(tool_calls=1.0) as (_sim, client):
        parsed = (await ask(client, tools=tools)).json()["choices"][0]
        text = (await ask(client, messages=raw)).json()["choices"][0]
    call = parsed["message"]["tool_calls"][0]
    assert parsed["finish_reason"] == "tool_calls"
    assert call["id"] == "functions.get_weather:0"
    assert call["function"] == {"name": "get_weather", "arguments": '{"city": "Lisbon"}'}
    assert text["finish_reason"] == "stop"
    assert "<|tool_call_begin|>functions.get_weather:0" in text["message"]["content"]


async def test_account_goes_down_by_what_the_ledger_charged() -> None:
    async with playing(account={"total_credits": 5.0, "limit": 2.0}) as (sim, client):
        cost = (await ask(client)).json()["usage"]["cost"]
        key = (await client.get("/key")).json()["data"]
        credit = (await client.get("/credits")).json()["data"]
    assert key["usage"] == credit["total_usage"] == cost == sim.ledger.cost_usd
    assert key["limit_remaining"] == 2.0 - cost


@pytest.mark.parametrize(
    ("account", "status", "words"),
    [
        ({"total_credits": 0.0}, 402, "Insufficient credits"),
        ({"limit": 0.0}, 403, "Key limit exceeded"),
        ({"total_credits": 1e-6}, 402, "can only afford"),
        ({"keys": ["right"]}, 401, "No cookie auth credentials found"),
    ],
)
async def test_account_refuses(account: dict[str, Any], status: int, words: str) -> None:
    async with playing(account=account) as (sim, client):
        response = await ask(client)
    assert response.status_code == status
    assert words in response.json()["error"]["message"]
    assert sim.ledger.charged == 0


async def test_a_required_key_is_asked_for_everywhere() -> None:
    async with playing(account={"keys": ["right"]}) as (_sim, client):
        wrong = {"Authorization": "Bearer wrong"}
        assert (await client.get("/key", headers=wrong)).json()["error"]["code"] == 401
        right = {"Authorization": "Bearer right"}
        assert (await client.get("/key", headers=right)).status_code == 200


async def test_catalogue_names_the_hosts_with_prices_as_strings() -> None:
    async with playing() as (_sim, client):
        models = (await client.get("/models")).json()["data"]
        pages = (await client.get(f"/models/{MODEL}/endpoints")).json()["data"]["endpoints"]
        unknown = await client.get("/models/nobody/nothing/endpoints")
    assert models[0]["canonical_slug"] == "moonshotai/kimi-k2.5-0127"
    assert [p["tag"] for p in pages] == ["siliconflow/int4", "atlas-cloud/int4", "novita"]
    assert pages[0]["pricing"]["completion"] == "0.00000225"
    assert unknown.status_code == 404


@pytest.mark.parametrize(
    ("wish", "host"),
    [
        ({"order": ["novita"], "allow_fallbacks": False}, "Novita"),
        ({"only": ["atlas-cloud"]}, "AtlasCloud"),
        ({"ignore": ["siliconflow", "atlas-cloud/int4"]}, "Novita"),
        ({"quantizations": ["int4"], "ignore": ["siliconflow/int4"]}, "AtlasCloud"),
        ({"sort": "price"}, "SiliconFlow"),
        ({"max_price": {"completion": 2.3}}, "SiliconFlow"),
    ],
)
async def test_the_router_obeys(wish: dict[str, Any], host: str) -> None:
    async with playing() as (_sim, client):
        replies = [(await ask(client, f"Question {n}", provider=wish)).json() for n in range(5)]
    assert {reply["provider"] for reply in replies} == {host}


async def test_a_route_without_hosts_says_which_step_emptied_it() -> None:
    async with playing() as (_sim, client):
        gone = (await ask(client, provider={"only": ["moonshotai"]})).json()["error"]
        typo = await ask(client, provider={"onyl": ["novita"]})
    assert gone["code"] == 404
    assert gone["message"].startswith("No allowed providers are available")
    assert gone["metadata"]["failed_routing_step"] == "Filter by Allowed Providers"
    assert gone["metadata"]["routing_funnel"][-1]["endpoint_count"] == 0
    assert typo.status_code == 400


async def test_requests_that_are_no_requests_are_refused() -> None:
    async with playing() as (_sim, client):
        broken = await client.post("/chat/completions", content=b"{not json")
        empty = await client.post("/chat/completions", json={"model": MODEL})
        model = await ask(client, model="nobody/nothing")
        odd = [
            await ask(client, messages=["Hi"]),
            await ask(client, max_tokens="9"),
            await ask(client, max_tokens=0),
            await ask(client, provider={"order": "novita"}),
            await ask(client, tools=[{"function": 3}]),
            await ask(client, messages=[{"role": "user", "content": 5}]),
        ]
    assert broken.json() == empty.json()
    assert "Input required" in empty.json()["error"]["message"]
    assert model.json()["error"]["message"] == "nobody/nothing is not a valid model ID"
    assert {r.status_code for r in (broken, empty, model, *odd)} == {400}
    assert odd[3].json()["error"]["message"] == "provider.order: Input should be a valid list"


async def test_a_client_that_leaves_is_charged_in_full() -> None:
    async with playing(latency={"mean_s": 0.2, "sigma": 0.0}) as (sim, client):
        with pytest.raises(httpx.ReadTimeout):
            await client.post(
                "/chat/completions",
                json={"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]},
                timeout=httpx.Timeout(5, read=0.05),
            )
        assert sim.provider.in_flight == 1
        await until(lambda: bool(sim.ledger.entries))
    (entry,) = sim.ledger.entries
    assert entry.cancelled
    assert entry.cost > 0


async def test_the_ledger_shows_what_was_paid_twice() -> None:
    async with playing() as (sim, client):
        await ask(client, "once")
        await ask(client, "twice")
        await ask(client, "twice", provider={"ignore": ["novita"]})
        totals = (await client.get("/_ledger")).json()
    first, second, third = sim.ledger.entries
    assert totals["requests"] == totals["charged"] == 3
    assert totals["paid_twice"] == {second.prompt_hash: 2}
    assert second.body_hash == third.body_hash != first.body_hash
    assert totals["cost_usd"] == pytest.approx(sum(e.cost for e in sim.ledger.entries))


async def test_generation_is_found_only_after_its_delay() -> None:
    async with playing(generation_delay_s=0.2) as (sim, client):
        reply = (await ask(client)).json()
        page = f"/generation?id={reply['id']}"
        assert (await client.get(page)).status_code == 404
        await asyncio.sleep(0.2)  # the delay itself is what is tested
        found = await client.get(page)
    data = found.json()["data"]
    assert data["native_tokens_completion"] == reply["usage"]["completion_tokens"]
    assert data["total_cost"] == sim.ledger.cost_usd
    assert data["provider_name"] == reply["provider"]


async def test_reply_bytes_fixes_the_size_of_a_body() -> None:
    async with playing(reply_bytes=6600, tokenizer="none") as (_sim, client):
        sizes = [len((await ask(client, f"Question {n}")).content) for n in range(40)]
    assert 6500 < min(sizes) <= max(sizes) < 6700


async def test_ending_cuts_what_is_in_flight() -> None:
    async with playing(latency={"mean_s": 60.0}) as (sim, client):
        waiting = asyncio.create_task(ask(client))
        await until(lambda: sim.provider.in_flight == 1)
        closing = sim
    with pytest.raises(httpx.HTTPError):
        await waiting
    assert closing.ledger.charged == 0


async def test_reasoning_can_be_mandatory() -> None:
    async with playing(reasoning_mandatory=True) as (_sim, client):
        refused = await ask(client, reasoning={"enabled": False})
        (model,) = (await client.get("/models")).json()["data"]
    assert "cannot be disabled" in refused.json()["error"]["message"]
    assert model["reasoning"]["mandatory"] is True


async def test_an_idle_connection_is_dropped_when_the_scenario_says_so() -> None:
    async with playing(keepalive_s=0.1) as (sim, _client):
        reader, writer = await asyncio.open_connection("127.0.0.1", sim.port)
        writer.write(b"GET /api/v1/key HTTP/1.1\r\nHost: a\r\n\r\n")
        answered = await reader.readuntil(b"}}}")
        rest = await asyncio.wait_for(reader.read(), 10)
        writer.close()
        await writer.wait_closed()
    assert answered.startswith(b"HTTP/1.1 200")
    assert rest == b""
