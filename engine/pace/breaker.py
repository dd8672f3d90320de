"""A breaker per provider: one that mostly fails is rested, and tried again by single probes.

Where the router has a choice, a resting provider stands on the request's ignore list. Where one
host serves alone (`sole`), dispatch itself is reduced to probes. Refusals (429) lower the limit
instead; here they only rest a provider that refuses nearly everything while others serve.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

RECENT = 20
"""Attempts of a provider that are looked at."""
FAILURES = 8
"""Failures among them that open the breaker, if they are at least this share:"""
SHARE = 0.5
SOLE_FAILURES = 19
"""Failures among them that open it where no other host could serve instead."""
REFUSALS = 16
"""Refusals among them that rest a provider although it is not broken."""
REST_FIRST_S = 30.0
REST_LAST_S = 600.0
PROBE_EVERY_S = 10.0
"""While a probe has not come back, another is sent after this; replies can take minutes."""
CALM = 20
"""Successes in a row after which the next rest is short again."""

_MASK = (1 << RECENT) - 1


@dataclass(slots=True)
class _Breaker:
    """One provider; the low bit of `failed` and `refused` is its latest attempt."""

    attempts: int = 0
    failed: int = 0
    refused: int = 0
    calm: int = 0
    open: bool = False
    rest_s: float = REST_FIRST_S
    probe_at: float = 0.0
    probed: bool = False
    why: str = ""

    def note(self, *, failed: bool, refused: bool) -> None:
        self.attempts = min(self.attempts + 1, RECENT)
        self.failed = (self.failed << 1 | failed) & _MASK
        self.refused = (self.refused << 1 | refused) & _MASK

    def fault(self, *, sole: bool) -> str:
        """Why it should rest, in words; empty where it should not."""
        failed, refused = self.failed.bit_count(), self.refused.bit_count()
        least = SOLE_FAILURES if sole else max(FAILURES, SHARE * self.attempts)
        if failed >= least:
            return f"{failed} of its last {self.attempts} attempts failed"
        if refused >= REFUSALS:
            return f"it refused {refused} of its last {self.attempts} attempts"
        return ""


class Breakers:
    """All providers of one route; `now` is monotonic seconds.

    `sole`: the router cannot avoid a provider, because one host serves alone or the manifest pins
    it. `route`: the providers that may serve, where they are known; never all of them are ignored.
    `clock_text` words a moment (`14:07`); without it, rests are worded in seconds.
    """

    def __init__(
        self,
        *,
        sole: bool = False,
        route: tuple[str, ...] = (),
        clock_text: Callable[[float], str] | None = None,
    ) -> None:
        self.sole = sole
        self._clock_text = clock_text
        self._breakers: dict[str, _Breaker] = {name: _Breaker() for name in route}
        self._open = 0

    def succeeded(self, provider: str, now: float) -> None:
        """An attempt became a reply: a probe that did closes the breaker."""
        breaker = self._of(provider)
        breaker.note(failed=False, refused=False)
        breaker.calm += 1
        if breaker.open:
            self._hear(breaker, now)
        elif breaker.calm >= CALM:
            breaker.rest_s = REST_FIRST_S

    def failed(self, provider: str, now: float) -> None:
        """An attempt failed through the provider's fault (no 429)."""
        breaker = self._of(provider)
        breaker.note(failed=True, refused=False)
        self._judge(breaker, now, None)

    def refused(self, provider: str, now: float, retry_after_s: float | None = None) -> None:
        """An attempt was refused; only one that refuses nearly everything is rested."""
        if self.sole:
            return  # the limiter rests the whole route
        breaker = self._of(provider)
        breaker.note(failed=False, refused=True)
        self._judge(breaker, now, retry_after_s)

    def ignored(self, now: float) -> tuple[str, ...]:
        """Providers for the ignore list of the request about to be sent.

        Call once per request: where a probe is due, this request is it, and does not list the
        provider that is to be tried.
        """
        if not self._open or self.sole:
            return ()
        names = sorted(name for name, breaker in self._breakers.items() if breaker.open)
        due = next((name for name in names if now >= self._breakers[name].probe_at), None)
        if due is not None:
            self._send_probe(self._breakers[due], now)
            names.remove(due)
        elif len(names) == len(self._breakers):
            # nobody is left: a request that may go nowhere is worse than one that may fail
            names.remove(min(names, key=lambda name: self._breakers[name].probe_at))
        return tuple(names)

    def probing(self, provider: str, now: float) -> bool:
        """Whether the provider is only tried by probes."""
        del now
        breaker = self._breakers.get(provider)
        return breaker is not None and breaker.open

    def rests_sole(self) -> bool:
        """Whether the only host rests, so that each request that starts is a probe."""
        return self.sole and self._open > 0

    def next_start(self, now: float) -> float:
        """When the next request may start: `now`, or later while a sole host is only probed."""
        if not self.sole or not self._open:
            return now
        return max(now, min(item.probe_at for item in self._breakers.values() if item.open))

    def started(self, now: float) -> None:
        """A request was started: with a sole host that rests, it was the probe."""
        if self.sole and self._open:
            due = min(
                (item for item in self._breakers.values() if item.open),
                key=lambda item: item.probe_at,
            )
            self._send_probe(due, now)

    def waiting_words(self, now: float) -> str:
        """Why nothing may start now, while the only host rests; empty where something may."""
        if self.next_start(now) <= now:
            return ""
        name = next(name for name, breaker in self._breakers.items() if breaker.open)
        return f"{name} is {self.state_words(name, now)}"

    def state_words(self, provider: str, now: float) -> str:
        """The provider's state for the screen; empty where all is well."""
        breaker = self._breakers.get(provider)
        if breaker is None or not breaker.open:
            return ""
        if breaker.probed:
            return f"being probed: {breaker.why}"
        if self._clock_text is not None:
            return f"resting until {self._clock_text(breaker.probe_at)}: {breaker.why}"
        left = max(0, math.ceil(breaker.probe_at - now))
        return f"resting for {left} s: {breaker.why}"

    def _of(self, provider: str) -> _Breaker:
        breaker = self._breakers.get(provider)
        if breaker is None:
            breaker = self._breakers[provider] = _Breaker()
        return breaker

    def _judge(self, breaker: _Breaker, now: float, wait_s: float | None) -> None:
        breaker.calm = 0
        if breaker.open:
            if breaker.probed:  # else it was started before the breaker opened: no news
                self._rest(breaker, now, wait_s)
            return
        breaker.why = breaker.fault(sole=self.sole)
        if breaker.why:
            breaker.open = True
            self._open += 1
            self._rest(breaker, now, wait_s)

    def _rest(self, breaker: _Breaker, now: float, wait_s: float | None) -> None:
        breaker.probed = False
        breaker.probe_at = now + min(max(breaker.rest_s, wait_s or 0.0), REST_LAST_S)
        breaker.rest_s = min(2.0 * breaker.rest_s, REST_LAST_S)

    def _hear(self, breaker: _Breaker, now: float) -> None:
        if not breaker.probed:  # it was started before: a good sign, but no proof
            breaker.probe_at = min(breaker.probe_at, now)
            return
        breaker.open = breaker.probed = False
        breaker.attempts = breaker.failed = breaker.refused = 0
        breaker.why = ""
        self._open -= 1

    def _send_probe(self, breaker: _Breaker, now: float) -> None:
        breaker.probed = True
        breaker.probe_at = now + PROBE_EVERY_S
