"""What is an answer of this model becomes a Reply with its flags; everything else is a Fault."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import orjson
import pytest
from reply_bodies import (
    MODEL,
    SERVED,
    answering,
    calling_tools,
    finishing,
    inline,
    openrouter,
    sglang,
    vllm,
)

from engine.faults.fault import Fault, Scope
from engine.wire.reply import FLAGS, Expectation, Reply, Usage, parse_reply, read_reply, with_usage

EXPECT = Expectation(MODEL, providers=frozenset({"siliconflow/int4"}), max_tokens=8192)
TOOLS = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
    "{}<|tool_call_end|><|tool_calls_section_end|>"
)


def parse(
    body: Any,
    expect: Expectation = EXPECT,
    headers: dict[str, str] | None = None,
    status: int = 200,
) -> Reply | Fault:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return parse_reply(status, headers or {}, raw, expect)


def reply(body: Any, expect: Expectation = EXPECT, headers: dict[str, str] | None = None) -> Reply:
    found = parse(body, expect, headers)
    assert isinstance(found, Reply), found
    return found


def fault(body: Any, expect: Expectation = EXPECT, status: int = 200) -> Fault:
    found = parse(body, expect, status=status)
    assert isinstance(found, Fault), found
    return found


def without(body: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        del body[key]
    return body


def using(**usage: Any) -> dict[str, Any]:
    body = openrouter()
    body["usage"].update(usage)
    return body


def test_a_plain_answer_is_read_whole_and_untouched() -> None:
    found = reply(openrouter())
    assert found == Reply(
        content=" Paris is the capital of France. 中文 ✓\n",
        reasoning=" The user asks for a capital.\n ",
        reasoning_field="reasoning",
        finish_reason="stop",
        native_finish_reason="stop",
        model=SERVED,
        provider="SiliconFlow",
        generation_id="gen-1796043600-abcdefghij0123456789",
        usage=Usage(21, 34, 9, 0.000085),
    )


def test_newlines_before_the_json_are_no_harm() -> None:  # CLIProxyAPI#2690
    assert reply(b"\n" * 60 + b" " * 9 + b"\n" + json.dumps(openrouter()).encode()).content


@pytest.mark.parametrize(
    ("message", "reasoning", "source"),
    [
        ({"reasoning": "a", "reasoning_content": "b"}, "a", "reasoning"),
        ({"reasoning": None, "reasoning_content": " b\n"}, " b\n", "reasoning_content"),
        ({"reasoning": ""}, " The user asks for a capital.\n ", "reasoning_details"),
        (
            {
                "reasoning": None,
                "reasoning_details": [
                    {"type": "reasoning.text", "text": "a "},
                    {"type": "reasoning.summary", "summary": "no"},
                    {"type": "reasoning.encrypted", "data": "no"},
                    {"type": "reasoning.text", "text": "b"},
                    "no",
                ],
            },
            "a b",
            "reasoning_details",
        ),
        ({"reasoning": 7, "reasoning_details": {"a": 1}}, None, ""),
    ],
)
def test_reasoning_is_found_wherever_the_host_puts_it(
    message: dict[str, Any], reasoning: str | None, source: str
) -> None:
    found = reply(answering(**message))
    assert (found.reasoning, found.reasoning_field) == (reasoning, source)


def test_inline_reasoning_stays_in_the_content() -> None:
    found = reply(inline())
    assert found.content == "<think>France, so Paris.</think>Paris."
    assert (found.reasoning, found.reasoning_field, found.flags) == (None, "inline", ())
    bare = reply(answering(content="France.</think>Paris.", reasoning=None, reasoning_details=None))
    assert (bare.reasoning_field, bare.flags) == ("inline", ())


def test_content_in_parts_is_joined() -> None:
    parts = [{"type": "text", "text": "Pa"}, {"type": "text", "text": "ris"}]
    assert reply(answering(content=parts)).content == "Paris"


def test_tool_calls_are_an_answer() -> None:
    found = reply(calling_tools())
    assert found.tool_calls is not None
    assert found.tool_calls[0]["function"]["name"] == "weather"
    assert (found.content, found.flags) == (None, ())


@pytest.mark.parametrize("make", [vllm, sglang])
def test_engines_give_exact_ids(make: Any) -> None:
    found = reply(make(), Expectation(MODEL))
    assert found.prompt_ids == [163588, 69702, 163601, 163606]
    assert found.completion_ids == [4637, 13, 163607, 12366, 13, 163586]
    assert found.reasoning == "France."


def test_sglang_streams_give_ids_in_an_extension() -> None:
    body = without(vllm(), "prompt_token_ids")
    body["choices"][0]["token_ids"] = None
    body["sglext"] = {"input_ids": [1, 2], "output_ids": [3]}
    found = reply(body, Expectation(MODEL))
    assert (found.prompt_ids, found.completion_ids) == ([1, 2], [3])


@pytest.mark.parametrize("ids", [[], [1, -2], [1, "2"], [True], [1.0], [2**40], {"0": 1}, "12"])
def test_ids_that_are_none_are_not_taken(ids: Any) -> None:
    body = vllm()
    body["choices"][0]["token_ids"] = ids
    assert reply(body, Expectation(MODEL)).completion_ids is None


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({}, Usage(21, 34, 9, 0.000085)),
        ({"completion_tokens_details": {"reasoning_tokens": 0}}, Usage(21, 34, None, 0.000085)),
        ({"completion_tokens_details": None}, Usage(21, 34, None, 0.000085)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, Usage(None, None, 9, 0.000085)),
        ({"completion_tokens": -1}, Usage(21, None, 9, 0.000085)),
        ({"completion_tokens": True}, Usage(21, None, 9, 0.000085)),
        ({"completion_tokens": "34"}, Usage(21, None, 9, 0.000085)),
        ({"completion_tokens": 10**9 + 1}, Usage(21, None, 9, 0.000085)),
        ({"completion_tokens": 34.5}, Usage(21, None, 9, 0.000085)),
        ({"cost": None}, Usage(21, 34, 9, None)),
        ({"cost": 0}, Usage(21, 34, 9, 0.0)),
        ({"cost": -1}, Usage(21, 34, 9, None)),
        ({"cost": "0.1"}, Usage(21, 34, 9, 0.1)),
        ({"cost": "nan"}, Usage(21, 34, 9, None)),
        ({"cost": "dear"}, Usage(21, 34, 9, None)),
        ({"cost": True}, Usage(21, 34, 9, None)),
        ({"cost": float("nan")}, Usage(21, 34, 9, None)),
        ({"cost": float("inf")}, Usage(21, 34, 9, None)),
        ({"cost": 10**300}, Usage(21, 34, 9, None)),
        (
            {"cost": 0.25, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.5}},
            Usage(21, 34, 9, 0.75),
        ),
        (
            {"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": None}},
            Usage(21, 34, 9, None),
        ),
    ],
)
def test_unknown_counts_and_costs_are_none_never_zero(
    usage: dict[str, Any], expected: Usage
) -> None:
    found = reply(using(**usage))
    assert found.usage == expected
    assert ("no_usage" in found.flags) is (expected.completion_tokens is None)


def test_no_reasoning_is_truly_none() -> None:
    body = answering(**EMPTY)
    body["usage"]["completion_tokens_details"]["reasoning_tokens"] = 0
    assert reply(body).usage.reasoning_tokens == 0


def test_a_cache_hit_is_free_and_its_counts_come_later() -> None:
    zeros = using(prompt_tokens=0, completion_tokens=0, cost=0)
    found = reply(zeros, headers={"X-OpenRouter-Cache-Status": "HIT"})
    assert found.cached
    assert found.flags == ("no_usage",)
    assert found.usage.cost == 0.0
    counted = with_usage(found, Usage(21, 9000, 9, 0.0), EXPECT)
    assert counted.flags == ("over_max_tokens",)
    assert with_usage(found, Usage(21, 34), EXPECT).flags == ()
    assert not reply(openrouter(), headers={"x-openrouter-cache-status": "MISS"}).cached


def test_the_generation_id_may_stand_in_the_header_only() -> None:
    body = without(openrouter(), "id")
    assert reply(body, headers={"X-Generation-Id": "gen-9"}).generation_id == "gen-9"


FLAGGED: list[tuple[str, dict[str, Any], Expectation, tuple[str, ...]]] = [
    ("cut by length", finishing("length", "length"), EXPECT, ("truncated",)),
    ("cut, but called a stop", finishing("stop", "MAX_TOKENS"), EXPECT, ("truncated",)),
    (
        "SiliconFlow ignores max_tokens",
        using(completion_tokens=26000),
        EXPECT,
        ("over_max_tokens",),
    ),
    ("no usage", without(openrouter(), "usage"), EXPECT, ("no_usage",)),
    ("usage null (bifrost#5425)", {**openrouter(), "usage": None}, EXPECT, ("no_usage",)),
    ("reasoning ate it all (K2.5#9)", answering(content=None), EXPECT, ("reasoning_only",)),
    ("only white space after it", answering(content="\n\n"), EXPECT, ("reasoning_only",)),
    (
        "inline and never closed",
        answering(content="<think>still", reasoning=None, reasoning_details=[]),
        EXPECT,
        ("reasoning_only",),
    ),
    ("refused", answering(refusal="I cannot help."), EXPECT, ("refusal",)),
    ("refused, no content", answering(content=None, refusal="No."), EXPECT, ("refusal",)),
    ("tools in content", answering(content="Hm " + TOOLS), EXPECT, ("control_tokens",)),
    ("tools in raw mode", answering(content=TOOLS), replace(EXPECT, tools=True), ()),
    (
        "tools end the reasoning (Kimi-K2#89)",
        answering(content=None, reasoning="Let me see " + TOOLS),
        EXPECT,
        ("reasoning_only", "control_tokens"),
    ),
    (
        "tools end the reasoning in raw mode",
        answering(content=None, reasoning="Let me see " + TOOLS),
        replace(EXPECT, tools=True),
        (),
    ),
    ("think tag in content", answering(content="a</think>b"), EXPECT, ("control_tokens",)),
    (
        "two think tags inline",
        answering(content="a</think>b</think>", reasoning=None, reasoning_details=None),
        EXPECT,
        ("control_tokens",),
    ),
    (
        "think tag without thinking",
        answering(content="<think></think>b", reasoning=None, reasoning_details=None),
        replace(EXPECT, thinking=False),
        ("control_tokens",),
    ),
    ("end of turn in the text", answering(content="a<|im_end|>b"), EXPECT, ("control_tokens",)),
    ("operators are no markers", answering(content="a <| b |> c < think >"), EXPECT, ()),
    ("replacement character", answering(content="a\ufffdb"), EXPECT, ()),
]


@pytest.mark.parametrize(
    ("body", "expect", "flags"),
    [case[1:] for case in FLAGGED],
    ids=[case[0] for case in FLAGGED],
)
def test_doubtful_answers_are_rows_with_flags(
    body: dict[str, Any], expect: Expectation, flags: tuple[str, ...]
) -> None:
    assert reply(body, expect).flags == flags
    assert set(flags) <= set(FLAGS)


def with_choices(choices: Any) -> dict[str, Any]:
    return {**openrouter(), "choices": choices}


def in_choice(**fields: Any) -> dict[str, Any]:
    body = openrouter()
    body["choices"][0].update(fields)
    return body


EMPTY = {"reasoning": None, "reasoning_details": None}
NEVER_ROWS: list[tuple[str, Any, str, str]] = [
    ("choices null (pydantic-ai#6900)", with_choices(None), "no_choices", "provider"),
    ("choices [] (gram#3129)", with_choices([]), "no_choices", "provider"),
    ("no choices at all", {"id": "x", "detail": "hm"}, "no_choices", "provider"),
    ("choice is null", with_choices([None]), "no_choices", "provider"),
    ("empty stop (suna#4099)", answering(content="", **EMPTY), "empty_reply", "provider"),
    ("null content", answering(content=None, **EMPTY), "empty_reply", "provider"),
    ("blank content", answering(content=" \n ", **EMPTY), "empty_reply", "provider"),
    ("markers only", answering(content="<think>\n</think>", **EMPTY), "empty_reply", "provider"),
    (
        "network_error (pi#8511, hax#15)",
        {**finishing("stop", "network_error"), "usage": None},
        "finish_error",
        "provider",
    ),
    ("finish error, partial (bifrost#5425)", finishing("error"), "finish_error", "provider"),
    ("abort (SGLang)", finishing("abort"), "finish_error", "provider"),
    ("no finish reason (pi#5793)", finishing(None), "no_finish_reason", "provider"),
    ("odd finish reason", finishing("banana"), "unknown_finish", "provider"),
    ("finish reason of a wrong kind", finishing(["stop"]), "no_finish_reason", "provider"),
    ("content filter", finishing("content_filter"), "content_filter", "prompt"),
    ("content filter, native", finishing("stop", "CONTENT_FILTER"), "content_filter", "prompt"),
    (
        "error in the choice (nodetool#5755)",
        in_choice(error={"code": 502, "message": "lost"}, finish_reason="error"),
        "bad_gateway",
        "provider",
    ),
    ("error in the choice, no code", in_choice(error={"message": "x"}), "error_in_200", "provider"),
    (
        "error beside choices",
        {**openrouter(), "error": {"message": "x"}},
        "error_in_200",
        "provider",
    ),
    ("another model", {**openrouter(), "model": "moonshotai/kimi-k2"}, "wrong_model", "provider"),
    ("no model", without(openrouter(), "model"), "wrong_model", "provider"),
    ("another provider", {**openrouter(), "provider": "Novita"}, "wrong_provider", "provider"),
    ("no message", in_choice(message=None), "malformed_reply", "provider"),
    ("content is a number", answering(content=7), "malformed_reply", "provider"),
    ("content is an object", answering(content={"text": "a"}), "malformed_reply", "provider"),
    ("a part without text", answering(content=[{"type": "x"}]), "malformed_reply", "provider"),
    ("tool calls of a wrong kind", answering(tool_calls={"a": 1}), "malformed_reply", "provider"),
    (
        "a call without a name",
        answering(tool_calls=[{"function": {}}]),
        "malformed_reply",
        "provider",
    ),
    ("white space, then the end (nanobot#2288)", b"\n" * 60 + b" " * 9 + b"\n", "whitespace", ""),
    ("nothing", b"", "whitespace", "provider"),
    (
        "cut JSON (aider#3219)",
        json.dumps(openrouter()).encode()[:-40],
        "truncated_json",
        "provider",
    ),
    ("two documents", b"{}{}", "truncated_json", "provider"),
    ("a page", b"<!doctype html><title>Sign in</title>", "html", "attempt"),
    ("a stream", b'data: {"choices":[]}\n\n', "not_json", "provider"),
    ("a list", b"[1]", "not_json", "provider"),
    ("a string", b'"ok"', "not_json", "provider"),
    ("nested without end", b'{"a":' * 100_000, "truncated_json", "provider"),
]


@pytest.mark.parametrize(
    ("body", "family", "scope"),
    [case[1:] for case in NEVER_ROWS],
    ids=[case[0] for case in NEVER_ROWS],
)
def test_what_is_no_answer_is_never_a_row(body: Any, family: str, scope: str) -> None:
    found = fault(body)
    assert found.family == family, found
    assert scope in {"", found.scope}
    assert found.retry is (found.scope is not Scope.PROMPT)
    assert found.message
    assert found.sent


def test_a_fault_keeps_what_was_paid_and_to_whom() -> None:
    found = fault({**openrouter(), "model": "other"})
    assert found.cost == pytest.approx(0.000085)
    assert found.provider == "SiliconFlow"
    assert found.generation_id == "gen-1796043600-abcdefghij0123456789"
    assert "other" in found.message


def test_falsy_errors_are_none() -> None:
    for error in (None, {}, "", False, []):
        assert reply({**openrouter(), "error": error}).content


def test_a_reply_without_a_provider_passes_the_allow_list() -> None:
    assert reply(without(openrouter(), "provider")).provider is None


def test_broken_characters_keep_a_paid_reply_and_can_be_written() -> None:
    raw = json.dumps(answering(content="a\ud83d b \ud83d\ude00 \\ud83d", reasoning="\udc00"))
    found = reply(raw.encode())
    assert found.content == "a\ufffd b \U0001f600 \\ud83d"
    assert found.reasoning == "\ufffd"
    assert orjson.loads(orjson.dumps(asdict(found)))["content"] == found.content


def test_invalid_bytes_bom_nan_and_raw_controls_keep_a_paid_reply() -> None:
    raw = json.dumps({**openrouter(), "logprob": float("-inf")}).encode()
    assert b"-Infinity" in raw
    raw = raw.replace(b"Paris", b"P\xffaris\t")
    found = reply(b"\xef\xbb\xbf" + raw)
    assert found.content is not None
    assert found.content.startswith(" P\ufffdaris\t is")
    assert found.usage.completion_tokens == 34


def test_tool_calls_can_always_be_written() -> None:
    body = calling_tools()
    call = body["choices"][0]["message"]["tool_calls"][0]
    call["extra"] = 10**30
    orjson.dumps(asdict(reply(body)))
    nested: Any = []
    for _ in range(400):
        nested = [nested]
    call["extra"] = nested
    assert fault(body).family == "malformed_reply"


def test_control_characters_in_names_do_not_reach_the_screen() -> None:
    found = reply(
        {**openrouter(), "provider": "Silicon\x1b[31mFlow", "id": "gen\n1"}, Expectation(MODEL)
    )
    assert found.provider == "Silicon\ufffd[31mFlow"
    assert found.generation_id == "gen 1"


def test_error_pages_of_error_statuses_are_judged_by_status() -> None:
    assert fault(b"<html>oops</html>", status=502).family == "bad_gateway"
    assert fault(b"", status=401).family == "auth"
    assert fault(b"\xff\xfe", status=500).family == "server_error"
    assert fault(b"[]", status=404).family == "not_found"


def test_other_success_codes_are_read_like_200() -> None:
    assert isinstance(parse(openrouter(), status=201), Reply)


def test_streams_can_hand_over_a_parsed_document() -> None:
    assert isinstance(read_reply(openrouter(), {}, EXPECT), Reply)
