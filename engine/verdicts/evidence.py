"""The one sentence that says what a verdict stands on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engine.format import plural
from engine.verdicts.burst import Burst, Track
from engine.verdicts.judgement import QUIET_S, Facts, Kind, needed

SECONDS_BELOW_S = 120.0
"""A span shorter than this is told with seconds."""
HOURS_FROM_S = 7200.0

ACTIONS: dict[Kind, str] = {
    "run": "Mend what the server names, then run again: it goes on where it ended.",
    "all": "Stop or pause; check model, route and account before more is spent.",
    "provider": "Exclude this provider, or route around it.",
    "refused": "Skip this dataset and look at its source and the server's words.",
    "prompts": "Look at these prompts and the server's words in the failures list.",
    "same": "Look at these prompts in the failures list; the others are not affected.",
    "resolved": "",
    "active": "",
}
"""What to do where the family itself says nothing."""


@dataclass(frozen=True, slots=True)
class Recent:
    """Failures of a track among the attempts of the last window."""

    failed: int
    attempts: int
    seconds: float
    trend: str


def duration(seconds: float) -> str:
    """`45 s`, `4 min` or `3 h`."""
    if seconds < SECONDS_BELOW_S:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < HOURS_FROM_S else f"{seconds / 3600:.0f} h"


class Wording:
    """Words for one dataset's lines; `clock_text` gives `HH:MM:SS` for epoch seconds."""

    def __init__(self, clock_text: Callable[[float], str]) -> None:
        self._clock_text = clock_text

    def sentence(self, kind: Kind, track: Track, facts: Facts, recent: Recent) -> str:
        """The evidence for a verdict of this kind."""
        if kind == "active":
            return self._active(track, facts, recent)
        tell = {
            "run": self._run,
            "all": self._all,
            "provider": self._provider,
            "refused": self._refused,
            "prompts": self._prompts,
            "same": self._same,
            "resolved": self._resolved,
        }[kind]
        return tell(track, facts)

    def moment(self, at: float, *, seconds: bool = True) -> str:
        """A time of day, with or without its seconds."""
        text = self._clock_text(at)
        return text if seconds or text.count(":") < 2 else text.rpartition(":")[0]  # noqa: PLR2004 - HH:MM:SS has two colons

    def span(self, first: float, last: float) -> str:
        """`between 14:02 and 14:09`; with seconds where it is short; `at 14:02:10`."""
        short = last - first < SECONDS_BELOW_S
        begin, end = self.moment(first, seconds=short), self.moment(last, seconds=short)
        return f"at {begin}" if begin == end else f"between {begin} and {end}"

    def _resolved(self, track: Track, facts: Facts) -> str:
        ended = "; the dataset has ended" if facts.finished else ""
        untried = ""
        known = track.provider is not None and not track.burst.earlier
        if known and facts.served.last_ok_at <= track.last_at:
            untried = f"; {track.provider} itself has answered nothing since"
        quiet = duration(facts.quiet_s(track))
        return f"{self._history(track)}, none for {quiet}; {_fate(track)}{untried}{ended}"

    def _active(self, track: Track, facts: Facts, recent: Recent) -> str:
        if facts.quiet_s(track) >= QUIET_S or track.burst.earlier:
            quiet = duration(facts.quiet_s(track))
            return f"{self._history(track)}, none for {quiet}, but {_doubt(track, facts)}"
        since = self.moment(track.burst.first_at, seconds=self._is_short(track.burst))
        begin = f"{_what(track)} since {since}"
        if track.past:
            last = track.past[-1]
            quiet = duration(track.burst.first_at - last.last_at)
            earlier = track.count - track.burst.count
            begin = (
                f"{_what(track)}: returned after {quiet} of quiet: {earlier:,}{_whose(last)}, "
                f"then {track.burst.count:,} more since {since}"
            )
        per_100 = 100.0 * recent.failed / max(1, recent.attempts)
        rate = (
            f"{recent.failed:,} of {plural(recent.attempts, 'attempt')} in the last "
            f"{duration(recent.seconds)} ({_number(per_100)} in 100)"
        )
        direction = f", {recent.trend}" if recent.trend else ""
        return f"{begin}; {rate}{direction}{self._own_share(track, facts)}"

    def _run(self, track: Track, facts: Facts) -> str:
        del facts
        at = f"{self.moment(track.last_at)}{_whose(track.burst)}"
        return f"{_what(track)}, the last at {at}; none has succeeded since"

    def _all(self, track: Track, facts: Facts) -> str:
        burst = track.burst
        since = self.moment(burst.first_at, seconds=self._is_short(burst))
        attempts = facts.mark.attempts - burst.before.attempts
        least = "at least " if track.untracked else ""
        return (
            f"nothing gets through since {since}: all {plural(attempts, 'attempt')} failed, "
            f"{burst.count:,} with {track.family}, on {least}{plural(track.prompts, 'prompt')}"
            f"{_given_up(track)}{_whose(burst)}; no retry helped"
        )

    def _provider(self, track: Track, facts: Facts) -> str:
        failed = facts.served.failed - track.dead_mark.provider_failed
        total = failed + facts.served.ok - track.dead_mark.provider_ok
        since = self.moment(track.dead_since, seconds=False)
        return (
            f"{failed:,} of {track.provider}'s {plural(total, 'attempt')} since {since} failed, "
            f"{track.dead_count:,} with {track.family}; {_fate(track)}, elsewhere"
        )

    def _refused(self, track: Track, facts: Facts) -> str:
        tried = track.refused + facts.mark.ok
        least = "at least " if track.untracked else ""
        share = f"all {least}{tried:,}" if facts.mark.ok == 0 else f"{track.refused:,} of {tried:,}"
        where = f" at {track.provider}" if track.provider and facts.mark.ok == 0 else ""
        when = self.span(track.first_at, track.last_at) + _whose(track.burst)
        return f"{share} prompts tried{where} were refused alike, with {track.family}, {when}"

    def _prompts(self, track: Track, facts: Facts) -> str:
        one = track.refused == 1
        least = "at least " if track.untracked else ""
        subject = (
            "prompt was refused for what it is"
            if one
            else ("prompts were refused for what they are")
        )
        when = self.span(track.first_at, track.last_at) + _whose(track.burst)
        others = plural(facts.mark.ok, "attempt") if facts.mark.ok else "no attempt"
        return (
            f"{least}{track.refused:,} {subject} ({track.family}) {when}, while {others} succeeded"
        )

    def _same(self, track: Track, facts: Facts) -> str:
        count = track.given_up_now
        others = facts.mark.ok - track.burst.before.ok
        prompts = "prompt" if count == 1 else "prompts"
        when = self.span(track.burst.first_at, track.burst.last_at) + _whose(track.burst)
        beside = (
            f", while {others:,} others succeeded" if others else "; nothing has succeeded since"
        )
        return (
            f"{_what(track)} {when}: {count:,} {prompts} failed alike on every attempt "
            f"and no retry helped{beside}"
        )

    def _history(self, track: Track) -> str:
        now = track.burst
        last = self.span(now.first_at, now.last_at) + _whose(now)
        if not track.past:
            return f"{_what(track)} {last}"
        if track.bursts == 2:  # noqa: PLR2004 - two are told one by one
            before = track.past[-1]
            first = self.span(before.first_at, before.last_at) + _whose(before)
            return (
                f"{_what(track)} in 2 bursts: {before.count:,} {first}, then {now.count:,} {last}"
            )
        return f"{_what(track)} in {track.bursts} bursts, the last {now.count:,} {last}"

    def _own_share(self, track: Track, facts: Facts) -> str:
        if track.provider is None:
            return ""
        before = track.burst.before
        failed = facts.served.failed - before.provider_failed
        total = failed + facts.served.ok - before.provider_ok
        if total >= facts.mark.attempts - before.attempts:
            return ""  # it serves alone: the same figures again
        return f"; {failed:,} of {track.provider}'s own {total:,} failed"

    def _is_short(self, burst: Burst) -> bool:
        return burst.last_at - burst.first_at < SECONDS_BELOW_S


