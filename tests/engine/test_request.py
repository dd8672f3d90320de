"""One request: which extras each kind of endpoint gets, and the same bytes whenever it is asked."""

from __future__ import annotations

import json
from typing import Any

import pytest
from engine_parts import MODEL, prompt_of
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.feed.prompts import make_prompt, served_messages
from engine.manifest import Endpoint
from engine.wire.request import CACHE_TTL_S, Asking

SAMPLING = {"temperature": 1.0, "top_p": 0.95, "max_tokens": 8192}
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {}}}]


def asking(api: str = "openrouter", *, token_ids: bool = False, **more: Any) -> Asking:
    endpoint = Endpoint(base_url="http://127.0.0.1:1/v1", model=MODEL, **more)
    return Asking(endpoint, api, token_ids)


def body(which: Asking, row: Any = "Hi", *, ignore: Any = (), sampling: Any = SAMPLING) -> Any:
    prompt = prompt_of(row)
    return json.loads(which.body(prompt, served_messages(prompt, 0, []), sampling, ignore))


def test_a_plain_openai_endpoint_gets_the_sampling_and_nothing_else() -> None:
    assert body(asking("openai")) == {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Hi"}],
        **SAMPLING,
    }
    assert asking("openai").headers() == {}
    assert asking("openai").path == "/chat/completions"


def test_openrouter_is_told_whether_to_think_and_how_to_route() -> None:
    routing = {"order": ["siliconflow/int4"], "allow_fallbacks": False}
    sent = body(asking(provider=routing, thinking=False))
    assert sent["reasoning"] == {"enabled": False}
    assert sent["provider"] == routing
    assert body(asking())["reasoning"] == {"enabled": True}
    assert "provider" not in body(asking())


@pytest.mark.parametrize("api", ["vllm", "sglang"])
def test_a_server_of_ones_own_is_told_by_the_chat_template(api: str) -> None:
    sent = body(asking(api, token_ids=True, thinking=False, provider={"order": ["x"]}))
    assert sent["chat_template_kwargs"] == {"thinking": False}
    assert sent["return_token_ids"] is True
    assert not {"reasoning", "provider", "user"} & set(sent)
    assert "return_token_ids" not in body(asking(api))


def test_providers_to_avoid_join_those_that_the_manifest_ignores() -> None:
    routed = asking(provider={"ignore": ["novita"], "sort": "price"})
    assert body(routed, ignore={"venice", "atlas-cloud", "novita"})["provider"] == {
        "ignore": ["novita", "atlas-cloud", "venice"],
        "sort": "price",
    }
    assert body(asking(), ignore=["venice"])["provider"] == {"ignore": ["venice"]}
    assert "provider" not in body(asking("vllm"), ignore=["venice"])
    assert routed.endpoint.provider["ignore"] == ["novita"]  # the manifest is not touched


def test_extra_body_has_the_last_word() -> None:
    sent = body(asking(extra_body={"reasoning": {"effort": "low"}, "top_k": 40}))
    assert (sent["reasoning"], sent["top_k"]) == ({"effort": "low"}, 40)


def test_tools_are_sent_only_where_tools_mode_says_so() -> None:
    row = {"prompt": "a", "tools": TOOLS}
    assert body(asking(tools_mode="api"), row)["tools"] == TOOLS
    assert "tools" not in body(asking(tools_mode="raw"), row)
    assert "tools" not in body(asking(tools_mode="api"))


def test_headers_switch_the_cache_on_for_a_day() -> None:
    assert asking(headers={"X-Team": "a"}).headers() == {
        "X-Team": "a",
        "X-OpenRouter-Title": "eaglegen-tui",
        "X-OpenRouter-Cache": "true",
        "X-OpenRouter-Cache-TTL": str(CACHE_TTL_S),
    }
    assert CACHE_TTL_S == 86_400
    off = asking(response_cache=False, headers={"X-OpenRouter-Title": "ours"}).headers()
    assert off == {"X-OpenRouter-Title": "ours"}


def test_an_exact_double_wants_an_answer_of_its_own() -> None:
    seen: dict[bytes, int] = {}
    twins = [
        make_prompt({"prompt": "a"}, dataset="D", index=n, turns="all", occurrences=seen)
        for n in range(3)
    ]
    for which, different in ((asking(), 3), (asking(response_cache=False), 1)):
        bodies = {which.body(twin, served_messages(twin, 0, []), SAMPLING) for twin in twins}
        assert len(bodies) == different


def test_rows_that_serve_the_same_text_want_an_answer_each() -> None:
    rows = [{"turns": ["a", "b"]}, {"turns": ["a", "c"]}]
    prompts = [
        make_prompt(row, dataset=name, index=0, turns="first", occurrences={})
        for row in rows
        for name in ("D", "E")
    ]
    served = {json.dumps(served_messages(prompt, 0, [])) for prompt in prompts}
    bodies = {asking().body(p, served_messages(p, 0, []), SAMPLING) for p in prompts}
    assert (len(served), len(bodies)) == (1, 4)


@settings(deadline=None)
@given(st.text(st.characters(), min_size=1).filter(str.strip), st.sets(st.sampled_from("abcdef")))
def test_the_same_question_is_the_same_bytes_whenever_it_is_asked(
    text: str, ignore: set[str]
) -> None:
    """OpenRouter's cache hashes the body: an identical resend is free only byte for byte."""
    bodies = set()
    for order in (sorted(ignore), sorted(ignore, reverse=True)):
        prompt = prompt_of(text)
        bodies.add(asking().body(prompt, served_messages(prompt, 0, []), SAMPLING, order))
    assert len(bodies) == 1
    assert json.loads(bodies.pop())["messages"][0]["content"] == text
