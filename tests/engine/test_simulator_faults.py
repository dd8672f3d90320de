"""Every fault of the local provider, as a client meets it on the wire."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from playing import MODEL, ask, playing, until

from engine.simulator.faults import FAULTS

REFUSED = [f for f in FAULTS.values() if f.refuse is not None]
PAGES = [f for f in FAULTS.values() if f.html is not None]
BROKEN = ["close", "reset_early", "reset_late", "not_http", "reset_in_body"]


async def caused(name: str, **changes: Any) -> tuple[Any, float]:
    """Return the reply's JSON and what was charged for it."""
    async with playing(**changes) as (sim, client):
        response = await ask(client, f"Hello [[sim:{name}]]", max_tokens=8192)
        assert response.status_code == FAULTS[name].status
        assert sim.ledger.entries[0].fault == name
        return response.json(), sim.ledger.cost_usd


@pytest.mark.parametrize("fault", REFUSED, ids=lambda f: f.name)
async def test_a_refusal_has_its_status_and_costs_nothing(fault: Any) -> None:
    body, cost = await caused(fault.name)
    assert body["error"]
    assert cost == 0


@pytest.mark.parametrize("fault", PAGES, ids=lambda f: f.name)
async def test_a_page_of_a_proxy_is_html(fault: Any) -> None:
    async with playing() as (sim, client):
        response = await ask(client, f"[[sim:{fault.name}]]")
    assert response.status_code == fault.status
    assert response.headers["Content-Type"].startswith("text/html")
    assert sim.ledger.cost_usd == 0


async def test_bodies_of_refusals_are_those_of_the_reports() -> None:
    shared, _ = await caused("rate_limit_upstream", retry_hint="metadata", retry_after_s=89)
    assert shared["error"]["metadata"]["limit_source"] == "upstream_provider_shared_pool"
    assert shared["error"]["metadata"]["retry_after_seconds"] == 89
    assert "temporarily rate-limited upstream" in shared["error"]["metadata"]["raw"]
    admission, _ = await caused("rate_limit_admission")
    assert admission["error"]["metadata"]["headers"] == {"Retry-After": "10"}
    assert admission["error"]["metadata"]["provider_name"] is None
    capacity, _ = await caused("rate_limit_capacity")
    assert "code" not in capacity["error"]
    assert capacity["error"]["availability"] == {
        "code": "capacity_exhausted",
        "retryable": True,
        "retry_after": 10.0,
    }
    never, _ = await caused("available_never")
    assert never["error"]["availability"]["retryable"] is False
    afford, _ = await caused("credits_afford", account={"total_credits": 0.01})
    assert "can only afford" in afford["error"]["message"]
    moderated, _ = await caused("moderation")
    assert moderated["error"]["metadata"]["flagged_input"].startswith("Hello")
    zod, _ = await caused("zod")
    assert json.loads(zod["error"]["message"])[0]["path"] == ["messages", 0]
    string, _ = await caused("string_code")
    assert string["error"]["code"] == "invalid_prompt"
    bare, _ = await caused("bare_string")
    assert bare == {"error": "Unauthorized"}


@pytest.mark.parametrize(
    ("hint", "header", "metadata"),
    [
        ("header", "7", {}),
        ("metadata", None, {"retry_after_seconds": 7, "retry_after_seconds_raw": 6.5}),
        ("metadata_headers", None, {"headers": {"Retry-After": "7"}}),
        ("none", None, {}),
    ],
)
async def test_the_retry_hint_stands_where_the_scenario_says(
    hint: str, header: str | None, metadata: dict[str, Any]
) -> None:
    async with playing(retry_hint=hint, retry_after_s=6.5) as (_sim, client):
        response = await ask(client, "[[sim:rate_limit_upstream]]")
    assert response.headers.get("Retry-After") == header
    body = response.json()["error"]["metadata"]
    found = {k: v for k, v in body.items() if k.startswith("retry") or k == "headers"}
    assert found == metadata


async def test_in_flight_budget_says_when_in_a_header() -> None:
    async with playing() as (_sim, client):
        response = await ask(client, "[[sim:in_flight_budget]]")
    assert response.headers["Retry-After"] == "120"


async def test_the_id_is_in_a_header_of_errors_too() -> None:
    async with playing() as (_sim, client):
        response = await ask(client, "[[sim:error_in_200]]")
        refused = await ask(client, "[[sim:rate_limit_upstream]]")
    assert response.json()["id"] == response.headers["X-Generation-Id"]
    assert refused.headers["X-Generation-Id"].startswith("gen-")


