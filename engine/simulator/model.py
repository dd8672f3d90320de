"""The simulated model: the same prompt and sampling seed always get the same answer."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import orjson

from engine.simulator import toolcalls
from engine.simulator.answer import Answer
from engine.simulator.topic import kind_of, last_user_text
from engine.simulator.writer import EMPTY, Text, Writer, join

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.simulator.scenario import Scenario

_ENVELOPE_BYTES = 885
"""What a reply's JSON has around its two copies of the reasoning and its content."""


class Model:
    """Answers prompts from a scenario's seed and lengths."""

    def __init__(self, scenario: Scenario, writer: Writer) -> None:
        self._scenario = scenario
        self._writer = writer
        self._sized: dict[tuple[str, int, bool], Answer] = {}
        sigma = scenario.length.sigma
        self._mu = math.log(scenario.length.mean_tokens) - sigma * sigma / 2

    def answer(self, body: Mapping[str, Any], rng: Random, *, thinking: bool) -> Answer:
        """Return the whole answer; `cut` shortens it to the request's limit."""
        text = last_user_text(body["messages"])
        kind = kind_of(text)
        if self._scenario.reply_bytes is not None:
            return self._of_size(self._scenario.reply_bytes, kind, rng.randrange(16), thinking)
        length = self._scenario.length
        total = min(rng.lognormvariate(self._mu, length.sigma), length.max)
        share = min(max(rng.gauss(length.reasoning_share, 0.15), 0.1), 0.9) if thinking else 0.0
        thought_kind = "reasoning_zh" if kind == "zh" else "reasoning"
        reasoning = self._writer.write(thought_kind, int(total * share), rng) if thinking else EMPTY
        content = self._writer.write(kind, int(total * (1 - share)), rng)
        answer = Answer(reasoning, content, thought=thinking)
        return self._with_tools(self._with_newlines(answer, rng), body, rng)

    def _with_newlines(self, answer: Answer, rng: Random) -> Answer:
        """Give some answers newlines at an inner edge: a host that trims them shows there."""
        if rng.random() >= self._scenario.edge_newlines or not answer.thought:
            return answer
        if rng.random() < 0.5:  # noqa: PLR2004 (either edge, as likely)
            content = join([self._writer.gap, *answer.content.blocks])
            return replace(answer, content=content)
        # Punctuation and a newline are one token, so the last paragraph is encoded with its end.
        *inner, last = answer.reasoning.blocks
        ended = self._writer.block(last.text + "\n")
        return replace(answer, reasoning=join([*inner, ended]))

    def _with_tools(self, answer: Answer, body: Mapping[str, Any], rng: Random) -> Answer:
        functions = toolcalls.functions_of(body)
        if not functions or rng.random() >= self._scenario.tool_calls:
            return answer
        if not toolcalls.wanted(body):
            return answer
        first = toolcalls.next_index(body["messages"])
        calls = toolcalls.make_calls(functions, first, rng)
        tools = join([self._writer.block(toolcalls.section(calls))])
        opening = self._writer.write("short", 1, rng)
        return replace(answer, content=opening, tools=tools, calls=calls, finish="tool_calls")

    def _of_size(self, size: int, kind: str, number: int, thinking: bool) -> Answer:
        """Return one of some answers whose reply's body is very near `size` bytes."""
        key = (kind, number, thinking)
        if key not in self._sized:
            rng = Random(f"{self._scenario.seed}:{key}")
            room = size - _ENVELOPE_BYTES
            reasoning = self._filled("reasoning", room // 4, rng) if thinking else EMPTY
            rest = room - 2 * len(_escaped(reasoning.text))
            self._sized[key] = Answer(reasoning, self._filled(kind, rest, rng), thought=thinking)
        return self._sized[key]

    def _filled(self, kind: str, room: int, rng: Random) -> Text:
        """Return text of nearly `room` bytes in JSON: whole paragraphs, then dots."""
        tokens = room
        text = self._writer.write(kind, tokens, rng)
        while len(_escaped(text.text)) > room:
            tokens = int(tokens * 0.9 * room / len(_escaped(text.text)))
            text = self._writer.write(kind, tokens, rng)
        rest = room - len(_escaped(text.text)) - 2 * 2
        if rest <= 0:
            return text
        # The last paragraph has no empty line after it: encode it again with one.
        *inner, last = text.blocks
        return join([*inner, self._writer.block(f"{last.text}\n\n{'.' * rest}")])

    def cut(self, answer: Answer, limit: int | None) -> Answer:
        """Return the answer as a server gives it that stops after `limit` tokens."""
        if limit is None or answer.completion_tokens <= limit:
            return answer
        if answer.reasoning.count >= limit or not limit:
            reasoning = self._writer.cut(answer.reasoning, limit)
            return Answer(reasoning, EMPTY, thought=False, finish="length")
        left = limit - answer.reasoning.count - answer.thought
        content = self._writer.cut(join([*answer.content.blocks, *answer.tools.blocks]), left)
        return Answer(answer.reasoning, content, answer.thought, finish="length")


def _escaped(text: str) -> bytes:
    return orjson.dumps(text)[1:-1]
