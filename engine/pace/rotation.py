"""What refusals say of one dataset or of one prompt, once the route has served others meanwhile.

As a rule a 429 says nothing of what was asked, and the run waits. Some do: a host refuses for ever
what is larger than its tokens a minute. Such a dataset is then only probed, and such a prompt is
given up when chance can no longer explain its refusals. Times are monotonic seconds.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

PATIENCE, PATIENCE_S = 5, 60.0
"""Refusals in a row, and for how long, until a dataset stands back for the next one."""
REST_FIRST_S, REST_LAST_S = 30.0, 600.0
"""Between two probes of a dataset that stands back; it doubles from one to the next."""
PATIENT = 2
"""Refusals in a row from which on a prompt lets the others go first."""
SUSPECT = 3
"""Refusals in a row from which on a prompt no longer speaks for the route."""
NEIGHBOURS = 20
"""A refusal is set against what has come of the attempts just before it: a quota that is used up
each minute refuses everything for a while, and nobody is to blame."""
LEAST_LIKELY = 0.05
"""No single refusal is taken as less likely: at the first one of a burst all before were served."""
CERTAINTY = 1e-6
"""A prompt is given up when its refusals would be as unlikely as this by chance."""


@dataclass(slots=True)
class Doubt:
    """How one prompt has been refused."""

    refusals: int = 0
    """In a row."""
    weight: float = 0.0
    """-ln of how likely they would be by chance."""
    served: int = 0
    outcomes: int = 0
    """How many attempts the route had served, and answered in all, at the last one."""
    alone: bool = False
    """Just before the last one more was served than refused."""

    @property
    def speaks_for_route(self) -> bool:
        """Whether the last refusal is news of the route rather than of the prompt."""
        return not self.alone or self.refusals < SUSPECT

    @property
    def certain(self) -> bool:
        """Whether it is the prompt that is refused."""
        return self.weight >= -math.log(CERTAINTY)


@dataclass(slots=True)
class _Row:
    """Refusals of one dataset, none of its requests having been served since the first."""

    since: float
    last_at: float
    count: int = 0
    rest_s: float = REST_FIRST_S
    probe_at: float = 0.0

    @property
    def long(self) -> bool:
        return self.count >= PATIENCE and self.last_at - self.since >= PATIENCE_S


class Rotation:
    """Counts what a route serves and refuses, by dataset."""

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}
        self._served = 0
        self._outcomes = 0
        self._latest: deque[bool] = deque(maxlen=NEIGHBOURS)
        """Which of the latest attempts were served."""

    def served(self, dataset: str) -> None:
        """An attempt became a reply."""
        self._served += 1
        self._see(served=True)
        self._rows.pop(dataset, None)

    def refused(self, dataset: str, doubt: Doubt, now: float) -> None:
        """An attempt was refused; `doubt` is its prompt's."""
        row = self._rows.setdefault(dataset, _Row(now, now))
        row.count += 1
        row.last_at = now
        if row.long and not row.probe_at:
            row.probe_at = now + row.rest_s
        self._weigh(doubt)

    def lets_others_go(self, doubt: Doubt) -> bool:
        """Whether another prompt should be asked first; while nothing is served all take turns."""
        nobody = doubt.served == self._served
        return doubt.refusals >= (1 if nobody else PATIENT)

    def rests(self, dataset: str) -> bool:
        """Whether nothing of this dataset has been served for long."""
        row = self._rows.get(dataset)
        return row is not None and row.long

    def due(self, dataset: str, now: float) -> bool:
        """Whether a dataset that rests may be probed."""
        row = self._rows.get(dataset)
        return row is None or now >= row.probe_at

    def probed(self, dataset: str, now: float) -> None:
        """A dataset that rests was asked: it is not asked again before its rest is over."""
        row = self._rows.get(dataset)
        if row is not None:
            row.probe_at = now + row.rest_s
            row.rest_s = min(2.0 * row.rest_s, REST_LAST_S)

    def turn(self, dataset: str) -> float:
        """Who has been refused longest ago comes first among those that rest."""
        row = self._rows.get(dataset)
        return row.last_at if row is not None and row.long else -math.inf

    def _weigh(self, doubt: Doubt) -> None:
        news = min(len(self._latest), self._outcomes - doubt.outcomes)
        others = list(self._latest)[len(self._latest) - news :] if doubt.refusals else []
        served = others.count(True)
        doubt.alone = 2 * served > len(others)
        if served:
            share = (len(others) - served + 1) / (len(others) + 2)
            doubt.weight -= math.log(max(LEAST_LIKELY, share))
        doubt.refusals += 1
        self._see(served=False)
        doubt.served, doubt.outcomes = self._served, self._outcomes

    def _see(self, *, served: bool) -> None:
        self._outcomes += 1
        self._latest.append(served)
