"""What follows from an attempt's outcome: a row, a retry, a pause, a prompt given up, an end."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from engine.disk.jsonlines import dump_line
from engine.disk.ledger import ATTEMPTS, FAILURES, ROWS
from engine.disk.records import attempt_record, failure_record, row_record
from engine.events import AttemptFailed, PromptFailed, RowSaved
from engine.faults.fault import Fault, Scope, fault
from engine.feed.prompts import Message
from engine.format import closed, duration
from engine.reading import Reading
from engine.schedule import Job
from engine.session import Session
from engine.view.glimpse import head_of
from engine.wire.reply import Reply

REFUSALS = frozenset({"rate_limit", "overloaded", "no_provider_now"})
"""The route had no room. As a rule that says nothing of the prompt: it uses up no attempts."""
LONG_S = 30.0
"""A resend that waits longer than this is explained."""
HOPELESS_AFTER = 100
"""Prompts that fail one after the other, before any has succeeded, until the run ends itself."""


def keep(
    session: Session,
    job: Job,
    messages: list[Message],
    reply: Reply,
    latency_s: float,
    reading: Reading | None = None,
) -> None:
    """Turn a reply into a row; it is counted when the row is with the operating system.

    `reading` is that of a reply that was read beside the loop.
    """
    reply = _priced(session, job, reply)
    if _wants_longer(session, job, reply):
        _ask_longer(session, job, reply, latency_s)
        return
    reading = reading or session.reader.read(job, messages, reply)
    row = row_record(
        job,
        reply,
        messages=messages,
        prompt_ids=reading.prompt_ids,
        completion_ids=reading.completion_ids,
        exactness=reading.exactness,
        latency_s=latency_s,
    )
    event = RowSaved(
        dataset=job.prompt.dataset,
        prompt=job.prompt.key,
        provider=reply.provider,
        completion_tokens=reply.usage.completion_tokens,
        cost=reply.usage.cost,
        exactness=reading.exactness,
        flags=reply.flags,
        finish_reason=reply.finish_reason,
        started_at=job.started_at,
        latency_s=latency_s,
        unseen=session.traces.unseen(job.id),
        cached=reply.cached,
        id=job.id,
        text=head_of(reply.reasoning, reply.content),
    )
    session.traces.settle(job.id)
    done = partial(_saved, session, job, event, session.reader.as_served(row))
    session.sink.put_bytes(f"{job.prompt.dataset}/{ROWS}", dump_line(row), done)


def fail(session: Session, job: Job, failed: Fault, latency_s: float) -> None:
    """Record an attempt that did not become a row, and do what its scope asks for."""
    record(session, job, failed, latency_s)
    if failed.family == "cancelled":
        session.schedule.cancelled(job)
        return
    _act(session, job, failed)
    if failed.scope is Scope.RUN:
        session.schedule.cancelled(job)
        end_by_endpoint(session, f"{failed.family}: {failed.message}", failed.action)
    elif may_retry(session, job, failed):
        times = job.doubt.refusals if failed.family in REFUSALS else job.tries
        delay = session.retry.delay(max(1, times), session.rng, wait_s=failed.wait_s)
        if session.traces.repeats(job.id):
            delay = max(delay, session.resend_after_s(job.prompt.dataset) - latency_s)
            _tell_of_resend(session, delay)
        session.schedule.retry(job, session.clock.monotonic() + delay)
    else:
        give_up(session, job, _in_full(job, failed))


def _in_full(job: Job, failed: Fault) -> Fault:
    """The fault for which a prompt is given up, with what the server does not say itself."""
    if failed.family not in REFUSALS:
        return failed
    times = f"refused {job.doubt.refusals} times in a row while others were served"
    return replace(failed, message=f"{failed.message} ({times})")


def _tell_of_resend(session: Session, delay_s: float) -> None:
    """Say once why a prompt waits so long."""
    if delay_s >= LONG_S and session.traces.tell_once():
        session.journal.note(
            "note",
            f"a reply was lost on its way: it is asked for again in {duration(delay_s)}, when the "
            "first request has surely finished and the response cache has it for free",
        )


def record(session: Session, job: Job, failed: Fault, latency_s: float) -> None:
    """Write the attempt down and let the statistics count it."""
    dataset = job.prompt.dataset
    session.sink.put(f"{dataset}/{ATTEMPTS}", attempt_record(job, failed, latency_s))
    session.traces.failed(job.id, failed)
    session.emit(AttemptFailed(dataset, job.prompt.key, failed))
    session.wake.set()


def may_retry(session: Session, job: Job, failed: Fault) -> bool:
    """Count the attempt against the prompt where it may be the prompt's fault; then decide."""
    if not failed.retry:
        return False
    if failed.family in REFUSALS:
        return not job.doubt.certain
    if failed.scope is Scope.ACCOUNT:
        return True
    job.tries += 1
    mine = job.family_tries[failed.family] = job.family_tries.get(failed.family, 0) + 1
    cap = failed.tries
    return job.tries < session.plan.manifest.limits.max_attempts and (cap is None or mine < cap)


