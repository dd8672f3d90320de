"""Final grades of very many rows: each text is encoded once, and grades need no text any more.

The grade of a row is a function of its provider's profile and of the row's *shape*: how long its
readings are beside the count, of which kind, and which of them stands in the file. There are few
shapes, so the first pass keeps a number for each row, and the second pass takes ids from the file
(facts/kimi-k2.5.md; the grading itself is `engine.tokens.grades`, the learning `tokens.final`).
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from engine.tokens.final import _History
from engine.tokens.grades import Exactness, Graded, grade
from engine.tokens.layouts import Answer
from engine.tokens.pieces import Encoder
from engine.tokens.profiles import UNKNOWN, WINDOW, Profile, votes_of
from engine.tokens.prompt_check import PromptTally
from engine.tokens.prompt_check import Shape as PromptShape
from engine.tokens.readings import NO_EVIDENCE, Candidate, Evidence, Readings

_COUNT = 4
"""Stands for the count in a shape's readings: only distances to it matter."""
_FARTHEST = 3
"""Lengths that matter are the count and up to two more (an uncounted or disputed end)."""

_RESTORED = -2
"""Stands for a reading with trimmed newlines put back, which is no candidate."""


class CandidateShape(NamedTuple):
    """One reading without its ids."""

    beyond: int
    """Its length minus the count, -1 for any shorter one and _FARTHEST for any longer one."""
    kinds: int
    sure: bool
    layout: int
    surplus: bool


class Shape(NamedTuple):
    """All of a row that its grade can depend on."""

    counted: bool
    exact: bool
    cut: bool
    candidates: tuple[CandidateShape, ...]
    trimmed: tuple[bool, bool] | None
    """Whether a trimmed reading has the count, and the count and one; None if not looked for."""
    stored: int
    """Which candidate's ids stand in the file; -1 if none of them."""


class Learned(NamedTuple):
    """What the first pass keeps of one row."""

    provider: str | None
    given: Exactness | None
    """The grade, where it does not depend on other rows (a server's own ids, text only)."""
    evidence: Evidence
    shape: Shape | None
    prompt: tuple[PromptShape, int, int | None] | None
    """Shape of the prompt, our number of prompt ids, the server's."""


class Verdict(NamedTuple):
    """A row's final grade, and where its ids come from."""

    exactness: Exactness
    """With ids `read` only what the shape says of it: `settle` has the last word."""
    ids: Literal["stored", "none", "read"]
    """The file's; none; or to be read from the text again, with the profile."""
    profile: Profile = UNKNOWN


@dataclass(frozen=True, slots=True)
class Key:
    """What a row's verdict follows from; rows share them."""

    provider: str | None
    given: Exactness | None
    shape: Shape | None
    decisive: bool


def shape_of(readings: Readings, stored: list[int] | None) -> Shape:
    """The shape of a row with these readings; encodes nothing that its evidence has not."""
    evidence, count = readings.evidence, readings.count
    looked = evidence.counted and not (evidence.with_end.total or evidence.without_end.total)
    return Shape(
        counted=count is not None,
        exact=readings.exact,
        cut=readings.answer.cut,
        candidates=tuple(_candidate(item, count) for item in readings.candidates),
        trimmed=(evidence.trimmed_with_end, evidence.trimmed_without_end) if looked else None,
        stored=next((i for i, c in enumerate(readings.candidates) if c.ids == stored), -1),
    )


def _candidate(item: Candidate, count: int | None) -> CandidateShape:
    beyond = 0 if count is None else max(-1, min(_FARTHEST, len(item.ids) - count))
    return CandidateShape(beyond, item.kinds, item.sure, item.layout, item.surplus)


class Regrader:
    """Learns from all rows, then gives each its verdict, in the same order.

    Memory holds four bytes a row, and one entry for each distinct shape.
    """

    def __init__(self, *, thinking: bool) -> None:
        self._thinking = thinking
        self._histories: dict[str | None, _History] = {}
        self._keys: dict[Key, int] = {}
        self._rows = array("I")
        self.prompts: dict[str | None, PromptTally] = {}
        """Differences between prompt ids and `usage.prompt_tokens`, by provider."""

    def fold(self, learned: Learned) -> None:
        """Learn from the next row."""
        decisive = False
        if learned.given is None:
            history = self._histories.setdefault(learned.provider, _History())
            history.fold(learned.evidence)
            decisive = bool(votes_of(learned.evidence))
        if learned.prompt is not None:
            tally = self.prompts.setdefault(learned.provider, PromptTally(self._thinking))
            tally.fold(*learned.prompt)
        key = Key(learned.provider, learned.given, learned.shape, decisive)
        self._rows.append(self._keys.setdefault(key, len(self._keys)))

    def profiles(self) -> dict[str | None, Profile]:
        """The profile of each provider over all its rows."""
        return {name: history.tally.profile() for name, history in self._histories.items()}

    def verdicts(self) -> Iterator[Verdict]:
        """The verdict of each row, in the order in which they were folded."""
        keys = list(self._keys)
        stretches = {name: history.profiles() for name, history in self._histories.items()}
        seen: Counter[str | None] = Counter()
        known: dict[tuple[int, Profile], Verdict] = {}
        for number in self._rows:
            key = keys[number]
            if key.given is not None:
                yield Verdict(key.given, "stored")
                continue
            profiles = stretches[key.provider]
            profile = profiles[min(seen[key.provider] // WINDOW, len(profiles) - 1)]
            seen[key.provider] += key.decisive
            verdict = known.get((number, profile))
            if verdict is None:
                verdict = known[number, profile] = _verdict(key.shape, profile)
            yield verdict


def settle(
    row: Mapping[str, Any], answer: Answer, verdict: Verdict, encoder: Encoder | None, **how: Any
) -> Graded:
    """The final ids and grade of a row; `how` is what Readings needs besides."""
    if verdict.ids == "stored":
        return Graded(row["completion_ids"], verdict.exactness)
    if verdict.ids == "none" or encoder is None:
        return Graded(None, verdict.exactness)
    return grade(Readings(answer, encoder, **how), verdict.profile)


class _TextNeededError(Exception):
    """The grade depends on something that the shape does not say."""


class _StandIn(Readings):
    """Readings of a shape: as many ids as matter, each the candidate's number."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self.answer = Answer(None, finish_reason="length" if shape.cut else "stop")
        self.count = _COUNT if shape.counted else None
        self.exact = shape.exact

    @cached_property
    def candidates(self) -> list[Candidate]:
        return [
            Candidate([number] * (_COUNT + item.beyond), *item[1:])
            for number, item in enumerate(self._shape.candidates)
        ]

    @cached_property
    def evidence(self) -> Evidence:
        return NO_EVIDENCE

    def trimmed(self, length: int) -> list[int] | None:
        if self._shape.trimmed is None:
            raise _TextNeededError
        return [_RESTORED] if self._shape.trimmed[length - _COUNT] else None


def _verdict(shape: Shape | None, profile: Profile) -> Verdict:
    """The verdict on a shape under a profile; its ids may have to be read from the text."""
    assert shape is not None  # noqa: S101 - rows without a given grade have one
    try:
        graded = grade(_StandIn(shape), profile)
    except _TextNeededError:
        return Verdict("ambiguous", "read", profile)
    if graded.ids is None:
        return Verdict(graded.exactness, "none", profile)
    ours = graded.ids[0] == shape.stored
    return Verdict(graded.exactness, "stored" if ours else "read", profile)
