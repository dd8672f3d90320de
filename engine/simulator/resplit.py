"""Splits that the vocabulary would not make: what a model may sample and a count may not show."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.simulator.writer import Block, join

if TYPE_CHECKING:
    from random import Random

    from engine.simulator.answer import Answer
    from engine.simulator.measure import Measure

_TRIES = 60


def resplit(answer: Answer, rng: Random, measure: Measure) -> Answer:
    """Return the answer with one stretch of its content split otherwise; the text is the same.

    One answer in two is searched for a split of the same length first, which no count can show.
    """
    for width in (2, 1) if rng.random() < 0.5 else (1,):  # noqa: PLR2004 (one in two)
        for _ in range(_TRIES if answer.content.blocks else 0):
            number = rng.randrange(len(answer.content.blocks))
            block = _resplit(answer.content.blocks[number], width, rng, measure)
            if block is not None:
                blocks = [*answer.content.blocks]
                blocks[number] = block
                return replace(answer, content=join(blocks))
    return answer


def _resplit(block: Block, width: int, rng: Random, measure: Measure) -> Block | None:
    """Return the block with so many of its tokens, at a point drawn, as two other tokens."""
    start = rng.randrange(len(block.ids))
    stretch = block.ids[start : start + width]
    text = measure.decode(list(stretch))
    if "\ufffd" in text or len(stretch) < width:
        return None
    for point in range(1, len(text)):
        left, right = measure.encode(text[:point]), measure.encode(text[point:])
        if len(left) == len(right) == 1 and (left[0], right[0]) != stretch:
            ids = (*block.ids[:start], left[0], right[0], *block.ids[start + width :])
            return Block(block.text, ids)
    return None
