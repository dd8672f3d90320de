"""One attempt: build the request, send it, and say what came of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from engine.faults.fault import Fault, fault_of_exception
from engine.feed.prompts import Message, served_messages
from engine.schedule import Job
from engine.session import Session
from engine.wire.client import Exchange, Failure
from engine.wire.generation import SOURCE_ID, native_usage
from engine.wire.reply import Expectation, Reply, parse_reply, with_usage

CACHE_STATUS, CACHE_CLEAR = "x-openrouter-cache-status", "X-OpenRouter-Cache-Clear"
_BROKEN_OFF = frozenset({"whitespace", "truncated_json", "not_json", "html"})
"""The cache may hold the whole of what came so: asked again as it was, it is free."""


def messages_of(session: Session, job: Job) -> list[Message]:
    """The messages as served for this turn, tools declared in them where tools_mode says so."""
    messages = served_messages(job.prompt, job.turn, job.answers)
    if job.prompt.tools and session.plan.manifest.endpoint.tools_mode == "raw":
        return session.reader.with_tools(messages, job.prompt.tools)
    return messages


async def perform(session: Session, job: Job, messages: list[Message]) -> Reply | Fault:
    """Send one request and read its reply; never raises but when cancelled."""
    plan = session.plans[job.prompt.dataset]
    sampling = _sampling(plan.sampling, job.max_tokens_factor)
    ignore = session.traces.ignore(job.id)
    body = session.asking.body(job.prompt, messages, sampling, ignore)
    outcome = await session.client.post(
        session.asking.path,
        body,
        deadline_s=session.deadline_s(job.prompt.dataset),
        headers=_headers(session, job),
    )
    if isinstance(outcome, Failure):
        return fault_of_exception(outcome.names, outcome.message)
    raw_tools = session.plan.manifest.endpoint.tools_mode == "raw" and bool(job.prompt.tools)
    expectation = session.expectation(plan, job.max_tokens_factor, tools=raw_tools)
    result = parse_reply(outcome.status, outcome.headers, outcome.body, expectation)
    if isinstance(result, Reply):
        return await _counted(session, result, outcome, expectation)
    if result.family == "no_route" and ignore:
        # our own `ignore` may have emptied the route: that must not end the run
        return replace(result, family="route_ignored")
    if _came_whole(result, outcome):
        session.traces.spoilt(job.id)
    return result


async def _counted(
    session: Session, reply: Reply, answer: Exchange, expectation: Expectation
) -> Reply:
    """The reply; a hit of the cache with the counts of the generation that it repeats."""
    if not reply.cached or reply.usage.completion_tokens is not None:
        return reply
    source = answer.headers.get(SOURCE_ID) or reply.generation_id
    usage = await native_usage(session.client, source) if source else None
    return with_usage(reply, usage, expectation) if usage else reply


def _came_whole(failed: Fault, answer: Exchange) -> bool:
    """Whether the reply that is no answer is the server's own, not one spoilt on its way."""
    if answer.status != 200:  # noqa: PLR2004 - HTTP's own number; nothing else is cached
        return False
    hit = (answer.headers.get(CACHE_STATUS) or "").upper() == "HIT"
    return hit or failed.family not in _BROKEN_OFF


def cancelled_fault(*, sent: bool = True) -> Fault:
    """What a cancelled attempt is recorded as: no error, but a hosted API bills it."""
    return Fault("cancelled", "cancelled by stop", sent=sent)


def choose_hosts(session: Session, job: Job) -> tuple[str, ...]:
    """Decide which hosts the router is asked to leave out, before the request is written down.

    A request that we lost sight of is asked again as it was, or the cache would not know it.
    """
    if not session.traces.repeats(job.id):
        session.traces.ask(job.id, _ignored(session, job))
    return session.traces.ignore(job.id)


def _headers(session: Session, job: Job) -> dict[str, str]:
    headers = session.asking.headers()
    if session.traces.clears(job.id):
        headers[CACHE_CLEAR] = "true"
    return headers


def _ignored(session: Session, job: Job) -> set[str]:
    """Slugs to be left out: never, by our own doing, the whole route."""
    slugs = session.plan.facts.slugs

    def named(names: Iterable[str]) -> set[str]:
        return {slugs.get(name, name) for name in names}

    route = set(slugs.values())
    ordered = named(session.excluded)
    resting = ordered | named(session.breakers.ignored(session.clock.monotonic()))
    for ignore in (resting | named(job.avoid), resting):
        if not route or route - ignore:
            return ignore
    return ordered


def _sampling(sampling: dict[str, Any], factor: int) -> dict[str, Any]:
    if factor == 1:
        return sampling
    caps = ("max_tokens", "max_completion_tokens")
    return {key: value * factor if key in caps else value for key, value in sampling.items()}
