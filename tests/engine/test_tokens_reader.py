"""The engine's own use: prompts and replies in, ids and grades out, profiles learned on the way."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import pytest
from kimi_cases import ids, vocabulary

from engine.tokens.layouts import Answer
from engine.tokens.reader import TokenReader
from engine.tokens.template import PromptError

USER = {"role": "user", "content": "Hi"}
R, C = "I see.", "Two apples"
NATIVE = ids(f"{R}</think>{C}<|im_end|>")
CALL = {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def learned(reader: TokenReader, content: str, reasoning: str, number: int = 300) -> TokenReader:
    for _ in range(number):
        reader.completion(Answer(content, reasoning, None, "stop", len(NATIVE)), provider="P")
    return reader


def test_prompts_have_the_ids_as_served() -> None:
    reader = TokenReader(vocabulary())
    assert reader.prompt([USER]) == [
        163587, 2482, 163601, 18699, 163586, 163588, 69702, 163601, 163606,
    ]  # fmt: skip
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert reader.prompt([USER], tools) == reader.prompt([reader.declaration(tools), USER])


@pytest.mark.parametrize("content", ["\ud800", [{"type": "image_url"}]])
def test_prompts_that_cannot_be_served_are_refused(content: Any) -> None:
    with pytest.raises(PromptError):
        TokenReader(vocabulary()).prompt([{"role": "user", "content": content}])


def test_a_profile_is_learned_and_used() -> None:
    reader = TokenReader(vocabulary())
    answer = Answer(f" {C}", f" {R}", None, "stop", len(NATIVE))
    assert reader.completion(answer, provider="P").exactness == "ambiguous"
    learned(reader, f" {C}", f" {R} ")
    assert reader.profiles()["P"].profile.name == "spaced"
    settled = reader.completion(answer, provider="P")
    assert (settled.exactness, settled.ids) == ("matched", NATIVE)
    assert reader.completion(answer, provider="Q").exactness == "ambiguous"


def test_prompt_differences_reach_the_snapshot() -> None:
    reader = TokenReader(vocabulary())
    for _ in range(20):
        reader.check_prompt("P", [USER], None, ours=9, counted=27)
    assert reader.profiles()["P"].prompt_words == (
        "adds 18 prompt tokens: the old default system prompt"
    )
    assert reader.text_of("Q").prompt_words == ""


def test_ids_of_a_server_are_engine_or_mismatch() -> None:
    reader = TokenReader(vocabulary())
    answer = Answer(f" {C}", f" {R} ", None, "stop", len(NATIVE))
    kept = reader.completion(answer, provider="P", server_ids=NATIVE[:-1])
    assert (kept.exactness, kept.ids) == ("engine", NATIVE)
    wrong = reader.completion(answer, provider="P", server_ids=NATIVE[1:])
    assert (wrong.exactness, wrong.ids) == ("mismatch", NATIVE[1:])
    assert reader.profiles() == {}


def test_calls_in_the_prompt_number_those_of_the_answer() -> None:
    earlier: list[Any] = [
        USER,
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "content": ""},
    ]
    answer = Answer(None, R, [{"function": {"name": "f", "arguments": "{}"}}])
    read = TokenReader(vocabulary()).completion(answer, messages=earlier)
    assert "functions.f:1" in vocabulary().decode(read.ids or [])


@pytest.mark.parametrize(
    ("content", "reasoning", "plain", "unspaced"),
    [
        (C, R, C, C),
        (f" {C}", f" {R} ", f" {C}", C),
        (None, R, "", ""),
        (f" {R} </think> {C}", None, f" {C}", C),
        (f"<think> {R} </think> {C}", None, f" {C}", C),
        (
            " Ok. <|tool_calls_section_begin|> <|tool_calls_section_end|>",
            R,
            " Ok. <|tool_calls_section_begin|> <|tool_calls_section_end|>",
            "Ok.<|tool_calls_section_begin|><|tool_calls_section_end|>",
        ),
    ],
)
def test_our_own_answer_is_given_back_without_artefacts(
    content: str | None, reasoning: str | None, plain: str, unspaced: str
) -> None:
    reader = TokenReader(vocabulary())
    assert reader.as_served(Answer(content, reasoning), "P") == plain
    learned(reader, f" {C}", f" {R} ")
    assert reader.as_served(Answer(content, reasoning), "P") == unspaced


def test_importing_the_package_loads_no_vocabulary_library() -> None:
    modules = ("reader", "vocabulary", "final", "template", "mask", "prompt_check")
    imports = "; ".join(f"import engine.tokens.{name}" for name in modules)
    code = f"{imports}; import sys; print(sorted({{'tiktoken', 'splintr'}} & set(sys.modules)))"
    root = __file__.rsplit("/tests/", 1)[0]
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert run.stdout.strip() == "[]"


@pytest.mark.slow
def test_reading_a_row_costs_little_beside_its_encoding() -> None:
    sentence = "The answer to question {} is {}, because 12 * {} = {} and so on. "
    texts = ["".join(sentence.format(i, j, j, i * j) for j in range(60)) for i in range(100)]
    count = [len(vocabulary().encode(text)) * 2 + 2 for text in texts]

    def alone() -> None:
        for text in texts:
            vocabulary().encode(f"{text}</think>{text}<|im_end|>")

    def whole() -> None:
        reader = TokenReader(vocabulary())
        for text, tokens in zip(texts, count, strict=True):
            answer = Answer(f" {text}", f" {text} ", None, "stop", tokens)
            reader.completion(answer, provider="P")

    def best(work: Any) -> float:
        times = []
        for _ in range(7):
            begin = time.perf_counter()
            work()
            times.append(time.perf_counter() - begin)
        return min(times)

    assert best(whole) < 2 * best(alone)
