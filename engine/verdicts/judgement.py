"""The rules of the error verdict (DESIGN §8): still arriving, over, or a fault that stays.

Silence is weighed by attempts as well as by time: a burst in which a share p of all attempts
failed is over when as many have succeeded since as would, at p, have had a failure among them
with 99% certainty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from engine.verdicts.burst import Burst, Mark, Served, Track
from engine.view.snapshot import Verdict

QUIET_S = 30.0
"""No verdict RESOLVED before this long without a failure, ..."""
QUIET_ATTEMPTS = 20
"""... nor before this many successes, ..."""
CERTAINTY = 0.01
"""... nor while silence would still be this likely at the burst's own rate."""
UNPROVEN_S = 600.0
"""A burst none of whose prompts has succeeded since is over after this long all the same."""
WINDOW_S = 60.0
"""The recent window: failures per 100 attempts, and against the window before: the trend."""
WIDE_WINDOW_S = 300.0
WINDOW_ATTEMPTS = 20
"""With fewer attempts in the recent window the wide one is used."""
TREND_Z = 2.0
"""Rising or falling: a difference that chance makes in 1 of 20 cases at most."""
ALL_ATTEMPTS = 20
ALL_GIVEN_UP = 3
STRUCTURAL_S = 300.0
"""Nothing gets through: this many failures and no success, with prompts given up or this long."""
DEAD_ATTEMPTS = 30
DEAD_OK = 0.05
DEAD_STALE_S = 1800.0
"""A dead provider: so many failures over `STRUCTURAL_S`, at most this share of successes."""
REFUSED_ALL = 0.9
"""Share of the prompts tried whose refusal is a matter of the dataset, not of single prompts."""
ALIKE = 0.5
"""Share of the failures that must be of this family, to say that they fail alike."""
SAME_GIVEN_UP = 0.8
SAME_OTHERS = 20
"""The same prompts fail: this share of those decided was given up, while so many succeeded, or to
the last one until the dataset had ended."""

Kind = Literal["run", "all", "provider", "refused", "prompts", "same", "resolved", "active"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What the judge knows beside the track itself."""

    now: float
    mark: Mark
    """The counters now."""
    quiet_ok: int
    """Successes of attempts started after the track's last failure."""
    served: Served
    finished: bool
    """The dataset has ended: no further attempt will come."""

    def quiet_s(self, track: Track) -> float:
        """Seconds without a failure of the track."""
        return max(0.0, self.now - track.last_at)


def verdict_of(kind: Kind) -> Verdict:
    """The verdict that a kind stands for."""
    if kind == "resolved":
        return "RESOLVED"
    return "ACTIVE" if kind == "active" else "STRUCTURAL"


def needed(burst: Burst) -> int:
    """Successes in a row after which a burst's silence is no chance."""
    share = min(0.99, burst.share)
    if share <= 0.0:
        return QUIET_ATTEMPTS
    return max(QUIET_ATTEMPTS, math.ceil(math.log(CERTAINTY) / math.log1p(-share)))


def judge(track: Track, facts: Facts) -> Kind:
    """The first rule that holds."""
    if track.scope == "run" and facts.quiet_ok == 0:
        return "run"
    if track.scope == "prompt" and not track.retry and track.refused > 0:
        return _refused(track, facts)
    if _nothing_gets_through(track, facts):
        return "all"
    if _provider_is_dead(track, facts):
        return "provider"
    if _same_prompts(track, facts):
        return "same"
    return "resolved" if is_over(track, facts) else "active"


def is_over(track: Track, facts: Facts) -> bool:
    """Whether the current burst has ended, by time, attempts and its own prompts."""
    if facts.finished and track.waiting == 0:
        return True
    quiet_s = facts.quiet_s(track)
    if quiet_s < QUIET_S or facts.quiet_ok < needed(track.burst):
        return False
    return track.healed_now > 0 or track.waiting == 0 or quiet_s >= UNPROVEN_S


def belongs(burst: Burst, mark: Mark, quiet_ok: int) -> bool:
    """Whether a failure after a quiet spell is the same slow leak rather than a new burst."""
    longer = Burst(0.0, 0.0, burst.before, mark, 0, 0, burst.count + 1)
    return quiet_ok < needed(longer)


def trend(failed: int, attempts: int, failed_before: int, attempts_before: int) -> str:
    """`rising`, `falling` or `steady`, by the share of attempts; empty where it cannot be told."""
    if attempts < WINDOW_ATTEMPTS or attempts_before < WINDOW_ATTEMPTS:
        return ""
    pooled = (failed + failed_before) / (attempts + attempts_before)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / attempts + 1 / attempts_before))
    if spread == 0.0:
        return "steady"
    z = (failed / attempts - failed_before / attempts_before) / spread
    return "rising" if z >= TREND_Z else "falling" if z <= -TREND_Z else "steady"


def _refused(track: Track, facts: Facts) -> Kind:
    everything = track.refused >= REFUSED_ALL * (track.refused + facts.mark.ok)
    return "refused" if everything and track.refused >= ALL_ATTEMPTS else "prompts"


def _nothing_gets_through(track: Track, facts: Facts) -> bool:
    burst = track.burst
    if facts.mark.ok > burst.before.ok or burst.count < ALL_ATTEMPTS:
        return False
    alike = burst.count >= ALIKE * (facts.mark.failed - burst.before.failed)
    no_help = track.given_up_now >= ALL_GIVEN_UP and track.healed_now == 0
    return alike and (no_help or burst.last_at - burst.first_at >= STRUCTURAL_S)


def _provider_is_dead(track: Track, facts: Facts) -> bool:
    if track.provider is None or facts.quiet_s(track) > DEAD_STALE_S:
        return False
    failed = facts.served.failed - track.dead_mark.provider_failed
    ok = facts.served.ok - track.dead_mark.provider_ok
    long = track.last_at - track.dead_since >= STRUCTURAL_S
    alike = track.dead_count >= ALIKE * failed
    return long and alike and failed >= DEAD_ATTEMPTS and ok <= DEAD_OK * (failed + ok)


def _same_prompts(track: Track, facts: Facts) -> bool:
    given_up, decided = track.given_up_now, track.given_up_now + track.healed_now
    if given_up == 0 or given_up < SAME_GIVEN_UP * decided or track.waiting > given_up:
        return False
    if facts.finished and track.healed_now == 0:
        return True  # nothing will come any more that could have resolved it
    return facts.mark.ok - track.burst.before.ok >= SAME_OTHERS