def _what(track: Track) -> str:
    source = f" from {track.provider}" if track.provider else ""
    return f"{track.count:,} x {track.family}{source}"


def _whose(burst: Burst) -> str:
    return " in an earlier session" if burst.earlier else ""


def _fate(track: Track) -> str:
    least = "at least " if track.untracked else ""
    if track.prompts and track.healed == track.prompts:
        each = (
            "its prompt has" if track.prompts == 1 else f"all {least}{track.prompts:,} prompts have"
        )
        return f"{each} succeeded since"
    waits = (
        f", {track.waiting:,} {'waits' if track.waiting == 1 else 'wait'}" if track.waiting else ""
    )
    have = "has" if track.healed == 1 else "have"
    return (
        f"{least}{track.healed:,} of these prompts {have} succeeded since{waits}{_given_up(track)}"
    )


def _given_up(track: Track) -> str:
    return f", {track.given_up:,} given up" if track.given_up else ""


def _doubt(track: Track, facts: Facts) -> str:
    last = track.burst.last
    if facts.quiet_ok < needed(track.burst):
        if facts.mark.attempts == last.attempts:
            return "nothing has been tried since"
        if facts.quiet_ok == 0:
            return "nothing started since then has succeeded"
        others = facts.mark.failed - last.failed
        of = f" of {facts.quiet_ok + others:,}" if others else ""
        share = f"it hit {_number(100 * track.burst.share)} in 100 before"
        return (
            f"only {facts.quiet_ok:,}{of} {_noun(facts.quiet_ok + others, 'attempt')} since"
            f"{' succeeded' if others else ''}; {share}"
        )
    if track.healed_now == 0 and track.waiting:
        return f"none of its {track.prompts:,} prompts has succeeded since"
    return "that is too short to tell"


def _noun(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"


def _number(value: float) -> str:
    return f"{value:.1f}" if 0 < value < 10 else f"{value:.0f}"  # noqa: PLR2004 - two digits are enough
