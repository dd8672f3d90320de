"""What the local provider's hosts make of an answer, and the words of vLLM and SGLang."""

from __future__ import annotations

from typing import Any

import pytest
from playing import MODEL, ask, playing

from engine.simulator.writer import measure_of
from engine.tokens.vocabulary import load_vocabulary

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
DECLARED = {
    "role": "system",
    "name": "tool_declare",
    "content": "# Tools\n\n## functions\nnamespace functions {\ntype get_weather = (_: {\n"
    "  city: string\n}) => any;\n}\n",
}


async def answered(host: dict[str, Any], **body: Any) -> dict[str, Any]:
    """Return the reply of a host with these habits."""
    hosts = [{"name": "A", "tag": "a", **host}]
    async with playing(providers=hosts, tool_calls=1.0, edge_newlines=0.0) as (_sim, client):
        reply: dict[str, Any] = (await ask(client, **body)).json()
        return reply


def message_of(reply: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = reply["choices"][0]["message"]
    return message


async def test_a_spaced_host_puts_spaces_round_added_tokens() -> None:
    plain, spaced = (
        message_of(await answered({})),
        message_of(await answered({"artefact": "spaced"})),
    )
    assert spaced["reasoning"] == f" {plain['reasoning']} "
    assert spaced["content"] == f" {plain['content']}"
    quiet = {"reasoning": {"enabled": False}}
    plain = message_of(await answered({}, **quiet))
    spaced = message_of(await answered({"artefact": "spaced"}, **quiet))
    assert spaced["content"] == f" {plain['content']}"


async def test_a_spaced_host_spaces_raw_tool_calls() -> None:
    messages = [DECLARED, {"role": "user", "content": "Hi"}]
    plain = message_of(await answered({}, messages=messages))["content"]
    spaced = message_of(await answered({"artefact": "spaced"}, messages=messages))["content"]
    section = plain.partition("<|tool_calls_section_begin|>")[2]
    assert " <|tool_calls_section_begin|> <|tool_call_begin|> functions.get_weather:0 <|" in spaced
    assert spaced.replace(" <|", "<|").replace("|> ", "|>").endswith(section)


async def test_a_trimming_host_strips_both_ends() -> None:
    hosts = [{"name": "A", "tag": "a", "artefact": "trimmed"}]
    async with playing(providers=hosts, edge_newlines=1.0) as (_sim, client):
        replies = [(await ask(client, f"Question {n}")).json() for n in range(10)]
    measure = measure_of("kimi-k2.5")
    short = 0
    for reply in replies:
        message = message_of(reply)
        assert message["reasoning"] == message["reasoning"].strip()
        assert message["content"] == message["content"].strip()
        ids = measure.encode(f"{message['reasoning']}</think>{message['content']}<|im_end|>")
        short += len(ids) < reply["usage"]["completion_tokens"]
    assert short > 0


@pytest.mark.parametrize(
    ("where", "keys"),
    [
        ("reasoning", {"reasoning", "reasoning_details"}),
        ("reasoning_content", {"reasoning_content"}),
        ("reasoning_details", {"reasoning_details"}),
    ],
)
async def test_the_reasoning_stands_where_the_host_puts_it(where: str, keys: set[str]) -> None:
    message = message_of(await answered({"reasoning_field": where}))
    assert {key for key in message if key.startswith("reasoning")} == keys
    assert all(message[key] for key in keys)


async def test_reasoning_can_be_inline_with_or_without_its_opening_tag() -> None:
    plain = message_of(await answered({}))
    inline = message_of(await answered({"reasoning_field": "inline"}))
    half = message_of(await answered({"reasoning_field": "inline_no_open"}))
    assert half["content"] == f"{plain['reasoning']}</think>{plain['content']}"
    assert inline["content"] == f"<think>{half['content']}"
    assert not inline["reasoning"]


async def test_excluded_reasoning_is_billed_all_the_same() -> None:
    plain = await answered({})
    hidden = await answered({}, reasoning={"exclude": True})
    assert message_of(hidden)["reasoning"] is None
    assert hidden["usage"]["completion_tokens"] == plain["usage"]["completion_tokens"]


async def test_habits_that_show_in_the_counts() -> None:
    plain = (await answered({}))["usage"]
    injected = (await answered({"system_prompt": True}))["usage"]
    short = (await answered({"counts_im_end": False}))["usage"]
    assert injected["prompt_tokens"] == plain["prompt_tokens"] + 18 == 27
    assert short["completion_tokens"] == plain["completion_tokens"] - 1
    messages = [DECLARED, {"role": "user", "content": "Hi"}]
    named = (await answered({}, messages=messages))["usage"]["prompt_tokens"]
    nameless = (await answered({"drops_name": True}, messages=messages))["usage"]["prompt_tokens"]
    assert named != nameless


async def test_non_canonical_splits_keep_the_text_and_may_keep_the_count() -> None:
    hosts = [{"name": "A", "tag": "a", "non_canonical": 1.0}]
    measure = measure_of("kimi-k2.5")
    longer = same = 0
    async with playing(api="vllm", providers=hosts) as (_sim, client):
        for number in range(40):
            reply = (await ask(client, f"Question {number}", return_token_ids=True)).json()
            message = message_of(reply)
            text = f"{message['reasoning']}</think>{message['content']}<|im_end|>"
            sampled = reply["choices"][0]["token_ids"]
            canonical = measure.encode(text)
            assert measure.decode(sampled) == text
            longer += len(sampled) > len(canonical)
            same += len(sampled) == len(canonical) and sampled != canonical
    assert longer > 5
    assert same > 5


async def test_vllm_tells_the_ids_when_asked() -> None:
    vocabulary = load_vocabulary("kimi-k2.5")
    async with playing(api="vllm") as (sim, client):
        assert sim.base_url.endswith("/v1")
        told = (await ask(client, return_token_ids=True)).json()
        untold = (await ask(client)).json()
        models = (await client.get("/models")).json()
    ids = told["choices"][0]["token_ids"]
    message = message_of(told)
    assert ids == vocabulary.encode(f"{message['reasoning']}</think>{message['content']}<|im_end|>")
    assert len(ids) == told["usage"]["completion_tokens"]
    assert vocabulary.decode(told["prompt_token_ids"]).endswith("<|im_middle|><think>")
    assert len(told["prompt_token_ids"]) == told["usage"]["prompt_tokens"]
    assert untold["choices"][0]["token_ids"] is None
    assert "provider" not in told
    assert models["data"][0]["max_model_len"] == 262_144


async def test_sglang_tells_the_ids_in_the_choice() -> None:
    async with playing(api="sglang") as (sim, client):
        told = (await ask(client, return_token_ids=True, max_tokens=5)).json()
        untold = (await ask(client)).json()
    choice = told["choices"][0]
    assert len(choice["response_token_ids"]) == told["usage"]["completion_tokens"] == 5
    assert choice["message"]["content"] == ""
    assert choice["message"]["reasoning_content"]
    assert len(choice["prompt_token_ids"]) == told["usage"]["prompt_tokens"]
    assert "response_token_ids" not in untold["choices"][0]
    assert sim.ledger.charged == 2
    assert sim.ledger.cost_usd == 0


@pytest.mark.parametrize("api", ["vllm", "sglang"])
async def test_a_server_may_ignore_the_wish_for_ids(api: str) -> None:
    async with playing(api=api, returns_token_ids=False) as (_sim, client):
        reply = (await ask(client, return_token_ids=True)).json()
    assert not reply.get("prompt_token_ids")
    assert not reply["choices"][0].get("prompt_token_ids")


async def test_vllm_and_sglang_have_errors_of_their_own() -> None:
    full = [{"name": "A", "tag": "a", "capacity": 0}]
    async with playing(api="vllm", providers=full, account={"keys": ["k"]}) as (_sim, client):
        assert (await ask(client)).json() == {"error": "Unauthorized"}
        client.headers["Authorization"] = "Bearer k"
        queue, model = await ask(client), await ask(client, model="other")
    assert queue.status_code == 503
    assert queue.json()["error"]["type"] == "ServiceUnavailableError"
    assert "Retry-After" not in queue.headers
    assert model.status_code == 404
    assert model.json()["error"]["message"] == "The model `other` does not exist."
    async with playing(api="sglang", providers=full) as (_sim, client):
        flat, bad = (await ask(client)).json(), (await ask(client, messages=[])).json()
    assert flat["object"] == "error"
    assert flat["message"] == "The request queue is full."
    assert (flat["type"], flat["code"]) == ("503", 503)
    assert bad["code"] == 400


async def test_a_server_of_ones_own_takes_the_thinking_switch_of_its_template() -> None:
    async with playing(api="vllm") as (_sim, client):
        off = {"chat_template_kwargs": {"thinking": False}}
        reply = (await ask(client, return_token_ids=True, **off)).json()
    assert reply["usage"]["prompt_tokens"] == 10
    assert message_of(reply)["reasoning"] is None
    assert reply["model"] == MODEL