async def test_a_trigger_counts_the_attempts_of_its_prompt() -> None:
    async with playing() as (_sim, client):
        text = "[[sim:bad_gateway*2]] then [[sim:empty_stop*1]] then well"
        statuses = []
        contents = []
        for _ in range(4):
            response = await ask(client, text)
            statuses.append(response.status_code)
            choices = response.json().get("choices")
            contents.append(bool(choices and choices[0]["message"]["content"]))
        unknown = await ask(client, "[[sim:no_such_fault]]")
    assert statuses == [502, 502, 200, 200]
    assert contents == [False, False, False, True]
    assert unknown.status_code == 400


async def test_spoilt_replies_look_good_at_first_sight() -> None:
    null, cost = await caused("choices_null")
    assert null["choices"] is None
    assert cost == 0
    empty, _ = await caused("choices_empty")
    assert empty["choices"] == []
    stopped, cost = await caused("empty_stop")
    assert stopped["choices"][0]["finish_reason"] == "stop"
    assert stopped["choices"][0]["message"]["content"] == ""
    assert stopped["usage"]["completion_tokens"] == 0
    assert cost > 0
    blank, _ = await caused("whitespace_content")
    assert blank["choices"][0]["message"]["content"].isspace()
    open_end, _ = await caused("no_finish_reason")
    assert open_end["choices"][0]["finish_reason"] is None
    inside, _ = await caused("error_in_choice")
    assert inside["choices"][0]["error"]["code"] == 502
    partial, cost = await caused("finish_error_partial")
    assert partial["choices"][0]["finish_reason"] == "error"
    assert partial["usage"] is None
    assert cost == 0
    network, _ = await caused("network_error")
    assert network["choices"][0]["native_finish_reason"] == "network_error"
    assert "usage" not in network
    model, cost = await caused("other_model")
    assert model["model"] != MODEL
    assert cost > 0
    provider, _ = await caused("other_provider")
    assert provider["provider"] == "DigitalOcean"
    missing, _ = await caused("no_usage")
    assert "usage" not in missing
    zero, cost = await caused("zero_usage")
    assert zero["usage"]["completion_tokens"] == 0
    assert cost > 0
    absurd, _ = await caused("string_counts")
    assert absurd["usage"]["completion_tokens"] == "many"


async def test_bad_answers_of_the_model() -> None:
    length, _ = await caused("length_empty")
    assert length["choices"][0]["finish_reason"] == "length"
    assert length["choices"][0]["message"]["content"] is None
    thought, _ = await caused("reasoning_only")
    assert thought["choices"][0]["message"]["content"] == ""
    filtered, _ = await caused("content_filter")
    assert filtered["choices"][0]["finish_reason"] == "content_filter"
    refused, _ = await caused("refusal")
    assert refused["choices"][0]["message"]["refusal"] == "I can't help with that."
    over, _ = await caused("over_max_tokens")
    assert over["usage"]["completion_tokens"] > 8192
    leaked, _ = await caused("control_tokens")
    assert "<|tool_calls_section_begin|>" in leaked["choices"][0]["message"]["content"]
    tools, _ = await caused("tools_in_reasoning")
    assert "<|tool_call_begin|>" in tools["choices"][0]["message"]["reasoning"]
    replaced, _ = await caused("replacement_char")
    assert "\ufffd" in replaced["choices"][0]["message"]["content"]


async def test_a_huge_reply_arrives_whole() -> None:
    async with playing(tokenizer="none") as (_sim, client):
        response = await ask(client, "[[sim:huge]]")
    assert len(response.content) > 4_000_000
    assert response.json()["choices"][0]["finish_reason"] == "stop"


async def test_half_a_surrogate_pair_is_in_the_bytes() -> None:
    async with playing() as (_sim, client):
        response = await ask(client, "[[sim:lone_surrogate]]")
    assert b"half \\ud83d pair" in response.content


async def test_keep_alives_come_before_a_body_or_before_nothing() -> None:
    async with playing() as (sim, client):
        good = await ask(client, "[[sim:whitespace_json]]")
        nothing = await ask(client, "[[sim:whitespace_eof]]")
    assert good.content.startswith(b"\n" * 60 + b" " * 9)
    assert good.json()["choices"]
    assert nothing.status_code == 200
    assert not nothing.content.strip()
    assert sim.ledger.charged == 2


