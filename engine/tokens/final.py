"""The final grade of every row: a pure function of all rows, in two passes over them.

The grade in a row is the one at writing time, when little was known of its provider. Nothing is
rewritten: `verify` and `export` learn the profiles from all rows first and grade then. Memory
holds tallies only, a few for every thousand rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.tokens.grades import Graded, grade
from engine.tokens.layouts import answer_of_row
from engine.tokens.pieces import Encoder
from engine.tokens.profiles import MIN_DECISIVE, WINDOW, Profile, ProfileTally, Votes, votes_of
from engine.tokens.prompt_check import PromptTally, shape_of
from engine.tokens.readings import Evidence, Readings

Row = Mapping[str, Any]


@dataclass(slots=True)
class _History:
    """One provider's rows: the tally over all, and the votes by stretches of WINDOW."""

    tally: ProfileTally = field(default_factory=ProfileTally)
    stretches: list[Votes] = field(default_factory=lambda: [Counter()])
    decisive: int = 0

    def fold(self, evidence: Evidence) -> None:
        if not self.tally.fold(evidence):
            return
        if self.decisive and self.decisive % WINDOW == 0:
            self.stretches.append(Counter())
        self.decisive += 1
        self.stretches[-1].update(votes_of(evidence))

    def profiles(self) -> list[Profile]:
        """The profile for each stretch; a short last one is judged with the one before it."""
        stretches = self.stretches
        rest = self.decisive - WINDOW * (len(stretches) - 1)
        if len(stretches) > 1 and rest < MIN_DECISIVE:
            last = stretches[-2] + stretches[-1]
            stretches = [*stretches[:-2], last, last]
        return [self.tally.profile_beside(stretch) for stretch in stretches]


class FinalGrades:
    """Learns from all rows, then grades each; the rows must come in the same order both times."""

    def __init__(self, encoder: Encoder, *, thinking: bool, variant: str) -> None:
        self._encoder = encoder
        self._thinking = thinking
        self._variant = variant
        self._histories: dict[str | None, _History] = {}
        self.prompts: dict[str | None, PromptTally] = {}
        """Differences between prompt ids and `usage.prompt_tokens`, by provider."""

    def learn(self, rows: Iterable[Row]) -> None:
        """The first pass."""
        for row in rows:
            provider = row.get("provider")
            if row.get("exactness") != "engine":
                history = self._histories.setdefault(provider, _History())
                history.fold(self._readings(row).evidence)
            self._check_prompt(provider, row)

    def profiles(self) -> dict[str | None, Profile]:
        """The profile of each provider over all its rows."""
        return {name: history.tally.profile() for name, history in self._histories.items()}

    def grade(self, rows: Iterable[Row]) -> Iterator[tuple[Row, Graded]]:
        """The second pass: each row with its final ids and grade.

        Rows with a server's own ids keep both; whether those decode to the text is `verify`'s
        to say (`engine_ids.ids_decode_to_text`).
        """
        profiles = {name: history.profiles() for name, history in self._histories.items()}
        seen: Counter[str | None] = Counter()
        for row in rows:
            if row.get("exactness") == "engine":
                yield row, Graded(row.get("completion_ids"), "engine")
                continue
            provider = row.get("provider")
            readings = self._readings(row)
            stretches = profiles[provider]
            yield row, grade(readings, stretches[min(seen[provider] // WINDOW, len(stretches) - 1)])
            seen[provider] += bool(votes_of(readings.evidence))

    def _readings(self, row: Row) -> Readings:
        answer = answer_of_row(row)
        return Readings(answer, self._encoder, thinking=self._thinking, variant=self._variant)

    def _check_prompt(self, provider: str | None, row: Row) -> None:
        ids, usage = row.get("prompt_ids"), row.get("usage") or {}
        if ids is None:
            return
        tally = self.prompts.setdefault(provider, PromptTally(self._thinking))
        shape = shape_of(row.get("messages") or (), row.get("tools"))
        tally.fold(shape, len(ids), usage.get("prompt_tokens"))


def final_grades(
    rows: Callable[[], Iterable[Row]], encoder: Encoder, *, thinking: bool, variant: str
) -> Iterator[tuple[Row, Graded]]:
    """Every row with its final grade; `rows` is called twice and must give the same rows."""
    final = FinalGrades(encoder, thinking=thinking, variant=variant)
    final.learn(rows())
    yield from final.grade(rows())
