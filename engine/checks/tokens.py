"""A prompt as it will be served, and how many tokens it has: exact with a vocabulary, else guessed.

Special tokens are hard boundaries, so a conversation's tokens are the sum of its messages' tokens:
each turn's prompt is counted from where the one before it ended.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from engine.feed.prompts import Message, Prompt, served_messages
from engine.manifest import Endpoint
from engine.tokens import kimi
from engine.tokens.pieces import Encoder
from engine.tokens.template import PromptError, render_prompt, with_declared_tools

BYTES_PER_TOKEN = 4
"""Of English text, for want of a vocabulary; other scripts and code lie within a factor of two."""
_TOKENS_PER_MESSAGE = 4


@dataclass(frozen=True, slots=True)
class Measure:
    """Tokens of one prompt's turns, in the order in which they are asked.

    `tokens[0]` is exact with a vocabulary. Each later one lacks our own earlier answers, which
    nobody knows yet: the n-th (from 0) will carry n of them.
    """

    tokens: tuple[int, ...]
    carries: bool
    """Whether later turns stand on our own answers."""


@dataclass(frozen=True, slots=True)
class Served:
    """One prompt as served: its first turn to be asked."""

    id: str
    dataset: str
    messages: list[Message]
    prompt_text: str | None
    """None without a tokenizer: the server's template is not known."""
    prompt_ids: list[int] | None
    tokens: int


class PromptCounter:
    """Counts the tokens of prompts for one endpoint."""

    def __init__(self, endpoint: Endpoint, vocabulary: Encoder | None) -> None:
        self._endpoint = endpoint
        self._vocabulary = vocabulary
        self._end = 0 if vocabulary is None else len(vocabulary.encode(self._ending()))

    @property
    def exact(self) -> bool:
        """Whether the numbers are those of the model's own tokenizer and template."""
        return self._vocabulary is not None

    def measure(self, prompt: Prompt) -> Measure:
        """Raises PromptError for what cannot be rendered or encoded."""
        carries = prompt.mode == "all" and len(prompt.turns) > 1
        if self._vocabulary is None:
            sizes = tuple(self._guess(prompt, turn) for turn in prompt.turns)
            return Measure(sizes, carries)
        return Measure(tuple(self._counts(prompt, self._vocabulary)), carries)

    def served(self, prompt: Prompt) -> Served:
        """The first turn to be asked, in full; raises PromptError."""
        turn = prompt.turns[0]
        messages, tools = self._request(prompt, turn)
        text, ids = None, None
        if self._vocabulary is not None:
            text = self._render(messages, tools)
            ids = _encode(self._vocabulary, text)
        return Served(
            id=prompt.id(turn),
            dataset=prompt.dataset,
            messages=messages,
            prompt_text=text,
            prompt_ids=ids,
            tokens=self._guess(prompt, turn) if ids is None else len(ids),
        )

    def _request(self, prompt: Prompt, turn: int) -> tuple[list[Message], list[Any] | None]:
        """The messages and the tools parameter of the request; our own answers are left empty."""
        messages = served_messages(prompt, turn, [""] * turn)
        if not prompt.tools or self._endpoint.tools_mode == "api":
            return messages, prompt.tools
        declared = with_declared_tools(messages, prompt.tools, variant=self._variant)
        return [dict(message) for message in declared], None

    def _counts(self, prompt: Prompt, vocabulary: Encoder) -> list[int]:
        ending = self._ending()
        sizes: list[int] = []
        before, size = "", 0
        for turn in prompt.turns:
            text = self._render(*self._request(prompt, turn))
            head = text.removesuffix(ending)
            if text == head or not head.startswith(before) or len(text) > kimi.MAX_ENCODE_CHARS:
                sizes.append(len(_encode(vocabulary, text)))
                continue
            size += len(_encode(vocabulary, head[len(before) :]))
            sizes.append(size + self._end)
            before = head
        return sizes

    def _render(self, messages: Sequence[Message], tools: Sequence[Any] | None) -> str:
        return render_prompt(
            messages, tools=tools, thinking=self._endpoint.thinking, variant=self._variant
        )

    def _ending(self) -> str:
        """What every prompt ends in: where the model begins to write."""
        message = {"role": "user", "content": ""}
        return self._render([message], None).rpartition("<|im_end|>")[2]

    @property
    def _variant(self) -> str:
        named = self._endpoint.tokenizer
        return kimi.KIMI_K25 if named == "none" else named

    def _guess(self, prompt: Prompt, turn: int) -> int:
        messages = served_messages(prompt, turn, [""] * turn)
        size = sum(_size(message) for message in messages)
        if prompt.tools:
            size += len(json.dumps(prompt.tools))
        return size // BYTES_PER_TOKEN + _TOKENS_PER_MESSAGE * (len(messages) + 1)


def _encode(vocabulary: Encoder, text: str) -> list[int]:
    try:
        return vocabulary.encode(text)
    except ValueError as error:
        raise PromptError(f"the prompt is no Unicode text: {error}") from error


def _size(message: Message) -> int:
    """Bytes of a message in UTF-8."""
    text = message.get("content") or ""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    calls = message.get("tool_calls")
    return size + (len(json.dumps(calls)) if calls else 0)
