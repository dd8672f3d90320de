"""What a route was seen to hold when it refused more, and when to try for more than that.

Like TCP CUBIC it comes back quickly to just below the refused level, waits there, and then goes
beyond in growing steps; a probe is paid for by the replies since the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

DOUBLING_S = 5.0
MARGIN = 0.02
MARGIN_MOST = 0.5
"""How far below the level that was held the limit stays; doubles where even that was refused."""
STEP = 0.005
PROBE_S = 5.0
"""A probe that is not refused for this long was accepted."""
FIRST_S = 15.0
LAST_S = 600.0
EARNED = 200
"""Replies that must have come for each refusal that the next probe may cost: 0.5%."""
PATIENCE = 4
"""A probe that is not earned is made all the same after this many of its intervals."""
GAIN = 0.05
"""A probe that found less than this has found nothing, and the next one waits twice as long."""
LOST = 0.8
"""A level that fell to this part of the best one is news: probes begin anew."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A burst of refusals that has run its course."""

    fell_from: float
    """Requests in flight when it came."""
    held: float
    """How many of those were not refused."""
    refused: int
    probed: bool
    """A probe for more caused it."""


class Held:
    """The known level of one route; times in monotonic seconds, levels in requests in flight."""

    def __init__(self) -> None:
        self.level: float | None = None
        """How many are held; None where nothing was refused, or where that taught nothing."""
        self.safe = 0.0
        """Where the limit stays between probes."""
        self._streak = 0
        self._probe: float | None = None
        self._probe_until = 0.0
        self._step = 1.0
        self._best = 0.0
        self._due_at = 0.0
        self._every = FIRST_S
        self._cost = 0
        self._replies = 0

    @property
    def probing(self) -> bool:
        """Whether more is being tried just now."""
        return self._probe is not None

    def replied(self) -> None:
        """A reply came: the next probe is a little nearer."""
        self._replies += 1

    def refused(self) -> None:
        """A burst began: what was being tried is over."""
        self._probe = None

    def forget(self) -> None:
        """Nothing is known any more."""
        self.level = self._probe = None
        self._streak = 0

    def learn(self, now: float, lesson: Lesson) -> None:
        """Take the level from a burst that is over."""
        again = self.level is not None and lesson.fell_from <= self.safe * 1.01 + 1.0
        self._streak = self._streak + 1 if again else 0
        margin = min(MARGIN_MOST, MARGIN * 2.0**self._streak)
        self.safe = max(1.0, lesson.held * (1.0 - margin))
        # where the safe level was refused too, the estimate is worth as little as that level
        self.level = self.safe / (1.0 - MARGIN)
        self._plan(now, lesson, self.level)

    def nearer(self, now: float, level: float, elapsed: float) -> float:
        """Where the limit goes from `level` after `elapsed` more seconds in use."""
        if self.level is None or self._probe is not None:
            return level
        if level < self.safe - 1e-6:
            grown: float = 2.0 ** (elapsed / DOUBLING_S)
            halfway = self.level - (self.level - level) / grown
            return float(min(level * grown, halfway, self.safe))
        return self.beyond(now) if self._may_probe(now) else level

    def survived(self, now: float) -> bool:
        """Whether the level that is being tried was accepted."""
        return self._probe is not None and now >= self._probe_until

    def beyond(self, now: float) -> float:
        """Begin a probe, or go on from one that survived; the level to try."""
        if self._probe is not None:
            self._streak = 0
            self.level = self._probe
            self.safe = self._probe * (1.0 - MARGIN)
            self._step *= 2.0
        self._probe = (self.level or 1.0) + self._step
        self._probe_until = now + PROBE_S
        return self._probe

    def _plan(self, now: float, lesson: Lesson, level: float) -> None:
        gained = level > self._best * (1.0 + GAIN)
        self._step = max(1.0, STEP * level)
        if gained or level < self._best * LOST:
            self._best = level
            self._every = FIRST_S
        elif lesson.probed:
            self._every = min(2.0 * self._every, LAST_S)
        self._cost = max(1, lesson.refused) if lesson.probed else int(self._step)
        if gained and lesson.probed:
            self._cost = 0
        self._replies = 0
        self._due_at = now + self._every

    def _may_probe(self, now: float) -> bool:
        earned = self._replies >= EARNED * self._cost
        return now >= self._due_at and (earned or now >= self._due_at + PATIENCE * self._every)
