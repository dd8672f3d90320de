"""The local provider's response cache and in-flight budget: what is paid, and when it is not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import orjson
import pytest
from playing import MODEL, ask, playing, until

if TYPE_CHECKING:
    from engine.simulator import Simulator

CACHED = {"X-OpenRouter-Cache": "true"}
SLOW = {"latency": {"mean_s": 0.15, "sigma": 0.0, "refusal_s": 0.0}}


async def send(client: httpx.AsyncClient, text: str = "Hi", **headers: str) -> httpx.Response:
    body = orjson.dumps({"model": MODEL, "messages": [{"role": "user", "content": text}]})
    return await client.post("/chat/completions", content=body, headers={**CACHED, **headers})


async def test_an_identical_resend_is_free() -> None:
    async with playing() as (sim, client):
        first, again = await send(client), await send(client)
        page = (await client.get(f"/generation?id={again.json()['id']}")).json()["data"]
    assert first.headers["X-OpenRouter-Cache-Status"] == "MISS"
    assert again.headers["X-OpenRouter-Cache-Status"] == "HIT"
    assert again.headers["X-OpenRouter-Cache-Source-Id"] == first.json()["id"]
    assert again.json()["id"] == again.headers["X-Generation-Id"] != first.json()["id"]
    assert again.json()["choices"] == first.json()["choices"]
    assert again.json()["usage"]["completion_tokens"] == 0
    assert page["native_tokens_completion"] == first.json()["usage"]["completion_tokens"]
    assert page["total_cost"] == 0
    assert (sim.ledger.charged, sim.ledger.cached) == (1, 1)
    assert sim.ledger.cost_usd == first.json()["usage"]["cost"]


@pytest.mark.parametrize(
    "other",
    [
        {"headers": {"Authorization": "Bearer other"}},
        {"headers": {"X-OpenRouter-Cache-Clear": "true"}},
        {"headers": {"X-OpenRouter-Cache": "false"}},
        {"text": "Hi!"},
    ],
)
async def test_anything_else_is_paid(other: dict[str, Any]) -> None:
    async with playing() as (sim, client):
        await send(client)
        await send(client, other.get("text", "Hi"), **other.get("headers", {}))
    assert sim.ledger.charged == 2


async def test_twins_in_flight_are_both_paid() -> None:
    async with playing(**SLOW) as (sim, client):
        await asyncio.gather(send(client), send(client))
    assert sim.ledger.charged == 2
    assert len(sim.ledger.paid_twice) == 1


async def test_a_kept_reply_runs_out() -> None:
    async with playing() as (sim, client):
        await send(client, **{"X-OpenRouter-Cache-TTL": "1"})
        await asyncio.sleep(1.05)  # the shortest time to live is what is tested
        await send(client)
    assert sim.ledger.charged == 2


@pytest.mark.parametrize("fault", ["reset_late", "close", "truncated_json", "whitespace_eof"])
async def test_what_was_generated_but_not_delivered_is_free_the_second_time(fault: str) -> None:
    async with playing() as (sim, client):
        try:
            await send(client, f"[[sim:{fault}]]")
        except httpx.HTTPError:
            await until(lambda: sim.ledger.charged == 1)
        again = await send(client, f"[[sim:{fault}]]")
    assert again.json()["choices"]
    assert sim.ledger.charged == 1


async def test_a_client_that_left_finds_its_reply_in_the_cache() -> None:
    async with playing(**SLOW) as (sim, client):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await send(client)
        await until(lambda: sim.ledger.cancelled == 1)
        again = await send(client)
    assert again.headers["X-OpenRouter-Cache-Status"] == "HIT"
    assert sim.ledger.charged == 1


@pytest.mark.parametrize(("keeps", "charged"), [(False, 2), (True, 1)])
async def test_bad_replies_are_kept_only_where_the_scenario_says_so(
    keeps: bool, charged: int
) -> None:
    async with playing(caches_bad_replies=keeps) as (sim, client):
        await send(client, "[[sim:no_usage]]")
        await send(client, "[[sim:no_usage]]")
    assert sim.ledger.charged == charged


async def test_errors_are_never_kept() -> None:
    async with playing(caches_bad_replies=True) as (sim, client):
        for name in ("error_in_200", "bad_gateway", "rate_limit_upstream"):
            await send(client, f"[[sim:{name}*1]]")
            assert (await send(client, f"[[sim:{name}*1]]")).json()["choices"]
    assert sim.ledger.cached == 0


def _budgeted(requests: float) -> dict[str, Any]:
    """Return a scenario whose budget holds so many requests of 1000 tokens."""
    host = {"name": "A", "tag": "a", "prompt_usd_per_m": 0, "completion_usd_per_m": 1000}
    account = {"in_flight_budget": requests, "settlement_s": 0.3}
    return {"providers": [host], "account": account, **SLOW}


async def test_holds_fill_the_budget_and_pass_by_themselves() -> None:
    async with playing(**_budgeted(3.5)) as (sim, client):
        together = await asyncio.gather(
            *(ask(client, f"Question {n}", max_tokens=1000) for n in range(5))
        )
        settling = await ask(client, "Question 6", max_tokens=2000)
        await until(lambda: sim.account.held == pytest.approx(0))
        after = await ask(client, "Question 6", max_tokens=2000)
    assert sorted(r.status_code for r in together) == [200, 200, 200, 402, 402]
    refused = settling.json()["error"]["metadata"]
    assert refused["limit_source"] == "openrouter_in_flight_budget"
    assert settling.headers["Retry-After"] == "120"
    assert after.status_code == 200


async def test_a_request_that_alone_exceeds_the_budget_is_no_matter_of_waiting() -> None:
    async with playing(**_budgeted(0.5)) as (_sim, client):
        refused = await ask(client, max_tokens=1000)
        smaller = await ask(client, max_tokens=100)
    assert refused.json()["error"]["metadata"]["reason"] == "weight_exceeds_budget"
    assert smaller.status_code == 200


async def _spent(sim: Simulator, client: httpx.AsyncClient) -> httpx.Response:
    sim.account.usage = sim.account.total_credits
    return await ask(client, "spent")


async def test_a_top_up_ends_a_terminal_402() -> None:
    async with playing(account={"total_credits": 1.0}) as (sim, client):
        refused = await _spent(sim, client)
        sim.account.top_up(5.0)
        after = await ask(client, "spent")
        page = (await client.get("/credits")).json()["data"]
    assert refused.json()["error"]["metadata"]["limit_source"] == "openrouter_credits"
    assert after.status_code == 200
    assert page["total_credits"] == 6.0


async def test_credits_may_be_hidden_from_a_key() -> None:
    async with playing(account={"credits_forbidden": True}) as (_sim, client):
        assert (await client.get("/credits")).status_code == 403
        assert (await client.get("/key")).status_code == 200
