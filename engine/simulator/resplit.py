"""Splits that the vocabulary would not make: what a model may sample and a count may not show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.simulator.writer import Block, Text, join

if TYPE_CHECKING:
    from random import Random

    from engine.simulator.answer import Answer
    from engine.simulator.measure import Measure

_TRIES = 40


def resplit(answer: Answer, rng: Random, measure: Measure) -> Answer:
    """Return the answer with one stretch of its content split otherwise; the text is the same.

    Half of the tries look for a split of the same length, which no count can show.
    """
    content = answer.content
    for _ in range(_TRIES if content.blocks else 0):
        number = rng.randrange(len(content.blocks))
        block = content.blocks[number]
        width = rng.choice((1, 2))
        start = rng.randrange(len(block.ids))
        other = _other(block.ids[start : start + width], rng, measure)
        if other is not None:
            ids = (*block.ids[:start], *other, *block.ids[start + width :])
            blocks = [*content.blocks]
            blocks[number] = Block(block.text, ids)
            return replace(answer, content=join(blocks))
    return answer


def _other(ids: tuple[int, ...], rng: Random, measure: Measure) -> list[int] | None:
    """Return two tokens with the text of these, or None if there are none at the point drawn."""
    text = measure.decode(list(ids))
    if len(text) < 2 or "\ufffd" in text:  # noqa: PLR2004 (two tokens need two characters)
        return None
    point = rng.randrange(1, len(text))
    parts = [measure.encode(text[:point]), measure.encode(text[point:])]
    if any(len(part) != 1 for part in parts):
        return None
    pair = [parts[0][0], parts[1][0]]
    return None if pair == list(ids) else pair


def is_canonical(text: Text, measure: Measure) -> bool:
    """Tell whether the ids of a text are those that the vocabulary gives it."""
    return measure.encode(text.text) == text.ids
