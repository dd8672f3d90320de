"""The time axis of a report: sessions side by side, with a narrow break for each gap."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from engine.past.tape import Session
from tui.report import when

WIDTH, LEFT, RIGHT = 960.0, 64.0, 12.0
"""Of every chart, in units of its view box."""
_BREAK = 26.0
_STEPS = (10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14_400, 43_200, 86_400, 172_800, 604_800)
_TICK_ROOM = 92.0
_BUCKETS = 240
LEAST_S = 10.0
"""History has a line each ten seconds: narrower buckets would invent a course."""
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """One session on the axis."""

    session: Session
    x: float
    width: float

    def at(self, moment: float) -> float:
        """The place of a moment; the ends hold."""
        seconds = self.session.end - self.session.start
        share = (moment - self.session.start) / seconds if seconds > 0 else 0.0
        return self.x + max(0.0, min(1.0, share)) * self.width


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled place."""

    x: float
    text: str


class TimeAxis:
    """Gives each moment of a session its place."""

    def __init__(self, sessions: list[Session]) -> None:
        lengths = [max(1.0, session.end - session.start) for session in sessions]
        breaks = min(_BREAK, (WIDTH - LEFT - RIGHT) / (3 * len(sessions)))
        room = WIDTH - LEFT - RIGHT - breaks * (len(sessions) - 1)
        scale = room / sum(lengths)
        self.stretches: list[Stretch] = []
        x = LEFT
        for session, length in zip(sessions, lengths, strict=True):
            self.stretches.append(Stretch(session, x, length * scale))
            x += length * scale + breaks
        self.bucket_s = max(LEAST_S, sum(lengths) / _BUCKETS)
        self._step = _step(_TICK_ROOM / scale)
        self._dated = sum(lengths) > _DAY or when.day(sessions[0].start) != when.day(
            sessions[-1].end
        )

    def breaks(self) -> list[tuple[float, float, float]]:
        """The gaps between sessions: from, to, and how many seconds they stand for."""
        return [
            (before.x + before.width, after.x, after.session.start - before.session.end)
            for before, after in pairwise(self.stretches)
        ]

    def edges(self, session: Session) -> list[float]:
        """Where the session's buckets begin and end, in epoch seconds; the last one is longer."""
        count = max(1, int((session.end - session.start) / self.bucket_s))
        inner = [session.start + place * self.bucket_s for place in range(count)]
        return [*inner, session.end]

    def ticks(self) -> list[Tick]:
        """Round times of day, so far apart that their labels do not meet."""
        found: list[Tick] = []
        for stretch in self.stretches:
            start = stretch.session.start
            moment = start + (-when.midnight_offset(start)) % self._step
            while moment <= stretch.session.end:
                x = stretch.at(moment)
                if not found or x - found[-1].x >= _TICK_ROOM * 0.7:
                    found.append(Tick(x, self._label(moment)))
                moment += self._step
        return found or [Tick(self.stretches[0].x, when.stamp(self.stretches[0].session.start))]

    def _label(self, moment: float) -> str:
        seconds = self._step < 60  # noqa: PLR2004 - a minute
        return when.stamp(moment)[11:] if seconds else when.clock(moment, dated=self._dated)


def _step(least: float) -> float:
    return float(next((step for step in _STEPS if step >= least), _STEPS[-1]))
