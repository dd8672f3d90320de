"""How long a failed attempt waits before its prompt may be tried again.

Back-off is exponential with full jitter. A wait that the server names is a floor: the jitter comes
on top of it, so that the prompts of one burst, all told the same wait, do not return as one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

LONGEST_WAIT_S = 86_400.0
"""A longer wait from a server is taken as this: a daily quota is the longest one that exists."""
SPREAD = 0.25
"""Share of a server's wait over which its prompts return: 958 told 89 s come back within 22 s."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Back-off of one prompt; attempts count from 1."""

    base_s: float = 1.0
    cap_s: float = 60.0
    max_attempts: int = 8

    def exhausted(self, attempt: int) -> bool:
        """Whether attempt number `attempt` was the last one allowed."""
        return attempt >= self.max_attempts

    def delay(self, attempt: int, rng: Random, *, wait_s: float | None) -> float:
        """Seconds until the retry of failed attempt number `attempt` may start.

        `wait_s` is the wait that the server asked for, None where it named none; a wait that is
        no number counts as none.
        """
        window = min(self.cap_s, self.base_s * 2.0 ** min(max(attempt, 1) - 1, 32))
        if wait_s is None or math.isnan(wait_s) or wait_s <= 0:
            return rng.uniform(0.0, window)
        floor = min(wait_s, LONGEST_WAIT_S)
        return floor + rng.uniform(0.0, max(window, SPREAD * floor))
