"""How sure the token ids of a row are, given what is known of its provider.

`matched` claims that the ids are the canonical encoding of the reading that this provider is
known to give, and that their number is what the server counted (DESIGN §6). It never rests on a
reading that the profile rules out, nor on one that another reading of equal length disputes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.tokens.profiles import UNKNOWN, Profile
from engine.tokens.readings import SPACED, VERBATIM, Candidate, Readings

Exactness = Literal["engine", "matched", "ambiguous", "mismatch", "unverified"]


@dataclass(frozen=True, slots=True)
class Graded:
    """The best ids for a row (None where its text has none) and how sure they are."""

    ids: list[int] | None
    exactness: Exactness


def grade(readings: Readings, profile: Profile = UNKNOWN) -> Graded:
    """Grade one row. Below `matched` the ids are the likeliest guess."""
    if not readings.candidates:
        return Graded(None, "mismatch")
    if not readings.exact:
        return Graded(_likeliest(readings.candidates, profile).ids, "mismatch")
    if readings.count is None:
        return Graded(_likeliest(readings.candidates, profile).ids, "unverified")
    length = readings.length(counts_end=profile.counts_end)
    fitting = readings.fitting(length)
    if not fitting:
        return _without_fit(readings, profile, length)
    chosen = _known_reading(fitting, profile)
    if chosen is None or _disputed(chosen, readings, profile, length):
        return Graded((chosen or _likeliest(fitting, profile)).ids, "ambiguous")
    return Graded(chosen.ids, "matched")


def _known_reading(fitting: list[Candidate], profile: Profile) -> Candidate | None:
    """The one fitting reading that the provider is known to give; None if it is not one."""
    allowed = [item for item in fitting if profile.allows(item.kinds)]
    if len(allowed) == 1:
        # On a spacing host a token too many looks like spaces kept: " 2" is two, "2" is one.
        return None if allowed[0].surplus and profile.leans_spaced else allowed[0]
    # A verbatim profile rests on texts without any spaces at their edges: it does not rule out
    # spaces inside a tool section, and a surplus of tokens cannot look like spaces removed.
    if not allowed and len(fitting) == 1 and profile.reading == "verbatim":
        return fitting[0]
    return None


def _disputed(chosen: Candidate, readings: Readings, profile: Profile, length: int) -> bool:
    """Whether another reading that the provider's ways allow has the same count."""
    doubtful = readings.fitting(length, sure=False)
    if profile.end_disputed and not readings.answer.cut:
        doubtful += readings.fitting(length + 1)
    if any(profile.allows(item.kinds) and item.ids != chosen.ids for item in doubtful):
        return True
    return profile.trims and readings.trimmed(length) is not None


def _without_fit(readings: Readings, profile: Profile, length: int) -> Graded:
    """No sure reading has the count: a doubtful one may."""
    doubtful = readings.fitting(length, sure=False)
    if not doubtful and profile.end_disputed and not readings.answer.cut:
        doubtful = readings.fitting(length + 1)
    if doubtful:
        return Graded(_likeliest(doubtful, profile).ids, "ambiguous")
    trimmed = readings.trimmed(length)
    if trimmed is not None:
        return Graded(trimmed, "ambiguous")
    return Graded(_likeliest(readings.candidates, profile).ids, "mismatch")


def _likeliest(candidates: list[Candidate], profile: Profile) -> Candidate:
    """The first candidate of the provider's kind; a space at an edge is most likely an engine's."""
    wanted = VERBATIM if profile.reading == "verbatim" else SPACED
    first = candidates[0]
    same = [item for item in candidates if item.layout == first.layout and item.kinds & wanted]
    return same[0] if same else first
