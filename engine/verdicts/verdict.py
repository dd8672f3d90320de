"""The error verdict of one dataset: folds attempts, says ACTIVE, RESOLVED or STRUCTURAL and why.

Thresholds are the constants of `engine.verdicts.judgement`; times are epoch seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, cast

from engine.clock import local_hms
from engine.faults.families import FAMILIES
from engine.verdicts.burst import Bins, Burst, EarlierFaults, Mark, Served, Track
from engine.verdicts.evidence import ACTIONS, Recent, Wording
from engine.verdicts.judgement import (
    DEAD_OK,
    QUIET_S,
    WIDE_WINDOW_S,
    WINDOW_ATTEMPTS,
    WINDOW_S,
    Facts,
    Kind,
    belongs,
    is_over,
    judge,
    trend,
    verdict_of,
)
from engine.view.snapshot import AttemptRate, ErrorLine, Verdict

MOST_WAITING = 65_536
"""Prompts remembered as hit and not yet successful; beyond, evidence says `at least`."""
MOST_TRACKS = 256
"""Pairs of family and provider; beyond, providers are counted together as `others`."""
MOST_PAST = 4
RATE_S = 300.0
_SEVERITY: dict[Kind, int] = {
    "run": 0,
    "all": 1,
    "refused": 2,
    "provider": 3,
    "active": 4,
    "same": 5,
    "prompts": 6,
    "resolved": 7,
}
"""Worst first: what stops work, what still arrives, what concerns single prompts, what is over."""

Prompt = str | int


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """A verdict that is not what it was; `str()` is its line in the journal."""

    at: float
    family: str
    provider: str | None
    old: Verdict | None
    new: Verdict
    evidence: str

    def __str__(self) -> str:
        source = f" from {self.provider}" if self.provider else ""
        was = f", was {self.old}" if self.old else ""
        return f"{self.family}{source} is {self.new}{was}: {self.evidence}"


class VerdictBook:
    """All attempts of one dataset; constant memory."""

    def __init__(
        self,
        clock_text: Callable[[float], str] = local_hms,
        actions: Mapping[str, str] | None = None,
    ) -> None:
        self.ok = 0
        self.failed = 0
        self._wording = Wording(clock_text)
        self._actions = actions if actions is not None else _family_actions()
        self._ended = Bins(5.0, 128)
        self._bad = Bins(5.0, 128)
        self._ok_started = Bins(5.0, 512)
        self._tracks: dict[tuple[str, str | None], Track] = {}
        self._served: dict[str | None, Served] = {}
        self._waiting: dict[Prompt, tuple[Track, ...]] = {}
        self._verdicts: dict[tuple[str, str | None], Verdict] = {}
        self._changes: list[VerdictChange] = []
        self._finished = False

    def restore(self, found: list[EarlierFaults], *, rows: int) -> None:
        """Begin with what earlier sessions left on disk: their rows and their failed attempts."""
        self.ok = rows
        self.failed = sum(faults.count for faults in found)
        for faults in sorted(found, key=lambda one: -one.count):
            provider = self._known(faults.family, faults.provider)
            self._serve(provider).failed += faults.count
            if (faults.family, provider) in self._tracks:
                continue  # it is one of the `others`
            track = faults.track(provider, self.ok, self.failed)
            self._tracks[faults.family, provider] = track
            for prompt, fate in faults.fates.items():
                if fate == "waiting":
                    self._waiting[prompt] = (*self._waiting.get(prompt, ()), track)

    # what happened

    def attempt_succeeded(
        self, at: float, prompt: Prompt, provider: str | None, *, started_at: float | None = None
    ) -> None:
        """An attempt became a row.

        `started_at` keeps replies that were on their way before a burst from counting as evidence
        that it is over; without it the attempt counts as started when it ended.
        """
        self.ok += 1
        self._ended.add(at)
        self._ok_started.add(at if started_at is None else started_at)
        served = self._served.get(provider)
        if served is None:
            served = self._serve(provider)
        served.ok += 1
        served.last_ok_at = at
        if self._waiting:
            tracks = self._waiting.pop(prompt, None)
            if tracks is not None:
                for track in tracks:
                    track.healed += 1

    def attempt_failed(
        self,
        at: float,
        family: str,
        provider: str | None,
        prompt: Prompt,
        *,
        scope: str,
        retry: bool,
    ) -> None:
        """An attempt ended without a row, by a fault that counts (not by our own cancelling)."""
        provider = self._known(family, provider)
        served = self._served.get(provider) or self._serve(provider)
        before = self._mark(served)
        self._ended.add(at)
        self._bad.add(at)
        self.failed += 1
        served.failed += 1
        track = self._tracks.get((family, provider))
        if track is None:
            track = self._begin(at, family, provider, before)
        elif at - track.last_at >= QUIET_S or track.burst.earlier:
            self._after_quiet(track, at, before)
        track.scope, track.retry = scope, retry
        track.count += 1
        track.recent.add(at)
        burst = track.burst
        burst.count += 1
        burst.last_at = max(at, burst.last_at)
        burst.last = self._mark(served)
        self._note_dead(track, at, burst.last)
        self._remember(prompt, track)

    def prompt_failed(self, at: float, prompt: Prompt, family: str) -> None:
        """A prompt was given up, `family` being its last failure."""
        del at, family
        for track in self._waiting.pop(prompt, ()):
            track.given_up += 1

    def finish(self) -> None:
        """The dataset has ended: no further attempt can prove or disprove anything."""
        self._finished = True

    def resume(self) -> None:
        """The dataset goes on after all (unskip, retry of failed prompts)."""
        self._finished = False

    # what it means

    def lines(self, now: float) -> tuple[ErrorLine, ...]:
        """Every family with its verdict, worst first; also notes what has changed."""
        judged = [(track, *self._judge(track, now)) for track in self._tracks.values()]
        judged.sort(key=lambda item: (_SEVERITY[item[1]], -item[2].recent, -item[2].count))
        for track, _, line in judged:
            self._compare(track, line, now)
        return tuple(line for _, _, line in judged)

    def changes(self) -> list[VerdictChange]:
        """What `lines` has found changed since last asked."""
        changes, self._changes = self._changes, []
        return changes

    def rate(self, now: float) -> AttemptRate:
        """Failed attempts of all that ended, recently and over all."""
        return AttemptRate(
            recent_failed=self._bad.between(now - RATE_S, now),
            recent_total=self._ended.between(now - RATE_S, now),
            recent_s=RATE_S,
            failed=self.failed,
            total=self.ok + self.failed,
        )

    def _judge(self, track: Track, now: float) -> tuple[Kind, ErrorLine]:
        facts = self._facts(track, now)
        kind = judge(track, facts)
        recent = self._recent(track, now)
        action = self._actions.get(track.family, "") if kind != "resolved" else ""
        line = ErrorLine(
            family=track.family,
            provider=track.provider,
            count=track.count,
            verdict=verdict_of(kind),
            first_at=track.first_at,
            last_at=track.last_at,
            evidence=self._wording.sentence(kind, track, facts, recent),
            recent=track.recent.between(now - WINDOW_S, now),
            trend=cast('Literal["rising", "falling", "steady", ""]', recent.trend)
            if kind != "resolved"
            else "",
            action=action or ACTIONS[kind],
        )
        return kind, line

    def _recent(self, track: Track, now: float) -> Recent:
        attempts = self._ended.between(now - WINDOW_S, now)
        failed = track.recent.between(now - WINDOW_S, now)
        if attempts < WINDOW_ATTEMPTS:
            attempts = self._ended.between(now - WIDE_WINDOW_S, now)
            failed = track.recent.between(now - WIDE_WINDOW_S, now)
            return Recent(failed, attempts, WIDE_WINDOW_S, "")
        earlier = now - WINDOW_S
        direction = trend(
            failed,
            attempts,
            track.recent.between(earlier - WINDOW_S, earlier),
            self._ended.between(earlier - WINDOW_S, earlier),
        )
        return Recent(failed, attempts, WINDOW_S, direction)

    def _compare(self, track: Track, line: ErrorLine, now: float) -> None:
        key = (track.family, track.provider)
        old = self._verdicts.get(key)
        if line.verdict is not None and line.verdict != old:
            self._verdicts[key] = line.verdict
            self._changes.append(
                VerdictChange(now, track.family, track.provider, old, line.verdict, line.evidence)
            )

    def _facts(self, track: Track, now: float) -> Facts:
        served = self._serve(track.provider)
        return Facts(now, self._mark(served), self._quiet_ok(track, now), served, self._finished)

    def _quiet_ok(self, track: Track, now: float) -> int:
        """Successes of attempts that were started after the track's last failure."""
        ended = self.ok - track.burst.last.ok
        if track.burst.earlier:
            return ended  # a session starts with nothing on its way
        if not self._ok_started.reaches_back_to(track.last_at):
            return ended  # whatever was on its way then has long ended
        return min(ended, self._ok_started.between(track.last_at, now))

    def _mark(self, served: Served) -> Mark:
        return Mark(self.ok, self.failed, served.ok, served.failed)

    # bookkeeping

    def _begin(self, at: float, family: str, provider: str | None, before: Mark) -> Track:
        burst = Burst(at, at, before, before, 0, 0)
        track = Track(family, provider, "", True, at, burst, at, before)
        self._tracks[family, provider] = track
        return track

    def _after_quiet(self, track: Track, at: float, before: Mark) -> None:
        """A failure after a quiet spell: another burst, unless it is one slow leak."""
        facts = self._facts(track, at)
        if not track.burst.earlier and (
            not is_over(track, facts) or belongs(track.burst, facts.mark, facts.quiet_ok)
        ):
            return
        track.past = [*track.past[-(MOST_PAST - 1) :], track.burst]
        track.bursts += 1
        track.burst = Burst(at, at, before, before, track.healed, track.given_up)

    def _note_dead(self, track: Track, at: float, mark: Mark) -> None:
        """Begin anew wherever the provider has answered more than next to nothing."""
        ok = mark.provider_ok - track.dead_mark.provider_ok
        failed = mark.provider_failed - track.dead_mark.provider_failed
        if ok > DEAD_OK * (failed + ok) + 1:
            track.dead_since, track.dead_mark, track.dead_count = at, mark, 0
        else:
            track.dead_count += 1

    def _remember(self, prompt: Prompt, track: Track) -> None:
        tracks = self._waiting.get(prompt)
        if tracks is None:
            if len(self._waiting) >= MOST_WAITING:
                track.untracked = True
                return
            self._waiting[prompt] = (track,)
        elif track in tracks:
            return
        else:
            self._waiting[prompt] = (*tracks, track)
        track.prompts += 1

    def _known(self, family: str, provider: str | None) -> str | None:
        full = len(self._tracks) >= MOST_TRACKS and (family, provider) not in self._tracks
        return "others" if full else provider

    def _serve(self, provider: str | None) -> Served:
        if len(self._served) >= MOST_TRACKS and provider not in self._served:
            provider = "others"
        return self._served.setdefault(provider, Served())


def _family_actions() -> dict[str, str]:
    return {name: family.action for name, family in FAMILIES.items()}
