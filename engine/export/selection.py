"""Which rows go out: the sure, whole and unsuspicious ones, and what `--include` adds to them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, get_args

from engine.errors import UsageError
from engine.tokens.grades import Exactness
from engine.wire.reply import FLAGS

GRADES: Final[tuple[str, ...]] = get_args(Exactness)
LENGTH: Final = "length"
TRUNCATED: Final = "truncated"
_SURE: Final = frozenset({"engine", "matched"})
_WHOLE: Final = frozenset({"stop", "tool_calls"})


@dataclass(frozen=True, slots=True)
class Selection:
    """What a row must be to go out (facts/training-formats.md)."""

    grades: frozenset[str] = _SURE
    """Final grades."""
    flags: frozenset[str] = frozenset()
    """Flags that a row may have."""
    cut: bool = False
    """Whether rows cut by length go out, in formats of ids."""
    max_length: int | None = None
    """Greatest number of tokens of prompt and completion."""

    def reason(self, row: Mapping[str, Any], exactness: str, *, tokens: bool) -> str | None:
        """Why a row stays out of a format (`tokens`: one of ids); None where it goes out."""
        if exactness not in self.grades:
            return exactness
        finish = row["finish_reason"]
        if finish == LENGTH and not (self.cut and tokens):
            return LENGTH
        if finish not in _WHOLE and finish != LENGTH:
            return f"finish_{finish}"
        allowed = self.flags | {TRUNCATED} if finish == LENGTH else self.flags
        return next((flag for flag in row["flags"] if flag not in allowed), None)

    def record(self) -> dict[str, Any]:
        """As plain JSON, for the sidecar."""
        return {
            "grades": [grade for grade in GRADES if grade in self.grades],
            "flags": sorted(self.flags),
            "finish_reasons": sorted(_WHOLE) + [LENGTH] * self.cut,
            "max_length": self.max_length,
        }


def selection_of(includes: Iterable[str], max_length: int | None) -> Selection:
    """The default selection and what is added by name; raises UsageError on an unknown name."""
    words = frozenset(includes)
    known = (*GRADES, *FLAGS, LENGTH)
    for word in sorted(words.difference(known)):
        near = difflib.get_close_matches(word, known, n=1)
        meant = f"Did you mean {near[0]}? " if near else ""
        raise UsageError(
            f"--include {word}: there is no such grade or flag",
            hint=f"{meant}Known: {', '.join(known)}.",
        )
    return Selection(
        grades=_SURE | words.intersection(GRADES),
        flags=words.intersection(FLAGS),
        # a row that is cut by length has the flag, and whoever names the flag means such rows
        cut=not words.isdisjoint({LENGTH, TRUNCATED}),
        max_length=max_length,
    )