def give_up(session: Session, job: Job, failed: Fault) -> None:
    """The prompt has failed: say so on disk, in the numbers, and to `retry failed`."""
    dataset = job.prompt.dataset
    at = session.clock.wall()
    session.sink.put(f"{dataset}/{FAILURES}", failure_record(job, failed, at))
    session.schedule.give_up(job)
    session.traces.settle(job.id)
    session.feeders[dataset].failed.add(job.prompt.key)
    session.emit(PromptFailed(dataset, job.prompt.key, failed, job.id, job.attempt))
    if session.stats.hopeless >= HOPELESS_AFTER:
        end_by_endpoint(
            session,
            f"the first {HOPELESS_AFTER} prompts all failed, the last with "
            f"{failed.family}: {failed.message}",
            "Mend what the server complains of, then run with --retry-failed.",
        )


def end_by_endpoint(session: Session, what: str, action: str) -> None:
    """The endpoint refuses the whole run: drain, and say what to do."""
    if session.course.fatal:
        return
    session.course.fatal = f"{closed(what)} {action}".strip()
    session.course.drain(f"the endpoint ends the run: {session.course.fatal}")
    session.journal.note("state", session.course.reason)


def close_at_budget(session: Session, dataset: str) -> None:
    """End a dataset's dispatch once its token or dollar budget is reached."""
    queue = session.schedule.queues[dataset]
    if not queue.over_budget and session.gate.reached(dataset):
        queue.over_budget = True
        session.journal.note("state", f"{dataset} has reached its budget", dataset=dataset)


def _priced(session: Session, job: Job, reply: Reply) -> Reply:
    """The reply with its cost: what the server says, else by the endpoint's prices, else unknown.

    A hit of the cache costs what the attempt cost whose reply we did not see; without such an
    attempt another dataset or run has paid for it. A cost of 0 beside token counts of 0 says
    nothing (litellm#21592); beside counts it is a price.
    """
    usage = reply.usage
    cost = usage.cost
    if reply.cached and not session.traces.unseen(job.id):
        cost = 0.0
    elif cost is None or (cost == 0 and usage.completion_tokens is None):
        cost = session.plan.facts.cost_of(usage, reply.provider)
        _tell_of_list_price(session, cost)
    return reply if cost == usage.cost else replace(reply, usage=replace(usage, cost=cost))


def _tell_of_list_price(session: Session, cost: float | None) -> None:
    """Say once that costs are reckoned, so that a total is not taken for what is billed."""
    if cost is None or session.list_priced:
        return
    session.list_priced = True
    session.journal.note(
        "note",
        "replies come without their cost: it is reckoned by the hosts' list prices, without cache "
        "discounts",
    )


def _saved(session: Session, job: Job, event: RowSaved, answer: str) -> None:
    now = session.clock.monotonic()
    session.schedule.saved(job, last=event.finish_reason == "length", answer=answer)
    session.emit(event)
    if event.cached:  # no host has worked for it: it says nothing of any
        session.limiter.ended()
    else:
        session.schedule.rotation.served(event.dataset)
        session.limiter.succeeded(now, event.latency_s, event.completion_tokens or 0)
        if event.provider:
            session.breakers.succeeded(event.provider, now)
    close_at_budget(session, event.dataset)
    session.wake.set()


def _wants_longer(session: Session, job: Job, reply: Reply) -> bool:
    return (
        reply.finish_reason == "length"
        and session.plan.manifest.limits.on_length == "retry"
        and job.max_tokens_factor == 1
        and session.plans[job.prompt.dataset].max_tokens is not None
    )


def _ask_longer(session: Session, job: Job, reply: Reply, latency_s: float) -> None:
    """Record the paid, cut reply as an attempt, then ask once with twice the cap."""
    cut = fault(
        "cut",
        provider=reply.provider,
        generation_id=reply.generation_id,
        cost=reply.usage.cost,
    )
    record(session, job, cut, latency_s)
    job.max_tokens_factor = 2
    session.schedule.retry(job, session.clock.monotonic())


def _act(session: Session, job: Job, failed: Fault) -> None:
    """Let the limit, the breakers and the routing learn from it."""
    now = session.clock.monotonic()
    account = failed.scope is Scope.ACCOUNT
    if account:  # before the limiter hears of it, so that its rest has the account's words
        wait_s = failed.wait_s or session.retry.base_s
        session.limiter.hold(now + wait_s, f"{failed.family}: {failed.words}")
    refused = failed.family in REFUSALS
    news = not refused or session.schedule.refused(job, now)
    if news and (refused or (account and failed.sent)):
        started = now - max(0.0, session.clock.wall() - job.started_at)
        session.limiter.refused(now, failed.provider, failed.wait_s, started_at=started)
    else:  # a network that is down refuses nothing
        session.limiter.ended()
    if failed.family == "route_ignored":
        job.avoid = ()
    elif failed.scope is Scope.PROVIDER and failed.provider:
        if session.plan.facts.avoidable:
            job.avoid = (failed.provider,)
        if refused:
            if news:
                session.breakers.refused(failed.provider, now, failed.wait_s)
        else:
            session.breakers.failed(failed.provider, now)
