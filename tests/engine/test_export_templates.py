"""The chat templates beside a file: rendered with them, a row is what the model read and wrote."""

from __future__ import annotations

import json
from typing import Any

import pytest
from export_cases import CALL, SECTION, TOOL, example_of, kit_of, made, row_of, said, system, user
from jinja_generation import render
from kimi_cases import golden, ids

from engine.audits.survey import Kit
from engine.export.chat_template import chat_template
from engine.tokens.template import render_prompt
from engine.tokens.tool_declaration import declare_tools

RETURN = {"role": "tool", "tool_call_id": "functions.weather:0", "content": "rain"}
ASKED = said("Let me see.", tool_calls=[CALL], reasoning_content="Ask.")
PROMPTS: dict[str, tuple[dict[str, Any], ...]] = {
    "question": (user("2+2?"),),
    "system": (system("Be brief."), user("2+2?")),
    "history": (user("a"), said("b"), user("c")),
    "chain": (user("Weather?"), ASKED, RETURN),
    "two in a chain": (user("Weather?"), ASKED, RETURN, said(None, tool_calls=[CALL]), RETURN),
    "chain in history": (user("Weather?"), ASKED, RETURN, said("Rain."), user("And now?")),
}
ANSWERS: dict[str, str] = {
    "answer": "Two and two.</think>It is 4.",
    "call": f"Ask it.</think>See.{SECTION}",
    "no reasoning": "</think>It is 4.",
    "call inside the reasoning": f"I need it.{SECTION}",
    "white space": "\n Two. \n</think>\n\nIt is 4.\n ",
}


def rendered(name: str, row: dict[str, Any], kit: Kit) -> tuple[str, str]:
    """Text and supervised part, as the trainer of a format gets them."""
    record = made(name, row, kit)
    template = chat_template("model_optimizer" if name == "modelopt" else "automodel", kit.endpoint)
    tools = json.loads(record.get("tools", "[]"))
    declared = declare_tools(tools, variant=kit.endpoint.tokenizer) if tools else None
    return render(template, record["messages"], tools=tools or None, tools_ts_str=declared)


@pytest.mark.parametrize("name", ["modelopt", "automodel"])
@pytest.mark.parametrize("answer", list(ANSWERS))
@pytest.mark.parametrize("prompt", list(PROMPTS))
def test_a_thinking_models_row_is_rendered_as_it_was(name: str, prompt: str, answer: str) -> None:
    kit = kit_of()
    row = row_of(messages=PROMPTS[prompt]) | {"completion_ids": ids(ANSWERS[answer] + "<|im_end|>")}
    text, supervised = rendered(name, row, kit)
    assert text == example_of(row).text
    assert ids(text) == row["prompt_ids"] + row["completion_ids"]
    assert ids(supervised) == row["completion_ids"]


@pytest.mark.parametrize("name", ["modelopt", "automodel"])
@pytest.mark.parametrize("prompt", list(PROMPTS))
def test_so_it_is_without_thinking(name: str, prompt: str) -> None:
    kit = kit_of(thinking=False)
    row = row_of("It is 4.", None, messages=PROMPTS[prompt], kit=kit)
    text, supervised = rendered(name, row, kit)
    assert ids(text) == row["prompt_ids"] + row["completion_ids"]
    assert ids(supervised) == row["completion_ids"]


@pytest.mark.parametrize("name", ["modelopt", "automodel"])
@pytest.mark.parametrize("answer", ["<think>Two.</think>4", "<think></think>4"])
@pytest.mark.parametrize("prompt", ["question", "system", "history"])
def test_k2_thinking_has_its_default_system_prompt(name: str, prompt: str, answer: str) -> None:
    kit = kit_of(tokenizer="kimi-k2-thinking")
    row = row_of(messages=PROMPTS[prompt], kit=kit)
    row["completion_ids"] = ids(f"{answer}<|im_end|>")
    text, supervised = rendered(name, row, kit)
    assert ids(text) == row["prompt_ids"] + row["completion_ids"]
    assert ids(supervised) == row["completion_ids"]


@pytest.mark.parametrize("name", ["modelopt", "automodel"])
@pytest.mark.parametrize("mode", ["raw", "api"])
def test_tools_are_declared_as_they_were(name: str, mode: str) -> None:
    kit = kit_of(tools_mode=mode)
    row = row_of(f"See.{SECTION}", tools=[TOOL], kit=kit)
    text, supervised = rendered(name, row, kit)
    assert ids(text) == row["prompt_ids"] + row["completion_ids"]
    assert ids(supervised) == row["completion_ids"]


def test_golden_prompts_come_out_of_automodels_template() -> None:
    cases = golden("kimi_k25_prompts.jsonl")
    for case in cases:
        template = chat_template("automodel", kit_of(thinking=case["thinking"]).endpoint)
        tools = case["tools"] or None
        text, _ = render(
            template,
            [_plain(message) for message in case["messages"]],
            tools=tools,
            tools_ts_str=declare_tools(tools) if tools else None,
            add_generation_prompt=True,
        )
        assert text == case["prompt_text"], case["name"]


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    """Content parts joined, as the manifest's reader does it."""
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": "".join(part["text"] for part in content)}
    return message


def test_model_optimizers_template_prompts_too() -> None:
    for thinking in (True, False):
        template = chat_template("model_optimizer", kit_of(thinking=thinking).endpoint)
        text, _ = render(template, [user("2+2?")], add_generation_prompt=True)
        assert text == render_prompt([user("2+2?")], thinking=thinking)
