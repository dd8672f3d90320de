"""Plays a tape: a RunHandle and a Clock whose time of day is the playhead's.

Time that no session covers is not played: the next session follows at once, and the journal names
the gap. Nothing can be steered: what is shown has happened.
"""

from __future__ import annotations

from bisect import bisect_right
from concurrent.futures import Future
from dataclasses import replace
from itertools import accumulate
from operator import attrgetter

from engine.clock import Clock
from engine.commands import Command
from engine.errors import UsageError
from engine.journal import KEPT
from engine.past.tape import Session, Tape, spells, with_end
from engine.past.tracks import Axis, DatasetTracks, families
from engine.view.happenings import MARKS_KEPT, SPELLS_KEPT
from engine.view.series import FAMILIES_KEPT, OTHER
from engine.view.snapshot import (
    DatasetView,
    EventSeries,
    FamilySeries,
    Snapshot,
    Spell,
)

FAILURES_SHOWN = 20
SPEEDS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1800.0)


class Player:
    """One viewer's playhead. `clock` gives the real time that passes while it plays."""

    def __init__(self, tape: Tape, clock: Clock, *, speed: float, mark: str = "") -> None:
        """`speed` is recorded seconds per second; `mark` stands before the run's name."""
        self._tape = tape
        self._clock = clock
        self._mark = mark
        self._speed = speed
        self._base = 0.0
        """Played seconds at `_since`."""
        self._since: float | None = clock.monotonic()
        self._starts = _starts(tape.sessions)
        self._shown: tuple[tuple[int, int, int], Snapshot] | None = None

    # as a RunHandle

    def snapshot(self) -> Snapshot:
        """The run at the playhead."""
        session, at = self._place()
        point = self._tape.sessions[session].index(at)
        entries = bisect_right(self._tape.journal, at, key=attrgetter("at"))
        key = (session, point, entries)
        if self._shown is None or self._shown[0] != key:
            self._shown = (key, self._picture(*key))
        shown = self._shown[1]
        beat = max(at, shown.started_at)
        return replace(shown, heartbeat_at=beat, elapsed_s=beat - shown.started_at)

    def send(self, command: Command) -> Future[str]:
        """Refuse: a past cannot be steered."""
        del command
        future: Future[str] = Future()
        future.set_exception(UsageError("this is a replay: nothing is sent"))
        return future

    @property
    def ended(self) -> bool:
        """Never: the screen stays, and the playhead may go back."""
        return False

    # as a Clock

    def monotonic(self) -> float:
        """Real seconds."""
        return self._clock.monotonic()

    def wall(self) -> float:
        """The recorded time of day at the playhead, epoch seconds."""
        return self._place()[1]

    # the playhead

    @property
    def length(self) -> float:
        """Seconds of the whole tape, gaps left out."""
        return self._starts[-1] + _length(self._tape.sessions[-1])

    @property
    def position(self) -> float:
        """Played seconds from the beginning."""
        now = self._clock.monotonic()
        played = 0.0 if self._since is None else (now - self._since) * self._speed
        return min(self.length, self._base + played)

    @property
    def session(self) -> int:
        """The number of the session that is played, from 1."""
        return self._place()[0] + 1

    @property
    def paused(self) -> bool:
        """Whether the playhead stands by order."""
        return self._since is None

    @property
    def at_end(self) -> bool:
        """Whether all has been played."""
        return self.position >= self.length

    @property
    def speed(self) -> float:
        """Recorded seconds per second."""
        return self._speed

    def pause(self) -> None:
        """Stand, or go on; at the end begin anew."""
        if self.at_end:
            self._base, self._since = 0.0, self._clock.monotonic()
        elif self._since is None:
            self._since = self._clock.monotonic()
        else:
            self._base, self._since = self.position, None

    def faster(self, steps: int) -> None:
        """The next speed up (1) or down (-1)."""
        self._settle()
        slower = [speed for speed in SPEEDS if speed < self._speed]
        above = [speed for speed in SPEEDS if speed > self._speed]
        choice = above[:1] if steps > 0 else slower[-1:]
        self._speed = choice[0] if choice else self._speed

    def jump(self, seconds: float) -> None:
        """Move the playhead by recorded seconds."""
        self.move(self.position + seconds)

    def move(self, position: float) -> None:
        """Put the playhead to a place, seconds from the beginning."""
        self._settle()
        self._base = max(0.0, min(position, self.length))

    def _settle(self) -> None:
        self._base = self.position
        if self._since is not None:
            self._since = self._clock.monotonic()

    def _place(self) -> tuple[int, float]:
        """The session at the playhead, and the recorded time."""
        position = self.position
        session = bisect_right(self._starts, position) - 1
        return session, self._tape.sessions[session].start + position - self._starts[session]

    # the picture

    def _picture(self, number: int, point: int, entries: int) -> Snapshot:
        tape, session = self._tape, self._tape.sessions[number]
        base = session.snapshot(point)
        if number == len(tape.sessions) - 1 and point == len(session) - 1:
            base = with_end(base, live=tape.live)
        tracks = session.tracks
        axis = Axis(tracks, point)
        columns = [tracks.datasets[view.name] for view in base.datasets]
        marks = [m for m in tape.marks if session.start <= m.at <= tracks.at[point]]
        return replace(
            base,
            run=self._mark + base.run,
            output=str(tape.folder),
            datasets=tuple(self._view(session, point, view) for view in base.datasets),
            journal=tuple(tape.journal[max(0, entries - KEPT) : entries]),
            journal_total=entries,
            rate=axis.rates([c.rows for c in columns], tracks.held),
            tokens_rate=axis.rates([c.tokens for c in columns], tracks.held),
            errors_rate=axis.rates([c.attempt_errors for c in columns], tracks.held),
            limit_series=axis.levels(tracks.limit),
            errors_by_family=_by_family(axis, columns),
            events=EventSeries(tuple(marks[-MARKS_KEPT:]), self._spells(session, point, None)),
        )

    def _view(self, session: Session, point: int, view: DatasetView) -> DatasetView:
        tracks = session.tracks
        axis, column = Axis(tracks, point), tracks.datasets[view.name]
        failures = self._tape.failures.get(view.name, [])
        known = bisect_right(failures, tracks.at[point], key=attrgetter("at"))
        return replace(
            view,
            rate=axis.rates([column.rows], column.held),
            errors_by_family=_by_family(axis, [column]),
            events=EventSeries((), self._spells(session, point, view.name)),
            last_failures=tuple(reversed(failures[max(0, known - FAILURES_SHOWN) : known])),
        )

    def _spells(self, session: Session, point: int, name: str | None) -> tuple[Spell, ...]:
        return held_spells(self._tape, session, name, session.tracks.at[point])[-SPELLS_KEPT:]


def held_spells(tape: Tape, session: Session, name: str | None, now: float) -> tuple[Spell, ...]:
    """The spells of a dataset (None: the run) in one session up to now, the oldest first."""
    return spells(tape.states.get(name, []), session.start, now, until=session.end)


def _by_family(axis: Axis, columns: list[DatasetTracks]) -> tuple[FamilySeries, ...]:
    found = list(families(columns).items())
    kept, rest = found[:FAMILIES_KEPT], found[FAMILIES_KEPT:]
    if rest:
        kept.append((OTHER, [counter for _, counters in rest for counter in counters]))
    series = [FamilySeries(family, axis.counts(counters)) for family, counters in kept]
    return tuple(each for each in series if any(each.counts.values))


def speed_words(speed: float) -> str:
    """`x10`, `x0.5`."""
    return f"x{speed:,g}"


def _length(session: Session) -> float:
    return session.end - session.start


def _starts(sessions: list[Session]) -> list[float]:
    """Where each session begins on the tape, in played seconds."""
    return [0.0, *accumulate(map(_length, sessions[:-1]))]
