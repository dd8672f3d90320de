"""What is remembered of the failed attempts of one dataset: counts, bursts and their prompts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

Fate = Literal["healed", "given_up", "waiting"]
"""What has become of a prompt that was hit."""


class Bins:
    """Counts per time bin, for the last `bins * width_s` seconds; memory is constant."""

    __slots__ = ("_bins", "_counts", "_newest", "_width")

    def __init__(self, width_s: float, bins: int) -> None:
        self._width = width_s
        self._bins = bins
        self._counts = [0] * bins
        self._newest = -1

    def add(self, at: float) -> None:
        """Count one event at `at` (epoch seconds); one older than the ring is dropped."""
        here = int(at / self._width)
        if here > self._newest:
            self._advance(here)
        elif here <= self._newest - self._bins:
            return
        self._counts[here % self._bins] += 1

    def between(self, start: float, end: float) -> int:
        """Events in the bins that begin after `start` and not after `end`."""
        first = max(math.floor(start / self._width) + 1, self._newest - self._bins + 1)
        last = min(math.floor(end / self._width), self._newest)
        return sum(self._counts[here % self._bins] for here in range(first, last + 1))

    def reaches_back_to(self, at: float) -> bool:
        """Whether everything since `at` is still in the ring."""
        return int(at / self._width) > self._newest - self._bins

    def _advance(self, here: int) -> None:
        missing = min(here - self._newest, self._bins)
        for step in range(missing):
            self._counts[(here - step) % self._bins] = 0
        self._newest = here


@dataclass(slots=True)
class Mark:
    """The dataset's counters at one moment."""

    ok: int = 0
    failed: int = 0
    provider_ok: int = 0
    provider_failed: int = 0

    @property
    def attempts(self) -> int:
        """Attempts that had ended."""
        return self.ok + self.failed


@dataclass(slots=True, eq=False)
class Burst:
    """Failures of one track with no real quiet among them."""

    first_at: float
    last_at: float
    before: Mark
    """Counters just before the first failure."""
    last: Mark
    """Counters just after the last failure."""
    healed_before: int
    given_up_before: int
    count: int = 0
    earlier: bool = False
    """It is of earlier sessions: nothing of this one is in it."""

    @property
    def share(self) -> float:
        """Failures of this track per attempt while the burst went on."""
        return min(1.0, self.count / max(1, self.last.attempts - self.before.attempts))


@dataclass(slots=True, eq=False)
class Track:
    """One error family of one provider in one dataset."""

    family: str
    provider: str | None
    scope: str
    retry: bool
    first_at: float
    burst: Burst
    dead_since: float
    dead_mark: Mark
    """From here on the provider has answered next to nothing."""
    dead_count: int = 0
    past: list[Burst] = field(default_factory=list)
    """Earlier bursts, the latest few; `bursts` counts them all."""
    bursts: int = 1
    count: int = 0
    prompts: int = 0
    """Prompts hit; one that succeeds and is hit again counts twice."""
    healed: int = 0
    given_up: int = 0
    untracked: bool = False
    """More prompts were waiting than are remembered: the counts of prompts are lower bounds."""
    recent: Bins = field(default_factory=lambda: Bins(5.0, 128))

    @property
    def waiting(self) -> int:
        """Prompts hit that have neither succeeded nor been given up."""
        return self.prompts - self.healed - self.given_up

    @property
    def refused(self) -> int:
        """Prompts hit that have not succeeded."""
        return self.prompts - self.healed

    @property
    def last_at(self) -> float:
        """The latest failure."""
        return self.burst.last_at

    @property
    def healed_now(self) -> int:
        """Prompts that succeeded since the current burst began."""
        return self.healed - self.burst.healed_before

    @property
    def given_up_now(self) -> int:
        """Prompts given up since the current burst began."""
        return self.given_up - self.burst.given_up_before


@dataclass(slots=True)
class Served:
    """Attempts of one provider."""

    ok: int = 0
    failed: int = 0
    last_ok_at: float = -math.inf


@dataclass(slots=True)
class EarlierFaults:
    """One error family of one provider, over all earlier sessions; times in epoch seconds."""

    family: str
    provider: str | None
    scope: str
    retry: bool
    first_at: float
    last_at: float
    count: int = 0
    fates: dict[str, Fate] = field(default_factory=dict)
    """What has become of the prompts that were hit, by key."""
    untracked: bool = False
    """More prompts were hit than are told apart."""
    served_within: int = 0
    """Rows that ended between the first and the last failure."""
    served_after: int = 0
    """Rows whose requests started after the last one."""

    def track(self, provider: str | None, ok: int, failed: int) -> Track:
        """The track that goes on from here; `ok` and `failed` are of all earlier sessions."""
        until = ok - self.served_after
        before = Mark(until - self.served_within, failed - self.count)
        burst = Burst(self.first_at, self.last_at, before, Mark(until, failed), 0, 0, self.count)
        burst.earlier = True
        fates = list(self.fates.values())
        return Track(
            *(self.family, provider, self.scope, self.retry, self.first_at, burst),
            *(self.last_at, Mark(ok, failed)),
            count=self.count,
            prompts=len(fates),
            healed=fates.count("healed"),
            given_up=fates.count("given_up"),
            untracked=self.untracked,
        )
