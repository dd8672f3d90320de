"""Prompt ids against usage.prompt_tokens: constant differences are found and named."""

from __future__ import annotations

from typing import Any

import pytest
from kimi_cases import ids

from engine.tokens import kimi
from engine.tokens.prompt_check import OLD_SYSTEM_PROMPT, PromptTally, Shape, shape_of
from engine.tokens.template import declare_tools_message, render_prompt

USER = {"role": "user", "content": "Hi"}
SYSTEM = {"role": "system", "content": "S"}
TOOLS = [{"type": "function", "function": {"name": "f"}}]
UNKNOWN_CAUSE = "another template or an injected text, on prompts with"
PLAIN = Shape(system=False, tools=False)


def tally(shape: Shape, *differences: int | None, thinking: bool = True) -> PromptTally:
    result = PromptTally(thinking)
    for difference in differences:
        result.fold(shape, 90, None if difference is None else 90 + difference)
    return result


def test_the_named_differences_are_those_of_the_template() -> None:
    plain = ids(render_prompt([USER]))
    assert len(plain) == 9
    injected = [{"role": "system", "content": kimi.DEFAULT_SYSTEM_PROMPT}, USER]
    assert len(ids(render_prompt(injected))) - len(plain) == OLD_SYSTEM_PROMPT
    assert len(ids(render_prompt([USER], thinking=False))) - len(plain) == 1
    declared = declare_tools_message(TOOLS)
    unnamed = {**declared, "name": None}
    assert (
        len(ids(render_prompt([unnamed, USER]))) - len(ids(render_prompt([declared, USER]))) == -2
    )


@pytest.mark.parametrize(
    ("shape", "difference", "thinking", "words"),
    [
        (PLAIN, 18, True, "adds 18 prompt tokens: the old default system prompt"),
        (PLAIN, 1, True, "adds 1 prompt token: thinking is off there (</think> ends the prompt)"),
        (PLAIN, -1, False, "drops 1 prompt token: thinking is on there"),
        (PLAIN, -18, True, "drops 18 prompt tokens: the default system prompt of K2-Thinking"),
        (
            Shape(system=False, tools=True),
            -2,
            True,
            "drops 2 prompt tokens: the tool declaration's name, which makes it a system message",
        ),
        (
            Shape(system=True, tools=False),
            18,
            True,
            f"adds 18 prompt tokens: {UNKNOWN_CAUSE} no tools and a system message",
        ),
    ],
)
def test_a_constant_difference_is_named(
    shape: Shape, difference: int, thinking: bool, words: str
) -> None:
    assert tally(shape, *[difference] * 20, thinking=thinking).words() == words


def test_agreeing_counts_and_too_few_rows_say_nothing() -> None:
    assert not tally(PLAIN, *[0] * 100, 5).words()
    assert not tally(PLAIN, *[18] * 9).words()
    assert not tally(PLAIN, *[None] * 50).words()


def test_counts_that_differ_without_a_constant_are_told() -> None:
    (finding,) = tally(PLAIN, *[18] * 50, *[0] * 50).findings()
    assert (finding.tokens, finding.rows, finding.differing) == (0, 100, 50)
    assert finding.words == (
        "counts other prompt tokens in 50 of 100 rows with no tools and no system message"
    )
    many = tally(PLAIN, *range(1, 200))
    assert many.findings()[0].differing == 199


def test_shapes_are_tallied_apart_and_tallies_merge() -> None:
    one = tally(PLAIN, *[18] * 20)
    one.merge(tally(Shape(system=True, tools=False), *[0] * 20))
    assert one.words() == "adds 18 prompt tokens: the old default system prompt"
    one.merge(tally(PLAIN, *[18] * 20))
    assert one.findings()[0].rows == 40


@pytest.mark.parametrize(
    ("messages", "tools", "shape"),
    [
        ([USER], None, PLAIN),
        ([], [], PLAIN),
        ([SYSTEM, USER], None, Shape(system=True, tools=False)),
        ([SYSTEM, USER], TOOLS, Shape(system=True, tools=True)),
        ([declare_tools_message(TOOLS), USER], None, Shape(system=False, tools=True)),
        ([declare_tools_message(TOOLS), SYSTEM, USER], TOOLS, Shape(system=True, tools=True)),
    ],
)
def test_the_shape_is_the_templates(messages: list[Any], tools: Any, shape: Shape) -> None:
    assert shape_of(messages, tools) == shape
