"""Text of any length with an exact token count, from paragraphs that were counted once.

A paragraph ends in an empty line and the next one starts with no space; the vocabulary never
merges across such an end, so the counts of the paragraphs add up to the count of the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random
from typing import TYPE_CHECKING

from engine.simulator.measure import load_measure
from engine.simulator.phrases import paragraphs

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from engine.simulator.measure import Measure

GAP = "\n\n"


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of text whose ends are token boundaries, with its ids."""

    text: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """Blocks one after the other; `count` is the number of tokens."""

    blocks: tuple[Block, ...]
    count: int

    @property
    def text(self) -> str:
        """The text as one string."""
        return "".join(block.text for block in self.blocks)

    @property
    def ids(self) -> list[int]:
        """The ids of the whole text."""
        return [i for block in self.blocks for i in block.ids]


EMPTY = Text((), 0)


@dataclass(frozen=True, slots=True)
class _Paragraph:
    inner: Block
    """With the empty line after it."""
    last: Block
    """As the end of a text."""


class Writer:
    """Writes texts of a wanted length and kind; the same generator state gives the same text."""

    def __init__(self, measure: Measure, seed: int) -> None:
        self._measure = measure
        self._kinds = {
            kind: [[self._paragraph(text) for text in variants] for variants in templates]
            for kind, templates in paragraphs(Random(seed)).items()
        }
        self._shortest = {
            kind: min(len(p.last.ids) for variants in templates for p in variants)
            for kind, templates in self._kinds.items()
        }
        self.newline = self.block("\n")
        self.gap = self.block(GAP)

    def block(self, text: str) -> Block:
        """Return a text as a block of its own."""
        return Block(text, tuple(self._measure.encode(text)))

    def _paragraph(self, text: str) -> _Paragraph:
        return _Paragraph(self.block(text + GAP), self.block(text))

    def write(self, kind: str, tokens: int, rng: Random) -> Text:
        """Write paragraphs of one kind until they have about that many tokens."""
        chosen: list[_Paragraph] = []
        total = 0
        for following in self._shuffled("short" if tokens < self._shortest[kind] else kind, rng):
            if chosen and total + len(following.inner.ids) // 2 > tokens:
                break
            chosen.append(following)
            total += len(following.inner.ids)
        *inner, end = chosen
        return join([*(p.inner for p in inner), end.last])

    def _shuffled(self, kind: str, rng: Random) -> Iterator[_Paragraph]:
        """Yield paragraphs without end, no template twice before all have had their turn."""
        templates = self._kinds[kind]
        while True:
            for template in rng.sample(templates, len(templates)):
                yield template[int(rng.random() * len(template))]

    def cut(self, text: Text, tokens: int) -> Text:
        """Return the first tokens of a text, as a server does that reached its limit."""
        kept: list[Block] = []
        left = tokens
        for block in text.blocks:
            if left <= 0:
                break
            if len(block.ids) > left:
                ids = block.ids[:left]
                block = Block(self._measure.decode(list(ids)), ids)  # noqa: PLW2901 (the cut end)
            kept.append(block)
            left -= len(block.ids)
        return join(kept)


def join(blocks: Sequence[Block]) -> Text:
    """Return blocks as one text."""
    return Text(tuple(blocks), sum(len(block.ids) for block in blocks))


@cache
def load_writer(tokenizer: str, seed: int) -> Writer:
    """Return the writer of a scenario; made once in a process, since encoding takes a moment."""
    return Writer(measure_of(tokenizer), seed)


@cache
def measure_of(tokenizer: str) -> Measure:
    """Return the one measure that this process has of a vocabulary."""
    return load_measure(tokenizer)
