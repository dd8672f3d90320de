"""Finds how many requests may be in flight: ramp-up, one fall per burst of refusals, recovery.

One Limiter serves one route, because the router picks the provider after we send (DESIGN §7).
After a burst the number that the provider held is known, so the limit returns to just below it
and tries for more seldom, for a fixed small share of refused attempts. `Retry-After` never
stretches a fall (UKGovernmentBEIS/inspect_ai#5137: a limit that froze after its first cut).
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.pace.held import DOUBLING_S, Held, Lesson
from engine.pace.plateau import Plateau
from engine.pace.refusals import Pressure

START = 64
FILLED = 0.9
"""The limit is used where this share of it is in flight; an unused limit does not rise."""
SETTLE_S = 2.0
SETTLE_QUIET_S = 1.0
SETTLE_MOST_S = 10.0
"""A burst is over after `SETTLE_S`, once refusals have been quiet, and at the latest then."""
REST_FIRST_S = 2.0
REST_LAST_S = 60.0
"""Rest between single probes where everything is refused and no wait is named."""
REST_MOST_S = 600.0
IDLE_S = 10.0
IDLE_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class LimitChange:
    """The limit from `at` (monotonic seconds) on, and why."""

    at: float
    limit: int
    reason: str


@dataclass(slots=True)
class _Fall:
    at: float
    level: float
    refused: int
    last: float
    who: str
    probed: bool
    """A probe for more caused it."""
    replies: int = 0
    open: bool = True


class Limiter:
    """How many requests may be in flight; `now` is monotonic seconds throughout."""

    def __init__(self, ceiling: int, *, now: float, start: int = START) -> None:
        self._ceiling = max(1, ceiling)
        self._start = float(max(1, min(start, self._ceiling)))
        self._level = self._start
        self._reason = ""
        self._noted = 0
        self._changes: list[LimitChange] = []
        self._pressure = Pressure(now)
        self._plateau = Plateau(now)
        self._ticked = now
        self._in_flight = 0
        self._was_filled = True
        self._idle_since: float | None = None
        self._fall: _Fall | None = None
        self._held = Held()
        self._rest_s = REST_FIRST_S
        self._hold_until: float | None = None
        self._hold_reason = ""
        self._set(now, self._level, "ramping up")

    @property
    def limit(self) -> int:
        """Requests allowed in flight: at least 1, at most the ceiling."""
        return max(1, min(self._ceiling, int(self._level + 1e-6)))

    @property
    def ceiling(self) -> int:
        """The operator's bound."""
        return self._ceiling

    @property
    def reason(self) -> str:
        """Why the limit is where it is, in words for the screen."""
        return self._reason

    @property
    def hold_reason(self) -> str:
        """Why nobody may start; only meaningful while `held_until` is not None."""
        return self._hold_reason

    def drain_changes(self) -> list[LimitChange]:
        """Changes since last asked; a rise for one reason is told at each doubling and its end."""
        changes, self._changes = self._changes, []
        return changes

    # what happened

    def succeeded(self, now: float, latency_s: float, tokens: int) -> None:
        """An attempt became a reply after `latency_s` seconds; `tokens` 0 where unknown."""
        self._held.replied()
        if self._fall is not None:
            self._fall.replies += 1
        self._pressure.ended()
        self._plateau.succeeded(now, latency_s, tokens)

    def ended(self) -> None:
        """An attempt ended in another way than `succeeded` or `refused` tell."""
        self._pressure.ended()

    def refused(
        self, now: float, provider: str | None, retry_after_s: float | None, *, started_at: float
    ) -> None:
        """An attempt started at `started_at` was refused: too many requests, or overload."""
        self._pressure.ended()
        fall = self._fall
        if fall is not None and started_at <= fall.at:
            self._pressure.refused(now, fresh=False)
            fall.refused += 1
            fall.last = now
            return
        self._pressure.refused(now, fresh=True)
        if self._pressure.is_burst(now, self.limit):
            self._fall_once(now, provider or "the endpoint", retry_after_s)

    # commands

    def set_ceiling(self, ceiling: int, now: float) -> None:
        """Bound the limit from now on; raising the bound lets the ramp go on."""
        raised = ceiling > self._ceiling
        self._ceiling = max(1, ceiling)
        self._start = min(self._start, self._ceiling)
        if self._level >= self._ceiling:
            self._set(now, self._ceiling, f"throttled to {self._ceiling}")
        elif raised and self._reason in {"at the ceiling", f"throttled to {self.limit}"}:
            self._set(now, self._level, "ramping up")

    def hold(self, until: float, reason: str) -> None:
        """Nobody starts before `until`; a shorter hold does not end a longer one."""
        if self._hold_until is None or until > self._hold_until:
            self._hold_until = until
            self._hold_reason = reason

    def release(self) -> None:
        """End a hold early, as after a top-up."""
        self._hold_until = None

    def held_until(self, now: float) -> float | None:
        """When starting is allowed again; None where it is allowed now."""
        if self._hold_until is not None and now >= self._hold_until:
            self._hold_until = None
        return self._hold_until

    # time

    def tick(self, now: float, in_flight: int) -> None:
        """Let time pass; call about twice a second, before new requests are started."""
        elapsed = min(max(0.0, now - self._ticked), 1.0)
        self._ticked = now
        self._in_flight = in_flight
        self._was_filled = FILLED * self.limit <= in_flight
        self._pressure.tick(now, in_flight)
        self._plateau.tick(now, in_flight, self.limit, self._ceiling, steady=self._steady(now))
        if self._fall is not None and self._fall.open:
            self._settle(now, self._fall)
        elif self._idle(now):
            self._set(now, max(self._start, 2.0 * in_flight), "little in flight: will ramp up")
        elif self._was_filled and in_flight <= self.limit and self.held_until(now) is None:
            self._rise(now, elapsed)
        self._cap(now)

    def _steady(self, now: float) -> bool:
        return self._fall is None or now > self._fall.at + SETTLE_MOST_S

    def _cap(self, now: float) -> None:
        cap = self._plateau.cap
        if cap is not None and self._level > cap and cap < self._ceiling:
            self._set(now, cap, self._plateau.reason)

    def _idle(self, now: float) -> bool:
        """Whether so little is in flight that filling the limit at once would be a burst."""
        if self._in_flight >= IDLE_SHARE * self.limit or self._level <= self._start:
            self._idle_since = None
            return False
        if self._idle_since is None:
            self._idle_since = now
        return now - self._idle_since >= IDLE_S

    # falls

    def _fall_once(self, now: float, who: str, retry_after_s: float | None) -> None:
        level = float(self.limit if self._was_filled else max(1, self._in_flight))
        self._plateau.disturbed(now)
        probed = self._held.probing
        # what was refused before has left the flight and was replaced: only this one has not
        self._fall = _Fall(now, level, 1, now, who, probed)
        self._held.refused()
        self._pressure.fell(now)
        if self.limit == 1:
            self._fall.open = False  # one refused request teaches no level
            self._rest(now, who, retry_after_s)
        elif probed:
            self._set(now, FILLED * level, f"{who} does not hold {level:.0f}")
        else:
            self._set(now, level / 2.0, f"429 burst from {who}: halved")

    def _rest(self, now: float, who: str, retry_after_s: float | None) -> None:
        wait = retry_after_s if retry_after_s and retry_after_s > 0 else self._rest_s
        self._rest_s = min(2.0 * self._rest_s, REST_LAST_S)
        self._held.forget()
        self._set(now, 1.0, f"{who} refuses everything: one probe at a time")
        self.hold(now + min(wait, REST_MOST_S), self._reason)

    def _settle(self, now: float, fall: _Fall) -> None:
        quiet = now - fall.last >= SETTLE_QUIET_S and now - fall.at >= SETTLE_S
        if not quiet and now - fall.at < SETTLE_MOST_S:
            return
        fall.open = False
        if self._pressure.settled(now, fall.level):
            self._held.forget()
            leak = 100.0 * self._pressure.leak
            text = f"{fall.who} refuses {leak:.0f} in 100 however few are in flight: ramping up"
            self._set(now, self._level, text)
            return
        held = self._still_held(fall)
        if held < 0.5 * fall.level or held < 1.0:
            return  # no level: the provider is out, the half that is left may rise again
        self._held.learn(now, Lesson(fall.level, held, fall.refused, fall.probed))
        level = min(self._held.safe, max(self._level, float(self._in_flight)))
        self._set(now, level, self._below())

    def _still_held(self, fall: _Fall) -> float:
        """How many of those in flight at the fall were not refused."""
        if self._in_flight > self.limit:  # nothing was started since: what is left was held
            return min(fall.level, float(self._in_flight + fall.replies))
        return max(fall.level - fall.refused, float(min(self._in_flight, int(fall.level))))

    def _who(self) -> str:
        return self._fall.who if self._fall is not None else "the provider"

    def _below(self) -> str:
        return f"below the {self._held.level or 0:.0f} that {self._who()} held"

    # rises

    def _rise(self, now: float, elapsed: float) -> None:
        held = self._held
        if held.level is None:
            self._ramp(now, elapsed)
        elif not held.survived(now):
            level = held.nearer(now, self._level, elapsed)
            if level > self._level:
                trying = f"trying more than {self._who()} is known to hold"
                self._climb(now, level, trying if held.probing else self._below())
        elif self.limit >= self._ceiling:
            held.forget()
            self._climb(now, self._level, "at the ceiling")
        else:
            self._climb(now, held.beyond(now), self._reason)

    def _ramp(self, now: float, elapsed: float) -> None:
        if self._fall is not None and now - self._fall.at < DOUBLING_S:
            return
        reason = self._reason if self._reason.endswith("ramping up") else "ramping up"
        self._climb(now, self._level * 2.0 ** (elapsed / DOUBLING_S), reason)

    def _climb(self, now: float, level: float, reason: str) -> None:
        top = float(self._ceiling)
        cap = self._plateau.cap
        if cap is not None and cap < top:
            self._set(now, min(level, cap), reason if level < cap else self._plateau.reason)
        elif level < top:
            self._set(now, level, reason)
        else:
            self._rest_s = REST_FIRST_S
            self._set(now, top, "at the ceiling")

    def _set(self, now: float, level: float, reason: str) -> None:
        self._level = max(1.0, min(level, float(self._ceiling)))
        if reason != self._reason or not self._noted < 2 * self.limit < 4 * self._noted:
            self._changes.append(LimitChange(now, self.limit, reason))
            self._noted = self.limit
        self._reason = reason
