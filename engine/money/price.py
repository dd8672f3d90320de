"""What a reply came to by the list prices of the host that gave it, where the reply does not say.

Never a guess of less: a count or a price that is unknown makes the cost unknown, not smaller.
Cache discounts are not known, so such a cost is the most that is billed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.wire.usage import Usage


@dataclass(frozen=True, slots=True)
class Price:
    """USD per token; None where nobody names it."""

    prompt_usd: float | None = None
    completion_usd: float | None = None

    def of(self, usage: Usage) -> float | None:
        """USD of these counts; None where a count or a price is unknown."""
        asked = _times(usage.prompt_tokens, self.prompt_usd)
        written = _times(usage.completion_tokens, self.completion_usd)
        return None if asked is None or written is None else asked + written


def dearest(prices: Iterable[Price]) -> Price:
    """The highest of each; unknown ones stand back."""
    known = list(prices)
    return Price(
        prompt_usd=_most(price.prompt_usd for price in known),
        completion_usd=_most(price.completion_usd for price in known),
    )


def _times(count: int | None, usd: float | None) -> float | None:
    return None if count is None or usd is None else count * usd


def _most(prices: Iterable[float | None]) -> float | None:
    return max((usd for usd in prices if usd is not None), default=None)
