"""How many requests may start now: the limit, waits of the whole route, probes of a sole host."""

from __future__ import annotations

from engine.session import Session

LAUNCH = 64
"""Requests that start in one go: 2000 at once hold the loop for 0.2 s."""


def free_slots(session: Session, now: float) -> int:
    """Slots to be filled at once; one at a time while a sole host is only probed.

    Call it only to fill them: where a probe is due, it is taken as sent.
    """
    if session.limiter.held_until(now) is not None or session.breakers.next_start(now) > now:
        return 0
    free = session.limiter.limit - session.schedule.in_flight
    if free > 0 and session.breakers.rests_sole():
        session.breakers.started(now)
        return 1
    return max(0, min(free, LAUNCH))
