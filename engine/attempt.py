"""One attempt: build the request, send it, and say what came of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.client import Failure
from engine.faults import Fault, fault_of_exception
from engine.generation import SOURCE_ID, native_usage
from engine.prompts import Message, served_messages
from engine.reply import Reply, parse_reply, with_usage
from engine.schedule import Job
from engine.session import Session


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
    resting = session.breakers.ignored(session.clock.monotonic())
    slugs = session.plan.facts.slugs
    ignore = {slugs.get(name, name) for name in (*job.avoid, *session.excluded, *resting)}
    body = session.asking.body(job.prompt, messages, sampling, ignore)
    outcome = await session.client.post(
        session.asking.path,
        body,
        deadline_s=session.deadline_s(job.prompt.dataset),
        headers=session.asking.headers(),
    )
    if isinstance(outcome, Failure):
        return fault_of_exception(outcome.names, outcome.message)
    raw_tools = session.plan.manifest.endpoint.tools_mode == "raw" and bool(job.prompt.tools)
    expectation = session.expectation(plan, job.max_tokens_factor, tools=raw_tools)
    result = parse_reply(outcome.status, outcome.headers, outcome.body, expectation)
    if isinstance(result, Fault) and result.family == "no_route" and ignore:
        # our own `ignore` may have emptied the route: that must not end the run
        return replace(result, family="route_ignored")
    if isinstance(result, Reply) and result.cached and result.usage.completion_tokens is None:
        source = outcome.headers.get(SOURCE_ID) or result.generation_id
        usage = await native_usage(session.client, source) if source else None
        return with_usage(result, usage, expectation) if usage else result
    return result


def cancelled_fault(*, sent: bool = True) -> Fault:
    """What a cancelled attempt is recorded as: no error, but a hosted API bills it."""
    return Fault("cancelled", "cancelled by stop", sent=sent)


def _sampling(sampling: dict[str, Any], factor: int) -> dict[str, Any]:
    if factor == 1:
        return sampling
    caps = ("max_tokens", "max_completion_tokens")
    return {key: value * factor if key in caps else value for key, value in sampling.items()}
