"""A real session on virtual time against a route that refuses what a test says, for ever."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from types import TracebackType
from typing import Self

from engine_parts import reply_of
from session_parts import clock_of

from engine.faults.fault import fault
from engine.schedule import Job
from engine.session import Session
from engine.settle import fail, keep
from engine.slots import free_slots

STEP_S = 0.25
Refuses = Callable[[Job], bool]


class RefusalWorld:
    """Starts what the schedule gives, as the conductor does, and answers after a fixed time.

    Use as an async context: the rows are really written.
    """

    def __init__(self, session: Session, refuses: Refuses, *, reply_s: float = 1.0) -> None:
        self.session = session
        self.refuses = refuses
        self.reply_s = reply_s
        self.asked: list[Job] = []
        self._flying: list[tuple[float, int, Job]] = []

    async def __aenter__(self) -> Self:
        self.session.course.started = True
        self._writing = asyncio.create_task(self.session.sink.run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.session.sink.close()
        await self._writing

    async def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> float:
        """Let time pass; returns how many seconds it took until `until` held."""
        clock = clock_of(self.session)
        begin = clock.monotonic()
        while clock.monotonic() - begin < seconds and not until():
            clock.advance(STEP_S)
            await self._step(clock.monotonic())
        return clock.monotonic() - begin

    async def _step(self, now: float) -> None:
        session = self.session
        ended = False
        while self._flying and self._flying[0][0] <= now:
            ended = True
            self._answer(heapq.heappop(self._flying)[2])
        if ended:
            await session.sink.commit()
        session.stats.elapse(now, STEP_S, paused=False, idle=frozenset())
        session.limiter.tick(now, session.schedule.in_flight)
        for name in list(session.schedule.wanted(max(64, session.limiter.limit))):
            batch = await session.feeders[name].read()
            session.schedule.offer(name, batch.jobs, exhausted=batch.exhausted)
        for job in session.schedule.take(free_slots(session, now), now):
            job.attempt += 1
            job.started_at = session.clock.wall()
            self.asked.append(job)
            wait_s = 0.1 if self.refuses(job) else self.reply_s
            heapq.heappush(self._flying, (now + wait_s, len(self.asked), job))

    def _answer(self, job: Job) -> None:
        spent = self.session.clock.monotonic() - job.taken_at
        if self.refuses(job):
            refused = fault("rate_limit", "tokens per minute", provider="SiliconFlow", status=429)
            fail(self.session, job, refused, spent)
        else:
            keep(self.session, job, [], reply_of(), spent)
