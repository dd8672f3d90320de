"""A run in a thread of its own with its own event loop: snapshots out, commands in.

A terminal that stops reading blocks whatever shares its loop (DESIGN §3); the engine does not.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import replace

from engine.assemble import assemble
from engine.changes import changes
from engine.clock import Clock, SystemClock, iso
from engine.commands import Command
from engine.conductor import Conductor
from engine.disk.rundir import claim, hold
from engine.errors import EaglegenError, ExitCode, RunUnreachableError
from engine.link.control import ControlServer
from engine.link.mailbox import LEFT_EARLY, Mailbox, Order, is_end, refuse
from engine.loop import calm_collector, new_loop
from engine.plan import Plan
from engine.preflight import inspect
from engine.reading import Reader
from engine.session import Session
from engine.steering import apply
from engine.view.estimate import forecasts
from engine.view.frame import Framer
from engine.view.opening import (
    check_order,
    first_snapshot,
    left_early,
    refused,
    write_starting,
)
from engine.view.publish import Publisher, write_early_end
from engine.view.snapshot import Snapshot
from engine.wire.client import Client, ensure_descriptors

PUBLISH_S = 0.25
STARTING_S = 1.0
"""The heartbeat's pace before there is a session."""


class EngineThread:
    """One session of a run; a RunHandle for the front ends of this process."""

    def __init__(
        self,
        plan: Plan,
        *,
        key: str | None,
        reader: Callable[[], Reader],
        clock: Clock | None = None,
        seed: int | None = None,
    ) -> None:
        self._plan = plan
        self._key = key
        self._make_reader = reader
        self._clock = clock or SystemClock()
        self._seed = seed
        self._snapshot = first_snapshot(plan, self._clock.wall())
        self._session: Session | None = None
        self._look: Callable[[], Snapshot] = self.snapshot
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Task[Session] | None = None
        self._mailbox = Mailbox()
        self._notes: list[str] = [*plan.notes]
        self._lock = threading.RLock()  # a signal handler may send while its thread sends
        self._done = threading.Event()
        self._held = ExitStack()
        self._owned: Callable[[], bool] = lambda: True
        self._thread = threading.Thread(target=self._main, name="engine", daemon=True)
        self._changes: tuple[str, ...] = ()
        self.error: BaseException | None = None
        """What ended the session early: an EaglegenError, or a fault of ours."""

    def start(self) -> None:
        """Take the run directory and begin; raises UsageError, IdentityError or RunHeldError."""
        ensure_descriptors(self._plan.concurrency)
        self._owned = self._held.enter_context(hold(self._plan.folder, iso(self._clock.wall())))
        try:
            recorded = self._plan.recorded
            if earlier := claim(self._plan.folder, recorded, self._plan.shard_record):
                now = recorded.model_dump(mode="json")
                self._changes = tuple(changes(earlier["manifest"], now))
        except BaseException:
            self._held.close()
            raise
        calm_collector()
        self._thread.start()

    def snapshot(self) -> Snapshot:
        """The newest snapshot; never blocks."""
        return self._snapshot

    @property
    def ended(self) -> bool:
        """True once the last snapshot is there."""
        return self._done.is_set()

    @property
    def left_early(self) -> bool:
        """Whether an order ended it before there was anything to end; valid once ended."""
        return self._session is None and self.error is None

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False where the time ran out first."""
        return self._done.wait(timeout)

    @property
    def exit_code(self) -> int:
        """What the process should return; valid once ended."""
        if isinstance(self.error, EaglegenError):
            return int(self.error.exit_code)
        if self.error is not None:
            return int(ExitCode.INTERNAL)
        code = self._snapshot.exit_code
        return int(ExitCode.INTERNAL) if code is None else code

    def send(self, command: Command, *, origin: str = "screen") -> Future[str]:
        """Hand a command over from any thread; before the session is there only an end is obeyed.

        The other ones wait for it.
        """
        future: Future[str] = Future()
        with self._lock:
            if self._session is None and not self.ended:
                self._mailbox.put(Order(command, origin, future))
                if is_end(command) and self._loop is not None:
                    self._loop.call_soon_threadsafe(self._leave_early)
                return future
        if self.ended or self._loop is None:
            future.set_exception(RunUnreachableError("the run has ended"))
            return future
        self._loop.call_soon_threadsafe(self._apply, Order(command, origin, future))
        return future

    def note(self, text: str) -> None:
        """Journal what happened to the front end; from any thread, and from a signal handler."""
        with self._lock:
            session, loop = self._session, self._loop
            if session is None or loop is None:
                self._notes.append(text)
                return
        with suppress(RuntimeError):  # the loop has ended, and the journal with it
            loop.call_soon_threadsafe(session.journal.note, "note", text)

    def abandon(self) -> None:
        """End at once, without waiting for a disk that does not write; the process must leave.

        What was in flight or not on disk yet is an attempt of unknown outcome for the next run.
        """
        if not self.ended:
            reason = "left at once: replies that are not on disk are lost"
            code = int(ExitCode.INTERRUPTED)
            self._snapshot = replace(self._snapshot, state="stopped", reason=reason, exit_code=code)
            self._done.set()

    def _main(self) -> None:
        try:
            with asyncio.Runner(loop_factory=new_loop) as runner:
                runner.run(self._run())
        except BaseException as error:  # noqa: BLE001 - handed to the main thread, never lost
            self._fail(error)
        finally:
            self._held.close()
            self._done.set()
            with self._lock:
                refuse(self._mailbox.empty(), left_early=self.left_early)

    def _fail(self, error: BaseException) -> None:
        """The session ends by a refusal or by a fault of ours."""
        self.error = error
        self._snapshot = refused(self._snapshot, error, self._clock.wall(), self.exit_code)
        self._write_early_end(begun=self._session is not None)

    def _write_early_end(self, *, begun: bool) -> None:
        if self._owned():
            write_early_end(self._plan.folder, self._snapshot, begun=begun)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        control = ControlServer(
            self._plan.folder, clock=self._clock, apply=self._obey, snapshot=self.snapshot
        )
        if problem := await control.start():
            self.note(problem)
        try:
            await self._live()
        except Exception as error:  # noqa: BLE001 - told to whoever watches, then to the main thread
            self._fail(error)
        finally:
            await control.close()

    async def _live(self) -> None:
        """From asking the endpoint to the last snapshot."""
        started, wall = self._clock.monotonic(), self._clock.wall()
        endpoint = self._plan.manifest.endpoint
        executor = ThreadPoolExecutor(1, "source")
        try:
            async with Client(endpoint.base_url, key=self._key, headers=endpoint.headers) as client:
                session = await self._opened(client, executor, started)
                if session is not None:
                    loop, stats = asyncio.get_running_loop(), session.stats.datasets
                    known = await loop.run_in_executor(executor, forecasts, session.plan, stats)
                    framer = Framer(session, started_wall=wall, started=started, forecasts=known)
                    await self._work(session, framer)
        finally:
            # who leaves early does not wait for a file that is still being read
            executor.shutdown(wait=self._session is not None, cancel_futures=True)

    async def _opened(
        self, client: Client, executor: ThreadPoolExecutor, started: float
    ) -> Session | None:
        """The session; None where an order to end came first."""
        self._opening = asyncio.create_task(self._open(client, executor))
        beating = asyncio.create_task(self._beat(started))
        self._leave_early()  # an order may have come before there was a task to cancel
        try:
            return await self._opening
        except asyncio.CancelledError:
            origin = self._mailbox.ended_by()
            if not origin:
                raise
            wall, code = self._clock.wall(), int(ExitCode.INTERRUPTED)
            self._snapshot = left_early(self._snapshot, origin, wall, code)
            self._write_early_end(begun=False)
            return None
        finally:
            beating.cancel()

    async def _open(self, client: Client, executor: ThreadPoolExecutor) -> Session:
        """Ask the endpoint, read the vocabulary and what is on disk."""
        facts = await inspect(client, self._plan.manifest.endpoint)
        loop = asyncio.get_running_loop()
        reader = await loop.run_in_executor(executor, self._make_reader)
        return await assemble(
            replace(self._plan, facts=facts),
            client=client,
            reader=reader,
            clock=self._clock,
            executor=executor,
            seed=self._seed,
            owned=self._owned,
        )

    async def _beat(self, started: float) -> None:
        """Say that the run is alive while it has nothing else to say."""
        while True:
            elapsed, wall = self._clock.monotonic() - started, self._clock.wall()
            self._snapshot = replace(self._snapshot, elapsed_s=elapsed, heartbeat_at=wall)
            write_starting(self._plan.folder, self._snapshot)
            await asyncio.sleep(STARTING_S)

    def _leave_early(self) -> None:
        """Give the opening up where an order to end has come; runs in the engine's loop."""
        if self._opening is not None and self._session is None and self._mailbox.ended_by():
            self._opening.cancel()

    async def _work(self, session: Session, framer: Framer) -> None:
        publisher = Publisher(session, framer, lambda: conductor.lag_s)
        conductor = Conductor(session, at_end=publisher.tell_end)
        with self._lock:
            self._session, self._look = session, publisher.look
            orders = self._mailbox.empty()
            notes, self._notes = self._notes, []
        for text in notes:
            session.journal.note("note", text)
        for change in self._changes:
            session.journal.note("note", f"changed since the last session: {change}")
        for order in orders:
            self._apply(order)
        publishing = asyncio.create_task(self._publish(publisher))
        publishing.add_done_callback(conductor.see_end)
        try:
            await conductor.run()
        finally:
            publishing.cancel()
            await asyncio.gather(publishing, return_exceptions=True)
            self.error = session.course.crash
            self._snapshot = await publisher.last()

    async def _publish(self, publisher: Publisher) -> None:
        while True:
            self._snapshot = await publisher.next()
            await asyncio.sleep(PUBLISH_S)

    def _obey(self, command: Command) -> str:
        """An order that came through the control socket, answered in words."""
        if self._session is not None:
            return self._do(command, "control")
        check_order(self._plan, command)
        self.send(command, origin="control").add_done_callback(self._tell_refusal)
        return LEFT_EARLY if is_end(command) else "noted: done once the endpoint has answered"

    def _tell_refusal(self, future: Future[str]) -> None:
        """Whoever gave the order has been answered already: the journal says why it is not done."""
        if self._session is not None and (error := future.exception()) is not None:
            self.note(f"an order from before the run began is not done: {error}")

    def _apply(self, order: Order) -> None:
        try:
            order.answer.set_result(self._do(order.command, order.origin))
        except EaglegenError as error:
            order.answer.set_exception(error)

    def _do(self, command: Command, origin: str) -> str:
        """Apply an order; who is answered finds it in the snapshot already."""
        assert self._session is not None  # noqa: S101 - set before any command is let in
        said = apply(self._session, command, origin=origin)
        self._snapshot = self._look()
        return said
