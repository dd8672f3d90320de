"""A real session of a run in a temporary folder, put together as the engine does it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine_parts import HEAD, manifest_of, write_rows
from virtual_clock import VirtualClock

from engine.assemble import assemble
from engine.events import AttemptFailed, RowSaved
from engine.faults.fault import Fault
from engine.plan import EndpointFacts, Options, make_plan
from engine.reading import TextReader
from engine.schedule import Job
from engine.session import Session
from engine.wire.client import Client

OPENROUTER = EndpointFacts(api="openrouter", prompt_usd=1e-6, completion_usd=1e-5)


@asynccontextmanager
async def session_of(
    folder: Path,
    datasets: str,
    rows: Mapping[str, int],
    *,
    facts: EndpointFacts = OPENROUTER,
    options: Options | None = None,
    turns: int = 1,
) -> AsyncIterator[Session]:
    """A session whose sources hold `rows` prompts each; time is `session.clock`, a VirtualClock."""
    for name, count in rows.items():
        texts = [[f"{name} {n} {turn}" for turn in range(turns)] for n in range(count)]
        write_rows(folder / f"{name}.jsonl", ({"turns": each} for each in texts))
    plan = replace(
        make_plan(manifest_of(HEAD + datasets, folder), options or Options()), facts=facts
    )
    plan.folder.mkdir(exist_ok=True)
    with ThreadPoolExecutor(1) as executor:
        async with Client("http://127.0.0.1:9/v1", key=None, headers={}) as client:
            yield await assemble(
                plan,
                client=client,
                reader=TextReader(),
                clock=VirtualClock(),
                executor=executor,
                seed=1,
            )


def clock_of(session: Session) -> VirtualClock:
    """The session's clock, to be turned by hand."""
    assert isinstance(session.clock, VirtualClock)
    return session.clock


async def read_all(session: Session) -> None:
    """Read every source to its end."""
    for name, feeder in session.feeders.items():
        exhausted = False
        while not exhausted:
            batch = await feeder.read()
            exhausted = batch.exhausted
            session.schedule.offer(
                name, batch.jobs, invalid=len(batch.invalid), exhausted=exhausted
            )


def start(session: Session, slots: int) -> list[Job]:
    """Start what the schedule gives, now."""
    jobs = session.schedule.take(slots, session.clock.monotonic())
    for job in jobs:
        job.attempt += 1
        job.started_at = session.clock.wall()
    return jobs


def succeed(session: Session, job: Job, **more: Any) -> None:
    """The job's row has been saved."""
    now = session.clock.monotonic()
    fields: dict[str, Any] = {
        "provider": "SiliconFlow",
        "completion_tokens": 100,
        "cost": 0.001,
        "exactness": "unverified",
        "flags": (),
        "finish_reason": "stop",
        "started_at": job.started_at,
        "latency_s": now - job.taken_at,
        **more,
    }
    session.emit(RowSaved(dataset=job.prompt.dataset, prompt=job.prompt.key, **fields))
    session.schedule.saved(job, last=False, answer="a")


def fail(session: Session, job: Job, failed: Fault) -> None:
    """The job's attempt has failed and its prompt is given up."""
    session.emit(AttemptFailed(job.prompt.dataset, job.prompt.key, failed))
    session.schedule.give_up(job)