async def test_truncated_json_and_gzip() -> None:
    async with playing() as (_sim, client):
        cut = await ask(client, "[[sim:truncated_json]]")
        packed = await ask(client, "[[sim:gzip]]")
    with pytest.raises(json.JSONDecodeError):
        cut.json()
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.json()["choices"]


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_connection_costs_what_was_generated(name: str) -> None:
    async with playing() as (sim, client):
        with pytest.raises(httpx.HTTPError):
            await ask(client, f"[[sim:{name}]]")
        await until(lambda: bool(sim.ledger.entries))
        assert (await ask(client, "the next one")).status_code == 200
    charged = sim.ledger.entries[0].cost
    assert charged == 0 if name == "reset_early" else charged > 0


async def test_a_dribble_never_ends_by_itself() -> None:
    async with playing() as (sim, client):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.2):
                await ask(client, "[[sim:dribble]]")
        await until(lambda: bool(sim.ledger.entries))


async def test_shares_of_scenario_host_and_window_are_met() -> None:
    hosts = [{"name": "A", "tag": "a", "faults": {"empty_stop": 0.25}}]
    changes: dict[str, Any] = {"providers": hosts, "faults": {"bad_gateway": 0.25}, "seed": 1}
    async with playing(tokenizer="none", **changes) as (sim, client):
        for number in range(400):
            await ask(client, f"Question {number}")
    assert sim.ledger.by_fault["empty_stop"] == pytest.approx(100, abs=30)
    assert sim.ledger.by_fault["bad_gateway"] == pytest.approx(100, abs=30)


async def test_a_window_of_requests_lowers_the_capacity_for_a_while() -> None:
    window = {"from_request": 2, "to_request": 4, "capacity": 0, "retry_hint": "header"}
    async with playing(windows=[window | {"retry_after_s": 3}]) as (_sim, client):
        responses = [await ask(client, f"Question {n}") for n in range(6)]
    assert [r.status_code for r in responses] == [200, 200, 429, 429, 200, 200]
    assert responses[2].headers["Retry-After"] == "3"


async def test_a_window_in_time_ends_by_itself() -> None:
    window = {"from_request": 1, "for_s": 20, "capacity": 0, "refusal": "overloaded_529"}
    async with playing(windows=[window], speed=100.0) as (_sim, client):
        first = await ask(client)
        inside = await ask(client)
        await asyncio.sleep(0.25)  # the window's own length is what is tested
        after = await ask(client)
    assert [first.status_code, inside.status_code, after.status_code] == [200, 529, 200]


async def test_a_window_concerns_one_host_where_it_names_one() -> None:
    window = {"provider": "novita", "faults": {"bad_gateway": 1.0}}
    async with playing(windows=[window]) as (_sim, client):
        bad = await ask(client, provider={"only": ["novita"]})
        good = await ask(client, provider={"ignore": ["novita"]})
    assert bad.status_code == 502
    assert bad.json()["error"]["metadata"]["provider_name"] == "Novita"
    assert good.status_code == 200


async def test_above_its_capacity_a_host_refuses() -> None:
    hosts = [{"name": "A", "tag": "a", "capacity": 3}]
    latency = {"mean_s": 0.2, "sigma": 0.0, "refusal_s": 0.0}
    async with playing(providers=hosts, latency=latency) as (sim, client):
        responses = await asyncio.gather(*(ask(client, f"Question {n}") for n in range(8)))
    statuses = sorted(r.status_code for r in responses)
    assert statuses == [200] * 3 + [429] * 5
    assert sim.ledger.max_in_flight == 3


async def test_with_fallback_the_router_asks_the_next_host() -> None:
    window = {"provider": "siliconflow/int4", "faults": {"bad_gateway": 1.0}}
    order = {"order": ["siliconflow/int4"]}
    async with playing(windows=[window], router_fallback=True) as (_sim, client):
        moved = await ask(client, provider=order)
        pinned = await ask(client, provider=order | {"allow_fallbacks": False})
    assert moved.status_code == 200
    assert moved.json()["provider"] != "SiliconFlow"
    assert pinned.status_code == 502


async def test_a_host_with_slots_queues_and_never_refuses() -> None:
    hosts = [{"name": "A", "tag": "a", "slots": 2}]
    latency = {"mean_s": 0.1, "sigma": 0.0}
    async with playing(providers=hosts, latency=latency) as (sim, client):
        responses = await asyncio.gather(*(ask(client, f"Question {n}") for n in range(6)))
    assert {r.status_code for r in responses} == {200}
    times = sorted(entry.latency_s for entry in sim.ledger.entries)
    assert times[-1] > 2.5 * times[0]
