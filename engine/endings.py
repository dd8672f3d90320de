"""When a run ends itself: no room under its cost cap, or too many failed prompts."""

from __future__ import annotations

from engine.session import Session

RATE_KNOWN_AFTER = 50
"""Finished prompts before --max-error-rate is judged: one early failure is no rate."""


def see_cap(session: Session) -> None:
    """End at `max_cost_usd` when nothing in flight can make room any more."""
    if (
        not session.course.draining
        and session.schedule.in_flight == 0
        and not session.schedule.complete
        and session.gate.capped()
    ):
        session.course.capped = True
        session.course.drain(session.gate.cap_words())
        session.journal.note("state", session.course.reason)


def see_failures(session: Session) -> None:
    """End when the failed prompts pass --max-error-rate."""
    bound = session.plan.options.max_error_rate
    if bound is None or session.course.draining:
        return
    queues = session.schedule.queues.values()
    failed = sum(queue.failed for queue in queues)
    done = failed + sum(queue.ok for queue in queues)
    if done >= RATE_KNOWN_AFTER and failed > bound * done:
        session.course.too_many_failures = True
        session.course.drain(
            f"{failed} of {done} finished prompts failed: more than --max-error-rate {bound:g}"
        )
        session.journal.note("state", session.course.reason)
