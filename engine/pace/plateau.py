"""Finds where a server that queues instead of refusing stops giving more for more in flight.

Latency per token that grows with the number in flight raises a suspicion; only an experiment
decides: lower the limit, and keep it low where throughput stays. So a host that is merely slow
today, or whose replies grow longer, costs one experiment and is never throttled for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

SPAN = 2048
"""Seconds of history: longer than any request may take."""
GROWN = 1.5
"""Latency per token at many in flight over that at few, from which queueing is suspected."""
APART = 2
"""... where the two lie at least this many half octaves apart in requests in flight."""
CELL_REPLIES = 30
CELL_KEEP = 400
STEP = 0.75
KEPT = 0.94
"""A lower limit is kept where throughput is at least this part of what it was before the search."""
STEADY = 1.5
"""After this many times the service time at one limit, throughput has settled."""
REPLIES = 400
"""Replies that an experiment waits for: throughput is then known to a few per cent."""
SHORT = 3.0
LONG = 6.0
CLEAR = 0.1
"""An outcome further from `KEPT` than chance goes is read after `SHORT` service times, others
after `LONG`: throughput is noisy while the replies in flight are many against those measured."""
SPARE = 1.15
"""What a lowered limit gets back in the end, so that no slot is left without work."""
RAISE = 1.25
CHECK_S = 5.0
RETRY_S = 600.0
RAISE_FIRST_S = 300.0
RAISE_LAST_S = 1800.0
TRIAL_MOST_S = 3600.0
FILLED = 0.85
UNFILLED = 20
"""Ticks with less than `FILLED` of the limit in flight after which an experiment says nothing."""


@dataclass(slots=True)
class _Cell:
    """Replies that were started with about the same number in flight."""

    replies: float = 0.0
    latency: float = 0.0
    tokens: float = 0.0

    def add(self, latency: float, tokens: float) -> None:
        self.replies += 1
        self.latency += latency
        self.tokens += tokens
        if self.replies >= CELL_KEEP:  # so that the last few hundred replies weigh most
            self.replies /= 2
            self.latency /= 2
            self.tokens /= 2

    @property
    def per_token(self) -> float:
        return self.latency / self.tokens

    @property
    def per_reply(self) -> float:
        return self.latency / self.replies


@dataclass(slots=True)
class _Trial:
    """One experiment: another limit, and whether throughput follows it."""

    begun: float
    start: float
    """The limit before."""
    goal: float
    before: float
    """Tokens per second at `start`."""
    measure_from: float = math.inf
    replies: int = 0
    unfilled: float = 0.0


@dataclass(slots=True)
class _History:
    """Per second: replies and tokens that arrived, and the half octave of what was in flight."""

    origin: float
    second: int = 0
    replies: list[int] = field(default_factory=lambda: [0] * SPAN)
    tokens: list[float] = field(default_factory=lambda: [0.0] * SPAN)
    octave: list[int] = field(default_factory=lambda: [0] * SPAN)

    def advance(self, now: float, in_flight: int) -> None:
        octave = int(2.0 * math.log2(in_flight)) if in_flight > 1 else 0
        for second in range(self.second + 1, int(now - self.origin) + 1):
            self.tokens[second % SPAN] = 0.0
            self.replies[second % SPAN] = 0
            self.octave[second % SPAN] = octave
        self.second = max(self.second, int(now - self.origin))
        self.octave[self.second % SPAN] = octave

    def per_second(self, start: float, end: float) -> float:
        """Tokens per second of the whole seconds between two times."""
        seconds = self._between(start, end)
        return sum(self.tokens[at % SPAN] for at in seconds) / max(1, len(seconds))

    def count(self, start: float, end: float) -> int:
        """Replies in the whole seconds between two times."""
        return sum(self.replies[at % SPAN] for at in self._between(start, end))

    def _between(self, start: float, end: float) -> range:
        first = max(int(start - self.origin) + 1, self.second - SPAN + 1)
        return range(first, max(first, int(end - self.origin)))


class Plateau:
    """The limit above which throughput no longer grows; times in monotonic seconds."""

    def __init__(self, now: float) -> None:
        self.cap: float | None = None
        """Nothing is gained above this; None while no such limit is known."""
        self._history = _History(now)
        self._cells: dict[int, _Cell] = {}
        self._service = 0.0
        """Seconds that a reply takes where nothing queues, as far as is known."""
        self._trial: _Trial | None = None
        self._limit = 0
        self._stable_since = now
        self._check_at = now
        self._quiet_until = now
        self._proven: float | None = None
        """The lowest cap that an experiment has shown to cost no throughput."""
        self._retry_s = RETRY_S
        self._raise_at = math.inf
        self._raise_every = RAISE_FIRST_S

    @property
    def reason(self) -> str:
        """What the cap stands on, in words."""
        if self._trial is None:
            return "throughput no longer grows"
        lower = self._trial.goal < self._trial.start
        return "latency grows: trying fewer" if lower else "trying whether throughput grows again"

    def succeeded(self, now: float, latency_s: float, tokens: int) -> None:
        """A reply arrived; one without a token count weighs as one token."""
        history = self._history
        second = min(int(now - history.origin), history.second)
        weight = float(tokens) if tokens > 0 else 1.0
        history.tokens[second % SPAN] += weight
        history.replies[second % SPAN] += 1
        started = max(0, int(now - latency_s - history.origin))
        if second - started < SPAN:
            octave = history.octave[started % SPAN]
            cell = self._cells.get(octave)
            if cell is None:
                cell = self._cells[octave] = _Cell()
            cell.add(latency_s, weight)
        if self._trial is not None and now >= self._trial.measure_from:
            self._trial.replies += 1

    def disturbed(self, now: float) -> None:
        """Refusals moved the limit: no experiment can be read now."""
        self._quiet_until = now + 60.0
        self._trial = None
        self.cap = self._proven

    def tick(self, now: float, in_flight: int, limit: int, ceiling: int, *, steady: bool) -> None:
        """Let time pass; `steady` where no burst of refusals is being dealt with."""
        self._history.advance(now, in_flight)
        if abs(limit - self._limit) > 0.05 * self._limit:
            self._limit = limit
            self._stable_since = now
        filled = in_flight >= FILLED * limit
        if self._trial is not None:
            self._follow(now, in_flight, self._trial, filled=filled)
        elif steady and filled and now >= max(self._check_at, self._quiet_until):
            self._check_at = now + CHECK_S
            self._consider(now, in_flight, limit, ceiling)

    def _consider(self, now: float, in_flight: int, limit: int, ceiling: int) -> None:
        slots = self._slots()
        since = self._stable_since + STEADY * self._service
        if now - since < LONG * self._service or self._history.count(since, now) < REPLIES:
            return
        if self.cap is not None and now >= self._raise_at and self.cap <= limit < ceiling:
            self._begin(now, float(limit), min(ceiling, math.ceil(RAISE * limit)), since)
        elif slots is not None and in_flight > GROWN * slots:
            goal = 2.0 * slots if in_flight > 2.5 * slots else STEP * limit
            self._begin(now, float(limit), goal, since)

    def _slots(self) -> float | None:
        """How many the server seems to work on at once; None without a sign of queueing."""
        known = {at: cell for at, cell in self._cells.items() if cell.replies >= CELL_REPLIES}
        most = max(known, default=0)
        fewer = [at for at in known if at <= most - APART]
        if not fewer:
            return None
        least = min(fewer, key=lambda at: known[at].per_token)
        self._service = known[least].per_reply
        # both: per token, or longer replies would look like a queue; per reply, or the short
        # replies of a cell, which come back first, would make the wait look longer than it is
        ratio = min(
            known[most].per_token / known[least].per_token,
            known[most].per_reply / known[least].per_reply,
        )
        return 2.0 ** ((most + 0.5) / 2.0) / ratio if ratio >= GROWN else None

    def _begin(self, now: float, start: float, goal: float, since: float) -> None:
        self._try(now, start, goal, self._history.per_second(since, now))

    def _try(self, now: float, start: float, goal: float, before: float) -> None:
        goal = max(1.0, float(int(goal)))
        if goal != start:
            self._trial = _Trial(now, start, goal, before)
            self.cap = goal

    def _follow(self, now: float, in_flight: int, trial: _Trial, *, filled: bool) -> None:
        if math.isinf(trial.measure_from):
            reached = in_flight <= trial.goal * 1.02 if trial.goal < trial.start else filled
            if reached:
                trial.measure_from = now + max(1.5 * self._service, 2.0)
        elif not filled:
            trial.unfilled += 1
        if trial.unfilled > UNFILLED or now - trial.measure_from > TRIAL_MOST_S:
            self._restore(now)
        elif trial.replies >= REPLIES:
            self._measure(now, trial)

    def _measure(self, now: float, trial: _Trial) -> None:
        """End the experiment once its outcome is clear, after `LONG` service times at most."""
        elapsed = now - trial.measure_from
        if elapsed < max(SHORT * self._service, CHECK_S):
            return
        after = self._history.per_second(trial.measure_from, now)
        ratio = after / max(trial.before, 1e-9)
        if elapsed < LONG * self._service and KEPT - CLEAR <= ratio <= KEPT + CLEAR / 2.0:
            return
        self._trial = None
        if trial.goal < trial.start:
            self._lowered(now, trial, after)
        else:
            self._raised(now, trial, after)

    def _lowered(self, now: float, trial: _Trial, after: float) -> None:
        self._raise_at = now + self._raise_every
        if after >= KEPT * trial.before:
            self._proven = self.cap = trial.goal
            # set against the first figure, or many small losses would add up to a large one
            self._try(now, trial.goal, STEP * trial.goal, trial.before)
            return
        self._cells.clear()  # what latency was at few in flight explains nothing: forget it
        if self._proven is not None:
            # the search steps down until it costs something: return to the safe side of the knee
            self._proven = float(int(min(SPARE * self._proven + 1.0, self._proven / STEP)))
        self._restore(now)

    def _raised(self, now: float, trial: _Trial, after: float) -> None:
        if after >= trial.before * (1.0 + trial.goal / trial.start) / 2.0:
            self._proven = self.cap = trial.goal
            self._raise_every = RAISE_FIRST_S
            self._try(now, trial.goal, math.ceil(RAISE * trial.goal), after)
            return
        self._raise_every = min(2.0 * self._raise_every, RAISE_LAST_S)
        self._raise_at = now + self._raise_every
        self._restore(now)

    def _restore(self, now: float) -> None:
        """Take the experiment back."""
        self._trial = None
        self.cap = self._proven
        if self.cap is None:
            self._quiet_until = now + self._retry_s
            self._retry_s *= 2.0
