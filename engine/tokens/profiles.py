"""How each provider distorts text: learned from decisive rows, never assumed.

A row is decisive when exactly one of the readings that its text allows has the count. The tally
is a fold over rows: its sums do not depend on their order, tallies of several sessions can be
merged, and a window over the latest votes notices a host that changes its ways.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Final, Literal

from engine.tokens.readings import SPACED, VERBATIM, Evidence, Fits

ReadingName = Literal["verbatim", "spaced"]
Vote = Literal["verbatim", "spaced", "trimmed"]

MIN_DECISIVE: Final = 300
AGREEMENT: Final = 0.99
END_AGREEMENT: Final = 0.9
"""Share of rows without `<|im_end|>` in their count that proves that it is not counted.

Lower, because a token too many makes the others: a count never lacks a token that was written.
"""
TRIMMER_SHARE: Final = 0.01
WINDOW: Final = 1000
"""Latest votes that must agree by themselves: a host may be upgraded in the middle of a run."""
_MIN_TRIMMED: Final = 2
"""Trimmed votes that make a trimmer before there are enough rows for a share."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What is known of a provider's text."""

    reading: ReadingName | None = None
    """Which reading its text has; None while unknown or disputed."""
    trims: bool = False
    """Whether it removes whitespace at the ends of its fields."""
    counts_end: bool = True
    """Whether usage.completion_tokens includes `<|im_end|>`."""
    end_disputed: bool = False
    """Whether some of its rows say otherwise, or too few say so yet."""
    leans_spaced: bool = False
    """Whether more of its rows are spaced than verbatim, agreed on or not."""
    decisive: int = 0

    @property
    def name(self) -> str:
        """`verbatim`, `spaced`, `trimmed`, or empty while unknown."""
        return "trimmed" if self.trims else self.reading or ""

    def allows(self, kinds: int) -> bool:
        """Whether a reading of these kinds is one that this provider is known to give."""
        if self.reading is None:
            return True
        return bool(kinds & (VERBATIM if self.reading == "verbatim" else SPACED))


UNKNOWN: Final = Profile()


Votes = Counter[tuple[bool, Vote]]
"""Votes by whether `<|im_end|>` is taken to be counted, and kind."""


def votes_of(evidence: Evidence) -> tuple[tuple[bool, Vote], ...]:
    """A row's votes: at most one under each assumption about `<|im_end|>`; none if indecisive."""
    if not evidence.counted:
        return ()
    with_end = _vote(evidence.with_end, trimmed=evidence.trimmed_with_end)
    without_end = _vote(evidence.without_end, trimmed=evidence.trimmed_without_end)
    pairs: tuple[tuple[bool, Vote | None], ...] = ((True, with_end), (False, without_end))
    return tuple((counted, vote) for counted, vote in pairs if vote is not None)


@dataclass(slots=True)
class ProfileTally:
    """The votes of one provider's rows."""

    votes: Votes = field(default_factory=Counter)
    ends: Counter[bool] = field(default_factory=Counter)
    """Rows whose count fits under one of the two assumptions only, by which."""
    latest: Votes = field(default_factory=Counter)
    """The votes of the latest WINDOW decisive rows."""
    _recent: deque[tuple[tuple[bool, Vote], ...]] = field(default_factory=deque)

    def fold(self, evidence: Evidence) -> bool:
        """Count one row; says whether it was decisive."""
        fits, fits_without = evidence.with_end.total, evidence.without_end.total
        if evidence.ended and bool(fits) != bool(fits_without):
            self.ends[bool(fits)] += 1
        votes = votes_of(evidence)
        if votes:
            self.votes.update(votes)
            self._remember(votes)
        return bool(votes)

    def merge(self, later: ProfileTally) -> None:
        """Add the rows of another tally, which come after these."""
        self.votes.update(later.votes)
        self.ends.update(later.ends)
        for votes in later._recent:
            self._remember(votes)

    def profile(self) -> Profile:
        """What the votes add up to."""
        return self.profile_beside(self.latest)

    def profile_beside(self, nearby: Votes) -> Profile:
        """The profile for rows among which these votes (about WINDOW of them) were given.

        All rows must agree, and those nearby too: a drift can be too small a share of a long run.
        """
        counts_end, disputed = self._end()
        every, near = _under(self.votes, counts_end), _under(nearby, counts_end)
        reading = _reading(every)
        return Profile(
            reading=reading if reading == _reading(near) else None,
            trims=_trims(every) or (near.total() >= WINDOW and _trims(near)),
            counts_end=counts_end,
            end_disputed=disputed,
            leans_spaced=every["spaced"] > every["verbatim"],
            decisive=every.total(),
        )

    def _remember(self, votes: tuple[tuple[bool, Vote], ...]) -> None:
        self._recent.append(votes)
        self.latest.update(votes)
        if len(self._recent) > WINDOW:
            self.latest.subtract(self._recent.popleft())

    def _end(self) -> tuple[bool, bool]:
        """Whether `<|im_end|>` is counted (taken for granted at first), and if that is disputed."""
        total, without = self.ends.total(), self.ends[False]
        if without <= total * (1 - AGREEMENT):
            return True, False
        if total >= MIN_DECISIVE and without >= total * END_AGREEMENT:
            return False, False
        return True, True


def _under(votes: Votes, counts_end: bool) -> Counter[Vote]:
    return Counter({vote: n for (counted, vote), n in votes.items() if counted == counts_end})


def _vote(fits: Fits, *, trimmed: bool) -> Vote | None:
    if fits.total == 0:
        return "trimmed" if trimmed else None
    if fits.total > 1 or fits.surplus:
        return None
    return "spaced" if fits.spaced else "verbatim"


def _reading(votes: Counter[Vote]) -> ReadingName | None:
    """The reading that the votes agree on."""
    total = votes["verbatim"] + votes["spaced"]
    if total < MIN_DECISIVE:
        return None
    names: tuple[ReadingName, ...] = ("verbatim", "spaced")
    return next((name for name in names if votes[name] >= total * AGREEMENT), None)


def _trims(votes: Counter[Vote]) -> bool:
    return votes["trimmed"] >= max(_MIN_TRIMMED, TRIMMER_SHARE * votes.total())
