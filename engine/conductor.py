"""The engine's main loop: reads sources on, starts what the schedule gives, ends the run.

The only place that starts tasks. `run` returns when the session has ended and all is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace

from engine.attempt import cancelled_fault, choose_hosts, messages_of, perform
from engine.disk.ledger import FAILURES, SENT
from engine.disk.records import invalid_message, invalid_record, sent_record
from engine.endings import see_cap, see_failures
from engine.errors import EaglegenError
from engine.faults.fault import Fault, fault
from engine.feed.feeder import Batch
from engine.feed.prompts import InvalidRow
from engine.heavy import read_if_heavy
from engine.money.funds import look_at_funds, watch_funds
from engine.schedule import Job
from engine.session import Session
from engine.settle import close_at_budget, fail, keep, record
from engine.slots import LAUNCH, free_slots
from engine.tokens.template import PromptError

TICK_S = 0.25


class Conductor:
    """Runs one session in the current event loop; `at_end` may tell the journal how it ended."""

    def __init__(self, session: Session, *, at_end: Callable[[], None] = lambda: None) -> None:
        self._session = session
        self._at_end = at_end
        self._reading: set[asyncio.Task[None]] = set()
        self._read_now: set[str] = set()
        self._ticked = session.clock.monotonic()
        self.lag_s = 0.0
        """How late the last ticks came: the loop's lag."""

    async def run(self) -> None:
        """Work until every dataset is complete, or the course says to end."""
        session = self._session
        writing = asyncio.create_task(session.sink.run())
        helpers = [asyncio.create_task(self._tick_forever())]
        if session.asking.api == "openrouter":
            await self._unless_over(look_at_funds(session))
            helpers.append(asyncio.create_task(watch_funds(session)))
        for helper in helpers:
            helper.add_done_callback(self.see_end)
        session.course.started = True
        try:
            while not (self._finished() or writing.done()):
                await self._step()
        finally:
            await self._cancel(*helpers)
            await self._cancel_attempts()
            await self._settle_reading()
            if not writing.done():  # a writer that has failed answers nobody, and is heard below
                await session.sink.commit()
            self._tick(session.clock.monotonic())
            session.course.ended = True
            self._at_end()
            session.sink.close()
            await writing

    async def _unless_over(self, asking: Coroutine[None, None, None]) -> None:
        """Ask the endpoint something before the start; an order to end does not wait for it."""
        session = self._session
        task = asyncio.create_task(asking)
        task.add_done_callback(lambda _: session.wake.set())
        while not task.done() and not session.course.draining:
            session.wake.clear()
            await session.wake.wait()
        if task.done():
            task.result()
        else:
            await self._cancel(task)

    async def _step(self) -> None:
        session = self._session
        session.wake.clear()
        if session.sink.fault is not None:
            self._crash(session.sink.fault)
        if session.course.stopping:
            await self._cancel_attempts()
        elif not session.course.draining and not session.sink.trouble:
            self._read_on()
            await self._launch()
        see_cap(session)
        see_failures(session)
        if not self._finished():
            await self._rest()

    async def _launch(self) -> None:
        """Start what fits: sent.jsonl has the request before it leaves."""
        session = self._session
        now = session.clock.monotonic()
        jobs = session.schedule.take(free_slots(session, now), now)
        if not jobs:
            return
        if len(jobs) == LAUNCH:
            session.wake.set()  # there may be more: go on after a look around
        for job in jobs:
            job.attempt += 1
            ignore = choose_hosts(session, job)
            job.started_at = session.clock.wall()
            record = sent_record(job, job.started_at, ignore)
            session.sink.put(f"{job.prompt.dataset}/{SENT}", record)
        await session.sink.commit()
        if session.course.stopping:
            for job in jobs:
                fail(session, job, cancelled_fault(sent=False), 0.0)
            return
        for job in jobs:
            task = asyncio.create_task(self._attempt(job))
            session.attempts[task] = job.id
            task.add_done_callback(self.see_end)

    async def _attempt(self, job: Job) -> None:
        started = self._session.clock.monotonic()
        try:
            await self._ask(job, started)
        except Exception as error:
            # a fault of ours must not keep the request in flight for ever, nor off the record
            self._session.schedule.cancelled(job)
            ours = fault("unexpected", f"{type(error).__name__}: {error}")
            record(self._session, job, ours, self._session.clock.monotonic() - started)
            raise

    async def _ask(self, job: Job, started: float) -> None:
        session = self._session
        try:
            messages = messages_of(session, job)
            outcome = await perform(session, job, messages)
        except PromptError as error:
            outcome = replace(fault("invalid_row", str(error)), sent=False)
        except asyncio.CancelledError:
            fail(session, job, cancelled_fault(), session.clock.monotonic() - started)
            raise
        latency_s = session.clock.monotonic() - started
        if isinstance(outcome, Fault):
            fail(session, job, outcome, latency_s)
        else:
            reading = await read_if_heavy(session.reader, job, messages, outcome)
            keep(session, job, messages, outcome, latency_s, reading)

    def see_end(self, task: asyncio.Task[None]) -> None:
        """Done-callback of every task of the session: a fault of ours ends the run."""
        session = self._session
        session.attempts.pop(task, None)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._crash(error)
        session.wake.set()

    def _crash(self, error: BaseException) -> None:
        """Let what is in flight finish, since it is paid for; the first fault is reported."""
        course = self._session.course
        if course.crash is None:
            course.crash = error
            ours = f"a fault of ours ({type(error).__name__}); what was paid for is on disk"
            course.drain(str(error) if isinstance(error, EaglegenError) else ours)
            self._session.journal.note("state", course.reason)

    def _read_on(self) -> None:
        session = self._session
        slots = max(64, session.limiter.limit)
        for name in list(session.schedule.wanted(slots)):
            if name not in self._read_now:
                self._read_now.add(name)
                task = asyncio.create_task(self._read(name))
                self._reading.add(task)
                task.add_done_callback(self.see_end)
                task.add_done_callback(self._reading.discard)

    async def _read(self, name: str) -> None:
        session = self._session
        try:
            batch = await session.feeders[name].read()
        finally:
            self._read_now.discard(name)
        self._offer(name, batch)

    def _offer(self, name: str, batch: Batch) -> None:
        session = self._session
        queue = session.schedule.queues[name]
        for row in batch.invalid:
            self._note_invalid(name, row)
        queue.ok -= batch.partial + batch.orphans
        queue.failed -= batch.lost_failures
        if batch.orphans > 0:
            session.journal.note(
                "note",
                f"{name}: {batch.orphans} prompts with rows on disk are no longer in its source; "
                "their rows stay",
                dataset=name,
            )
        session.schedule.offer(
            name, batch.jobs, invalid=len(batch.invalid), exhausted=batch.exhausted
        )
        late = session.clock.monotonic() - session.clock.wall()
        for at, job in batch.delayed:
            session.schedule.wait(job, at + late)
        session.wake.set()

    def _note_invalid(self, name: str, row: InvalidRow) -> None:
        session = self._session
        known = session.feeders[name].known_invalid
        if (row.index, invalid_message(row)) not in known:
            session.sink.put(f"{name}/{FAILURES}", invalid_record(row, session.clock.wall()))

    async def _rest(self) -> None:
        """Sleep until something happens or something waiting is due."""
        session = self._session
        now = session.clock.monotonic()
        dues = [
            session.schedule.next_due(),
            session.limiter.held_until(now),
            session.breakers.next_start(now),
        ]
        # what was due before could have started just now, and was held back by something else
        due = min((moment for moment in dues if moment and moment > now), default=now + TICK_S)
        with suppress(TimeoutError):
            async with asyncio.timeout(min(due - now, TICK_S)):
                await session.wake.wait()

    async def _tick_forever(self) -> None:
        session = self._session
        while True:
            before = session.clock.monotonic()
            await asyncio.sleep(TICK_S)
            now = session.clock.monotonic()
            self.lag_s = max(0.9 * self.lag_s, now - before - TICK_S)
            self._tick(now)

    def _tick(self, now: float) -> None:
        session = self._session
        session.limiter.tick(now, session.schedule.in_flight)
        for change in session.limiter.drain_changes():
            session.journal.note(
                "limit", f"limit {change.limit}: {change.reason}", limit=change.limit
            )
        session.stats.limit.set(now, session.limiter.limit)
        queues = session.schedule.queues.values()
        idle = frozenset(queue.name for queue in queues if self._idle(queue.name))
        session.stats.elapse(now, now - self._ticked, paused=len(idle) == len(queues), idle=idle)
        self._ticked = now
        for queue in queues:
            close_at_budget(session, queue.name)
            verdicts = session.stats.datasets[queue.name].verdicts
            if queue.complete or (session.course.draining and not session.schedule.in_flight):
                verdicts.finish()
            else:
                verdicts.resume()

    def _idle(self, name: str) -> bool:
        """Whether a dataset's silence is nobody's failure: paused, skipped, queued or done."""
        queue = self._session.schedule.queues[name]
        return not queue.in_flight and (self._session.schedule.paused or queue.state != "running")

    def _finished(self) -> bool:
        session = self._session
        if session.attempts or session.schedule.in_flight:
            return False
        return session.course.draining or (session.schedule.complete and not self._read_now)

    async def _cancel_attempts(self) -> None:
        tasks = list(self._session.attempts)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _settle_reading(self) -> None:
        await asyncio.gather(*self._reading, return_exceptions=True)

    @staticmethod
    async def _cancel(*tasks: asyncio.Task[None]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
