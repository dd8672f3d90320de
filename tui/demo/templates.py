"""Prompt families: texts with slots, and an even walk over fillers that repeats no combination."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from math import gcd, prod
from random import Random
from string import Formatter
from typing import Any, TypeAlias

Filler: TypeAlias = str | int | Mapping[str, str]

_GOLDEN = 0.6180339887
"""Multiples of it, modulo 1, are never close to each other: neighbours look unlike."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One prompt: the user's turns, and what the source has around them."""

    turns: tuple[str, ...]
    replies: tuple[str, ...] = ()
    system: str = ""
    input: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """Prompts of one kind: its texts hold `{slots}`, and `slots` has the fillers of each."""

    name: str
    form: str
    texts: Conversation
    slots: Mapping[str, Sequence[Filler]]
    tools: tuple[str, ...] = ()
    tools_as_text: bool = False

    @property
    def size(self) -> int:
        """The number of different prompts that this family can make."""
        return prod(len(fillers) for fillers in self.slots.values())

    def conversations(self) -> Iterator[Conversation]:
        """Every combination of fillers once."""
        texts = self.texts
        for place in _walk(self.size):
            values = self._values(place)
            yield Conversation(
                turns=tuple(text.format_map(values) for text in texts.turns),
                replies=tuple(text.format_map(values) for text in texts.replies),
                system=texts.system.format_map(values),
                input=texts.input.format_map(values),
            )

    def _values(self, place: int) -> dict[str, Filler]:
        values: dict[str, Filler] = {}
        for slot, fillers in self.slots.items():
            place, digit = divmod(place, len(fillers))
            values[slot] = fillers[digit]
        return values


def read_family(raw: Mapping[str, Any], pools: Mapping[str, Any]) -> Family:
    """One `[[family]]` of a data file; a slot without fillers of its own takes the file's pool."""
    texts = Conversation(
        turns=tuple(text.strip() for text in raw["turns"]),
        replies=tuple(raw.get("replies", ())),
        system=raw.get("system", ""),
        input=raw.get("input", "").strip(),
    )
    given = {**pools, **raw.get("slots", {})}
    return Family(
        name=raw["name"],
        form=raw["form"],
        texts=texts,
        slots={
            slot: _shuffled(_fillers(given[slot]), seed=f"{raw['name']}/{slot}")
            for slot in _slots_in(texts)
        },
        tools=tuple(raw.get("tools", ())),
        tools_as_text=raw.get("tools_as_text", False),
    )


def deal(families: Sequence[Family], total: int) -> Iterator[tuple[Family, Conversation]]:
    """`total` different prompts, each family spread evenly from the first to the last.

    The families get equal shares as far as they reach. Taking fewer prompts leaves those that
    are taken as they are, so a scaled demo is the beginning of the full one.
    """
    shares = _shares([family.size for family in families], total)
    turns = sorted(
        ((count + number * _GOLDEN % 1) / share, number)
        for number, share in enumerate(shares)
        for count in range(share)
    )
    streams = [family.conversations() for family in families]
    for _, number in turns:
        yield families[number], next(streams[number])


def _shares(sizes: Sequence[int], total: int) -> list[int]:
    if sum(sizes) < total:
        raise ValueError(f"{sum(sizes)} combinations cannot make {total} different prompts")
    cap = next(cap for cap in range(max(sizes) + 1) if sum(min(s, cap) for s in sizes) >= total)
    shares = [min(size, cap) for size in sizes]
    full = (number for number, share in enumerate(shares) if share == cap)
    for number in islice(full, sum(shares) - total):
        shares[number] -= 1
    return shares


def _walk(size: int) -> Iterator[int]:
    """Every number below `size` once: a stride without a common factor visits them all."""
    stride = max(1, round(size * _GOLDEN))
    while gcd(stride, size) != 1:
        stride += 1
    return (count * stride % size for count in range(size))


def _fillers(given: Any) -> Sequence[Filler]:
    if isinstance(given, Mapping):
        return range(given["from"], given["to"] + 1, given.get("step", 1))
    return [_stripped(filler) for filler in given]


def _shuffled(fillers: Sequence[Filler], *, seed: str) -> Sequence[Filler]:
    """In an order of this slot's own: else every family would begin with its first fillers."""
    return Random(seed).sample(fillers, len(fillers))


def _stripped(filler: Any) -> Filler:
    if isinstance(filler, Mapping):
        return {key: text.strip("\n") for key, text in filler.items()}
    return filler if isinstance(filler, int) else str(filler)


def _slots_in(texts: Conversation) -> list[str]:
    fields = (
        field.partition("[")[0]
        for text in (*texts.turns, *texts.replies, texts.system, texts.input)
        for _, field, _, _ in Formatter().parse(text)
        if field
    )
    return list(dict.fromkeys(fields))
