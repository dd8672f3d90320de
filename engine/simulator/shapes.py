"""Ways in which the model itself answers badly: each a change of the sampled answer.

The counts stay true to the text, as they do on a host that serves such an answer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.simulator.answer import Answer
from engine.simulator.writer import EMPTY, Writer, join

if TYPE_CHECKING:
    from engine.simulator.writer import Text

_HUGE_TOKENS = 1_100_000
SURROGATE_MARK = "@@half-a-pair@@"
"""Stands where the body gets half of a surrogate pair, which no JSON writer would make."""


def _only(text: str, writer: Writer) -> Text:
    return join([writer.block(text)])


def _opened(text: str, answer: Answer, writer: Writer) -> Answer:
    return replace(answer, content=join([writer.block(text), *answer.content.blocks]))


def whitespace_content(answer: Answer, writer: Writer, _limit: int | None) -> Answer:
    """Content of nothing but white space."""
    return replace(answer, reasoning=EMPTY, content=_only("\n \n", writer))


def content_filter(answer: Answer, _writer: Writer, _limit: int | None) -> Answer:
    """Cut off by the host's filter before any content."""
    return replace(answer, content=EMPTY, finish="content_filter")


def refusal(answer: Answer, writer: Writer, _limit: int | None) -> Answer:
    """The model declines in one sentence."""
    return replace(answer, content=_only("I can't help with that.", writer))


def length_empty(answer: Answer, _writer: Writer, _limit: int | None) -> Answer:
    """The reasoning ate the whole budget: `length`, content null (Kimi-K2.5#9)."""
    return Answer(answer.reasoning, EMPTY, thought=False, finish="length")


def reasoning_only(answer: Answer, _writer: Writer, _limit: int | None) -> Answer:
    """`stop` right after the reasoning."""
    return Answer(answer.reasoning, EMPTY, thought=answer.thought)


def over_max_tokens(answer: Answer, writer: Writer, limit: int | None) -> Answer:
    """Many more tokens than the request allowed (lite.koboldai.net#166)."""
    once = join([*(answer.content.blocks or answer.reasoning.blocks), writer.gap])
    times = (limit or 0) // once.count + 2
    return Answer(answer.reasoning, join(once.blocks * times), thought=bool(answer.reasoning.count))


def control_tokens(answer: Answer, writer: Writer, _limit: int | None) -> Answer:
    """Raw tool markers where none belong (sglang#19552)."""
    marker = writer.block("<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0")
    return replace(answer, content=join([*answer.content.blocks, marker]))


def tools_in_reasoning(answer: Answer, writer: Writer, _limit: int | None) -> Answer:
    """A tool section that ends the reasoning without `</think>` (vllm#38579)."""
    call = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0"
        '<|tool_call_argument_begin|>{"query": "weather"}<|tool_call_end|>'
        "<|tool_calls_section_end|>"
    )
    reasoning = join([*answer.reasoning.blocks, writer.block(call)])
    return Answer(reasoning, EMPTY, thought=False)


def replacement_char(answer: Answer, writer: Writer, _limit: int | None) -> Answer:
    """Text with U+FFFD: it cannot be encoded back."""
    return _opened("caf\ufffd\n\n", answer, writer)


def lone_surrogate(answer: Answer, writer: Writer, _limit: int | None) -> Answer:
    """Half of a surrogate pair in the content."""
    return _opened(f"{SURROGATE_MARK}\n\n", answer, writer)


def huge(answer: Answer, writer: Writer, _limit: int | None) -> Answer:
    """About five megabytes of content."""
    block = writer.block("All work and no play.\n\n")
    return replace(answer, content=join([block] * (_HUGE_TOKENS // len(block.ids))))
