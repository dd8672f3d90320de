"""The local provider's streamed replies, and how they break."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import httpx
import pytest
from playing import MODEL, ask, playing, until

REQUEST = {"model": MODEL, "stream": True}


def events_of(text: str) -> list[dict[str, Any]]:
    """Return the JSON of all events but [DONE]."""
    lines = [line[6:] for line in text.split("\n\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def joined(events: list[dict[str, Any]], key: str) -> str:
    deltas = [event["choices"][0]["delta"] for event in events if event.get("choices")]
    return "".join(delta.get(key) or "" for delta in deltas)


async def test_a_stream_says_what_the_plain_reply_says() -> None:
    async with playing() as (sim, client):
        plain = (await ask(client)).json()
        response = await ask(client, stream=True)
    message = plain["choices"][0]["message"]
    events = events_of(response.text)
    assert response.headers["Content-Type"] == "text/event-stream"
    assert response.text.startswith(": OPENROUTER PROCESSING\n\n")
    assert response.text.endswith("data: [DONE]\n\n")
    assert "\r" not in response.text
    assert joined(events, "reasoning") == message["reasoning"]
    assert joined(events, "content") == message["content"]
    terminal, usage = events[-2:]
    assert terminal["choices"][0]["finish_reason"] == "stop"
    assert usage["choices"][0]["finish_reason"] == "stop"
    assert usage["usage"]["completion_tokens"] == plain["usage"]["completion_tokens"]
    assert events[0]["id"] == response.headers["X-Generation-Id"]
    assert sim.ledger.charged == 2


async def test_the_usage_chunk_can_have_empty_choices_and_done_can_be_missing() -> None:
    stream = {"usage_chunk": "empty", "done": False, "comments": 0}
    async with playing(stream=stream) as (_sim, client):
        text = (await ask(client, stream=True)).text
    assert events_of(text)[-1]["choices"] == []
    assert "[DONE]" not in text
    assert text.startswith("data: ")


async def test_packets_may_end_within_a_character() -> None:
    async with playing(stream={"split_bytes": True}) as (_sim, client):
        packets = []
        body = {**REQUEST, "messages": [{"role": "user", "content": "你好"}]}
        async with client.stream("POST", "/chat/completions", json=body) as response:
            packets = [packet async for packet in response.aiter_raw()]
    assert len(packets) > 10
    assert joined(events_of(b"".join(packets).decode()), "content")


async def test_a_client_that_leaves_pays_for_what_it_got_or_for_all() -> None:
    costs = {}
    for cancels in (True, False):
        hosts = [{"name": "A", "tag": "a", "cancels": cancels}]
        latency = {"mean_s": 20.0, "sigma": 0.0}
        stream = {"first_share": 0.0}
        async with playing(providers=hosts, latency=latency, stream=stream) as (sim, client):
            body = {**REQUEST, "messages": [{"role": "user", "content": "Hi"}]}
            async with client.stream("POST", "/chat/completions", json=body) as response:
                async for line in response.aiter_lines():
                    if line.startswith("data: "):
                        break
            await until(lambda: bool(sim.ledger.entries))
            costs[cancels] = sim.ledger.entries[0]
            assert sim.provider.in_flight == 0
    assert costs[True].cancelled
    assert costs[False].cancelled
    assert 0 < costs[True].completion_tokens < costs[False].completion_tokens


async def test_errors_before_and_inside_a_stream() -> None:
    async with playing() as (_sim, client):
        refused = await ask(client, "[[sim:rate_limit_upstream]]", stream=True)
        first = await ask(client, "[[sim:error_in_200]]", stream=True)
        middle = await ask(client, "[[sim:finish_error_partial]]", stream=True)
    assert refused.status_code == 429
    assert refused.json()["error"]["code"] == 429
    (only,) = events_of(first.text)
    assert only["error"]["code"] == 503
    assert only["choices"][0]["finish_reason"] == "error"
    assert "[DONE]" not in first.text
    events = events_of(middle.text)
    assert joined(events, "content")
    assert events[-1]["error"]["code"] == 502


@pytest.mark.parametrize("name", ["choices_empty", "empty_stop", "no_finish_reason", "no_usage"])
async def test_spoilt_replies_are_spoilt_as_streams(name: str) -> None:
    async with playing() as (_sim, client):
        events = events_of((await ask(client, f"[[sim:{name}]]", stream=True)).text)
    finishes = {e["choices"][0]["finish_reason"] for e in events if e.get("choices")}
    assert (name in {"choices_empty", "no_finish_reason"}) == ("stop" not in finishes)
    assert any("usage" in event for event in events) == (name in {"empty_stop", "no_finish_reason"})


@pytest.mark.parametrize("name", ["reset_late", "reset_in_body", "close", "truncated_json"])
async def test_broken_streams_are_paid_in_full(name: str) -> None:
    async with playing() as (sim, client):
        text = ""
        with suppress(httpx.HTTPError):
            text = (await ask(client, f"[[sim:{name}]]", stream=True)).text
        await until(lambda: bool(sim.ledger.entries))
    assert "[DONE]" not in text
    assert sim.ledger.cost_usd > 0


async def test_vllm_streams_ids_and_sglang_refuses_to() -> None:
    async with playing(api="vllm") as (_sim, client):
        plain = (await ask(client, return_token_ids=True)).json()
        options = {"include_usage": True}
        text = (await ask(client, stream=True, return_token_ids=True, stream_options=options)).text
        bare = (await ask(client, stream=True)).text
    events = events_of(text)
    ids = [i for e in events if e["choices"] for i in e["choices"][0].get("token_ids") or ()]
    assert events[0]["prompt_token_ids"] == plain["prompt_token_ids"]
    assert ids == plain["choices"][0]["token_ids"]
    assert events[-1]["usage"]["completion_tokens"] == len(ids)
    assert "usage" not in bare
    async with playing(api="sglang") as (_sim, client):
        refused = await ask(client, stream=True, return_token_ids=True)
    assert refused.status_code == 400
    assert refused.json()["object"] == "error"
