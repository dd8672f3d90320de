"""Prompts as served: the golden cases, and the rules that they do not reach."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kimi_cases import golden, ids, shared, vocabulary

from engine.tokens.template import (
    PromptError,
    declare_tools_message,
    render_prompt,
    with_declared_tools,
)

USER = {"role": "user", "content": "Hi"}
END = "<|im_assistant|>assistant<|im_middle|><think>"
TOOLS = [{"type": "function", "function": {"name": "now", "parameters": {}}}]
CALL = {"id": "functions.now:0", "type": "function", "function": {"name": "now", "arguments": "{}"}}


def test_golden_prompts_have_the_text_and_the_ids() -> None:
    cases = golden("kimi_k25_prompts.jsonl")
    assert cases
    for case in cases:
        text = render_prompt(case["messages"], tools=case["tools"], thinking=case["thinking"])
        assert text == case["prompt_text"], case["name"]
        assert vocabulary().encode(text) == case["prompt_ids"], case["name"]


def test_tools_declared_in_a_message_give_the_same_prompt() -> None:
    for case in golden("kimi_k25_prompts.jsonl"):
        if case["tools"]:
            messages = [declare_tools_message(case["tools"]), *case["messages"]]
            text = render_prompt(messages, thinking=case["thinking"])
            assert vocabulary().encode(text) == case["prompt_ids"], case["name"]


@pytest.mark.parametrize("name", ["standard", "reasoning"])
def test_k2_thinking_prompts_begin_specforges_sequences(name: str) -> None:
    case = json.loads(shared(f"golden/kimi_k2_thinking_{name}.json"))
    text = vocabulary().decode(case["input_ids"])
    turns = [part.split("<|im_middle|>")[1] for part in text.split("<|im_end|>")[:2]]
    messages = [{"role": "system", "content": turns[0]}, {"role": "user", "content": turns[1]}]
    prompt = vocabulary().encode(render_prompt(messages, variant="kimi-k2-thinking"))
    assert case["input_ids"][: len(prompt)] == prompt
    assert vocabulary().decode(prompt).endswith("<|im_assistant|>assistant<|im_middle|>")


def test_k2_thinking_has_its_own_system_prompt() -> None:
    default = render_prompt([USER], variant="kimi-k2-thinking", thinking=False)
    assert default.startswith("<|im_system|>system<|im_middle|>You are Kimi, an AI assistant")
    plain = render_prompt([USER], variant="kimi-k2.5")
    assert len(ids(default)) == len(ids(plain)) + 18 - 1  # and it ends before <think>
    own = render_prompt([{"role": "system", "content": "S"}, USER], variant="kimi-k2-thinking")
    assert "You are Kimi" not in own


@pytest.mark.parametrize("variant", ["kimi-k2.5", "kimi-k2.6", "kimi-k2-thinking"])
@pytest.mark.parametrize("first", [[], [{"role": "system", "content": "S"}]])
def test_declared_tools_and_the_parameter_are_one_prompt(
    variant: str, first: list[dict[str, str]]
) -> None:
    messages = [*first, USER]
    sent = with_declared_tools(messages, TOOLS, variant=variant)
    assert render_prompt(sent, variant=variant) == render_prompt(
        messages, tools=TOOLS, variant=variant
    )


def test_k2_thinking_declares_tools_as_sorted_compact_json() -> None:
    text = render_prompt([USER], tools=TOOLS, variant="kimi-k2-thinking")
    declared = '[{"function":{"name":"now","parameters":{}},"type":"function"}]'
    assert f"<|im_system|>tool_declare<|im_middle|>{declared}<|im_end|><|im_system|>" in text


def test_a_name_stands_in_the_place_of_the_role() -> None:
    text = render_prompt([{"role": "user", "name": "Ann", "content": "x"}, {**USER, "name": ""}])
    assert text.startswith("<|im_user|>Ann<|im_middle|>x<|im_end|><|im_user|>user<|im_middle|>Hi")
    other = render_prompt([{"role": "developer", "content": "be kind"}, USER])
    assert other.startswith("<|im_system|>developer<|im_middle|>be kind<|im_end|>")


def test_reasoning_is_kept_in_an_open_chain_only() -> None:
    messages = [
        USER,
        {"role": "assistant", "content": "old", "reasoning_content": "gone"},
        USER,
        {"role": "assistant", "content": "let me see", "reasoning": "kept", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "functions.now:0", "content": "noon"},
    ]
    text = render_prompt(messages)
    assert "<think></think>old" in text
    assert "<think>kept</think>let me see<|tool_calls_section_begin|>" in text
    assert "<|im_system|>tool<|im_middle|>## Return of functions.now:0\nnoon<|im_end|>" in text
    assert text.endswith(END)
    off = render_prompt(messages, thinking=False)
    assert "kept" not in off
    assert off.endswith(f"{END}</think>")


def test_a_chain_closed_by_an_answer_is_history() -> None:
    chain = {"role": "assistant", "content": None, "reasoning": "gone", "tool_calls": [CALL]}
    closing = {"role": "assistant", "content": "done", "tool_calls": []}
    text = render_prompt([USER, chain, closing, USER])
    assert "<think></think><|tool_calls_section_begin|>" in text
    assert "gone" not in text


def test_content_parts_are_joined_and_nothing_is_nothing() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    text = render_prompt([{"role": "user", "content": parts}, {"role": "user", "content": None}])
    assert text.startswith(
        "<|im_user|>user<|im_middle|>ab<|im_end|><|im_user|>user<|im_middle|><|im_end|>"
    )


def test_arguments_that_are_no_text_are_written_as_json() -> None:
    call = {"id": "functions.now:0", "function": {"name": "now", "arguments": {"ort": "Köln"}}}
    text = render_prompt([USER, {"role": "assistant", "tool_calls": [call]}])
    assert '<|tool_call_argument_begin|>{"ort": "Köln"}<|tool_call_end|>' in text


def test_special_tokens_in_user_text_are_served_as_special_tokens() -> None:
    prompt = ids(render_prompt([{"role": "user", "content": "say <|im_end|>"}]))
    assert prompt.count(163586) == 2


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "no messages"),
        ([{"content": "x"}], r"messages\[0\] has no role"),
        ([{"role": "user", "content": 5}], "neither text nor a list"),
        ([{"role": "user", "content": ["x"]}], "content part without text"),
        ([{"role": "user", "content": [{"type": "text"}]}], "content part without text"),
        (
            [USER, {"role": "user", "content": [{"type": "image_url", "image_url": {}}]}],
            r"messages\[1\] holds image_url: only text prompts",
        ),
        ([{"role": "user", "content": [{"type": "input_audio"}]}], "input_audio"),
        ([USER, {"role": "assistant", "tool_calls": [{"id": "x"}]}], "has no function"),
        ([USER, {"role": "assistant", "tool_calls": [{"function": {}}]}], "has no arguments"),
        ([USER, {"role": "assistant", "tool_calls": "x"}], "are not a list"),
    ],
)
def test_what_cannot_be_served_is_refused_with_the_reason(messages: Any, reason: str) -> None:
    with pytest.raises(PromptError, match=reason):
        render_prompt(messages)


@pytest.mark.parametrize("tools", [["x"], "now", {"type": "function"}])
def test_tools_that_are_no_objects_are_refused(tools: Any) -> None:
    with pytest.raises(PromptError, match="tools"):
        render_prompt([USER], tools=tools)


def test_tools_nested_without_end_are_refused() -> None:
    schema: Any = {}
    for _ in range(5000):
        schema = {"items": schema}
    with pytest.raises(PromptError, match="nested too deep"):
        declare_tools_message([{"type": "function", "function": schema}])


CONTENT = st.one_of(
    st.none(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=5)})),
)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "system"]), CONTENT), min_size=1))
def test_every_message_is_one_closed_turn(turns: list[tuple[str, Any]]) -> None:
    messages = [{"role": role, "content": content} for role, content in turns]
    text = render_prompt(messages)
    assert text.count("<|im_middle|>") == len(turns) + 1
    assert text.count("<|im_end|>") == len(turns)
    assert text.endswith(END)
