"""How the simulated model counts tokens: with the real vocabulary, or roughly by characters."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

CHARS_PER_TOKEN = 4


class Measure(Protocol):
    """Token counts and ids of texts and of whole prompts."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        ...

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids; an incomplete character becomes U+FFFD."""
        ...

    def count(self, text: str) -> int:
        """Return how many tokens a text has."""
        ...

    def prompt_ids(self, messages: list[Any], tools: Any, *, thinking: bool) -> Sequence[int]:
        """Return the ids that the model is served, up to the point where it answers."""
        ...


class Vocabulary:
    """Counts under the model's own vocabulary and chat template."""

    def __init__(self, name: str) -> None:
        from engine.tokens.template import render_prompt
        from engine.tokens.vocabulary import load_vocabulary

        self._vocabulary = load_vocabulary(name)
        self._render = partial(render_prompt, variant=name)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""
        return self._vocabulary.encode(text)

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids; an incomplete character becomes U+FFFD."""
        return self._vocabulary.decode(ids)

    def count(self, text: str) -> int:
        """Return how many tokens a text has."""
        return len(self._vocabulary.encode(text))

    def prompt_ids(self, messages: list[Any], tools: Any, *, thinking: bool) -> Sequence[int]:
        """Return the ids that the model is served, up to the point where it answers."""
        return self.encode(self._render(messages, tools=tools, thinking=thinking))


class Approximate:
    """Counts four characters as one token; an id stands for such a piece of text.

    For benchmarks, where the vocabulary would be measured instead of the client.
    """

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._pieces: list[str] = []

    def encode(self, text: str) -> list[int]:
        """Return one made-up id for every four characters."""
        pieces = [text[i : i + CHARS_PER_TOKEN] for i in range(0, len(text), CHARS_PER_TOKEN)]
        return [self._id(piece) for piece in pieces]

    def _id(self, piece: str) -> int:
        known = self._ids.get(piece)
        if known is None:
            known = self._ids[piece] = len(self._pieces)
            self._pieces.append(piece)
        return known

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids that `encode` gave."""
        return "".join(self._pieces[i] for i in ids)

    def count(self, text: str) -> int:
        """Return a quarter of the characters, rounded up."""
        return -(-len(text) // CHARS_PER_TOKEN)

    def prompt_ids(self, messages: list[Any], tools: Any, *, thinking: bool) -> Sequence[int]:
        """Return as many made-up ids as the prompt has: some for the template in each message."""
        del thinking
        characters = sum(len(str(m.get("content") or "")) for m in messages)
        characters += len(str(tools)) if tools else 0
        return range(-(-characters // CHARS_PER_TOKEN) + 4 * len(messages) + 4)


def load_measure(tokenizer: str) -> Measure:
    """Return the measure of a scenario's `tokenizer`: a vocabulary's name, or `none`."""
    return Approximate() if tokenizer == "none" else Vocabulary(tokenizer)
