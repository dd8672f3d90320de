"""Candidate readings of one reply, and which of them have the number of tokens that was counted.

A host may distort the text on its way: spaces at each side of added tokens (vLLM and SGLang with
a slow tokenizer), whitespace trimmed off the fields (SGLang). Each distortion undone is a
reading; `grades` decides between them with what is known of the provider.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Final

from engine.tokens import kimi
from engine.tokens.layouts import END, Answer, layouts
from engine.tokens.pieces import Encoder, PieceEncoder, has_other_specials, split, unspaced

VERBATIM: Final = 1
SPACED: Final = 2
_TRIMMED: Final = ("", "\n\n", "\n")
"""What a trimming host is taken to have removed at an edge; spaces never show in a count."""
_REACH: Final = 16
"""Newlines at three edges cannot change a count by more."""
_REPLACEMENT: Final = "\ufffd"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One reading: its ids (with the final `<|im_end|>` unless cut) and how it came about."""

    ids: list[int]
    kinds: int
    """VERBATIM, SPACED (an engine's spaces removed), or both where they are the same ids."""
    sure: bool
    layout: int
    surplus: bool = False
    """Verbatim and longer than its unspaced twin: with a token too many that one looks the same."""


@dataclass(frozen=True, slots=True)
class Fits:
    """How many distinct sure readings have the count, by kind."""

    plain: int = 0
    """Verbatim and unspaced are the same: the text has no spaces that an engine could have put."""
    verbatim: int = 0
    surplus: int = 0
    """Verbatim ones that a surplus token would make of their unspaced twins: no evidence."""
    spaced: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.plain + self.verbatim + self.surplus + self.spaced


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one row says about its provider; a pure function of the row."""

    counted: bool = False
    """Whether there is a count to compare with, and a text that can be encoded."""
    ended: bool = True
    """Whether `<|im_end|>` was written (the row was not cut by length)."""
    with_end: Fits = Fits()
    """Readings that have the count if the provider counts `<|im_end|>`."""
    without_end: Fits = Fits()
    trimmed_with_end: bool = False
    """No other reading fits, but one with a trimmed newline put back does."""
    trimmed_without_end: bool = False


NO_EVIDENCE: Final = Evidence()


class Readings:
    """All readings of one answer. Encodes each piece of text once, and edges again as needed.

    Texts that cannot be encoded leave `candidates` empty.
    """

    def __init__(self, answer: Answer, encoder: Encoder, *, thinking: bool, variant: str) -> None:
        self.answer = answer
        self.count = _valid_count(answer.completion_tokens)
        self._layouts = layouts(answer, thinking=thinking, variant=variant)
        self._encoder = PieceEncoder(encoder)
        self._parts = [split(layout.text) for layout in self._layouts]
        self.exact = not any(_REPLACEMENT in layout.text for layout in self._layouts)
        """False where characters were lost (U+FFFD): the ids are then a guess, whatever fits."""

    @cached_property
    def candidates(self) -> list[Candidate]:
        """The distinct readings, likeliest layout first, without guesses at trimmed newlines."""
        found: list[Candidate] = []
        try:
            for candidate in self._candidates():
                _add(found, candidate)
        except ValueError:  # a lone surrogate
            return []
        return found

    @cached_property
    def evidence(self) -> Evidence:
        """What the row says about its provider."""
        if self.count is None or not self.exact or not self.candidates:
            return NO_EVIDENCE
        ended = not self.answer.cut
        with_end = self._fits(self.length(counts_end=True))
        without_end = self._fits(self.length(counts_end=False)) if ended else with_end
        evidence = Evidence(True, ended, with_end, without_end)
        if with_end.total or without_end.total:
            return evidence
        return replace(
            evidence,
            trimmed_with_end=self.trimmed(self.length(counts_end=True)) is not None,
            trimmed_without_end=self.trimmed(self.length(counts_end=False)) is not None,
        )

    def length(self, *, counts_end: bool) -> int:
        """How many ids a reading must have, `<|im_end|>` included, to have the count."""
        count = self.count or 0
        return count if counts_end or self.answer.cut else count + 1

    def fitting(self, length: int, *, sure: bool = True) -> list[Candidate]:
        """The candidates of that length."""
        return [item for item in self.candidates if item.sure == sure and len(item.ids) == length]

    def trimmed(self, length: int) -> list[int] | None:
        """Ids of a reading of that length with trimmed newlines put back; None if none has it."""
        if all(abs(len(item.ids) - length) > _REACH for item in self.candidates):
            return None
        parts = self._untrimmed_by_length.get(length if self.answer.cut else length - 1)
        return None if parts is None else self._finish(self._encoder.ids(parts))

    @cached_property
    def _untrimmed_by_length(self) -> dict[int, list[str]]:
        """The likeliest such reading of each length, as pieces and tokens in turn."""
        found: dict[int, list[str]] = {}
        for parts in self._untrimmed():
            found.setdefault(self._encoder.length(parts), parts)
        return found

    def _candidates(self) -> Iterator[Candidate]:
        for index, (layout, parts) in enumerate(zip(self._layouts, self._parts, strict=True)):
            bare = unspaced(parts)
            kinds = VERBATIM | SPACED if bare == parts else VERBATIM
            verbatim = self._finish(self._encoder.ids(parts))
            without = verbatim if bare == parts else self._finish(self._encoder.ids(bare))
            longer = len(verbatim) > len(without)
            yield Candidate(verbatim, kinds, layout.sure, index, surplus=longer)
            if bare != parts:
                yield Candidate(without, SPACED, layout.sure, index)
            if has_other_specials(parts):
                # Decoding skips these tokens, so the model most likely typed their characters.
                possible = layout.sure and END not in layout.text
                for variant, kind in ((parts, kinds), (bare, SPACED)):
                    ids = self._finish(self._encoder.special_ids(variant))
                    yield Candidate(ids, kind, possible, index)

    def _finish(self, ids: list[int]) -> list[int]:
        return ids if self.answer.cut else [*ids, kimi.IM_END]

    def _fits(self, length: int) -> Fits:
        fitting = self.fitting(length)
        kinds = Counter((item.kinds, item.surplus) for item in fitting)
        return Fits(
            plain=kinds[VERBATIM | SPACED, False],
            verbatim=kinds[VERBATIM, False],
            surplus=kinds[VERBATIM, True],
            spaced=kinds[SPACED, False],
        )

    def _untrimmed(self) -> Iterator[list[str]]:
        """Parts of the sure layouts with newlines at their edges, fewest changes first."""
        for layout, parts in zip(self._layouts, self._parts, strict=True):
            if not (layout.sure and layout.edges):
                continue
            places = _places(parts, layout.edges)
            bare = unspaced(parts)
            additions = sorted(product(_TRIMMED, repeat=len(places)), key=_changes)
            if len(layout.text) > kimi.MAX_ENCODE_CHARS:  # each takes an encoding of the whole
                additions = [row for row in additions if sum(map(bool, row)) <= 1]
            for base in (parts, bare) if bare != parts else (parts,):
                for added in additions[1:]:
                    yield _with_newlines(base, places, added)


def _valid_count(count: object) -> int | None:
    """A count that can be compared: every answer has tokens, so 0 means nobody counted."""
    return count if type(count) is int and count > 0 else None


def _changes(added: tuple[str, ...]) -> tuple[int, tuple[bool, ...]]:
    """Sorts by the number of edges changed, then earlier edges first."""
    return sum(map(bool, added)), tuple(not text for text in added)


def _add(found: list[Candidate], candidate: Candidate) -> None:
    """Append a reading, or note that it is one of those already found."""
    for index, known in enumerate(found):
        if known.ids == candidate.ids:
            found[index] = replace(
                known,
                kinds=known.kinds | candidate.kinds,
                sure=known.sure or candidate.sure,
                surplus=known.surplus and candidate.surplus,
            )
            return
    found.append(candidate)


def _places(parts: list[str], edges: tuple[int, ...]) -> list[tuple[int, bool]]:
    """For each edge the piece it lies on, and whether at the piece's end."""
    places: list[tuple[int, bool]] = []
    offset = 0
    for index, part in enumerate(parts):
        end = offset + len(part)
        if index % 2 == 0:
            places += [
                (index, edge == end and bool(part)) for edge in edges if edge in {offset, end}
            ]
        offset = end
    return places


def _with_newlines(
    parts: list[str], places: list[tuple[int, bool]], added: tuple[str, ...]
) -> list[str]:
    result = parts.copy()
    for (index, at_end), text in zip(places, added, strict=True):
        result[index] = result[index] + text if at_end else text + result[index]
    return result
