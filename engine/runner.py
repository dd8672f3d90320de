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
from engine.client import Client, ensure_descriptors
from engine.clock import Clock, SystemClock, iso
from engine.commands import Command
from engine.conductor import Conductor
from engine.control import ControlServer
from engine.errors import EaglegenError, ExitCode, RunUnreachableError
from engine.frame import Framer
from engine.loop import calm_collector, new_loop
from engine.opening import first_snapshot, refused
from engine.plan import Plan
from engine.preflight import inspect
from engine.publish import Publisher, write_early_end
from engine.reading import Reader
from engine.rundir import RUN, claim, hold, read_json
from engine.session import Session
from engine.snapshot import Snapshot
from engine.steering import apply

PUBLISH_S = 0.25


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
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: list[tuple[Command, str, Future[str]]] = []
        self._notes: list[str] = []
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
            self._changes = _changes(self._plan)
            claim(self._plan.folder, self._plan.manifest)
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
        """Hand a command over from any thread."""
        future: Future[str] = Future()
        with self._lock:
            if self._session is None and not self.ended:
                self._waiting.append((command, origin, future))
                return future
        if self.ended or self._loop is None:
            future.set_exception(RunUnreachableError("the run has ended"))
            return future
        self._loop.call_soon_threadsafe(self._apply, command, origin, future)
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
            self.error = error
            self._snapshot = refused(self._snapshot, error, self._clock.wall(), self.exit_code)
            write_early_end(self._plan.folder, self._snapshot, begun=self._session is not None)
        finally:
            self._held.close()
            self._done.set()
            self._refuse_waiting()

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        started, wall = self._clock.monotonic(), self._clock.wall()
        endpoint = self._plan.manifest.endpoint
        with ThreadPoolExecutor(1, "source") as executor:
            async with Client(endpoint.base_url, key=self._key, headers=endpoint.headers) as client:
                facts = await inspect(client, endpoint)
                plan = replace(self._plan, facts=facts)
                reader = await self._loop.run_in_executor(executor, self._make_reader)
                session = await assemble(
                    plan,
                    client=client,
                    reader=reader,
                    clock=self._clock,
                    executor=executor,
                    seed=self._seed,
                    owned=self._owned,
                )
                await self._work(session, Framer(session, started_wall=wall, started=started))

    async def _work(self, session: Session, framer: Framer) -> None:
        publisher = Publisher(session, framer, lambda: conductor.lag_s)
        conductor = Conductor(session, at_end=publisher.tell_end)
        with self._lock:
            self._session = session
            waiting, self._waiting = self._waiting, []
            notes, self._notes = self._notes, []
        for text in notes:
            session.journal.note("note", text)
        for change in self._changes:
            session.journal.note("note", f"changed since the last session: {change}")
        for command, origin, future in waiting:
            self._apply(command, origin, future)
        control = ControlServer(
            session.plan.folder,
            clock=self._clock,
            apply=lambda command: apply(session, command, origin="control"),
            snapshot=self.snapshot,
        )
        if problem := await control.start():
            session.journal.note("note", problem)
        publishing = asyncio.create_task(self._publish(publisher))
        publishing.add_done_callback(conductor.see_end)
        try:
            await conductor.run()
        finally:
            publishing.cancel()
            await asyncio.gather(publishing, return_exceptions=True)
            self.error = session.course.crash
            self._snapshot = await publisher.last()
            await control.close()

    async def _publish(self, publisher: Publisher) -> None:
        while True:
            self._snapshot = await publisher.next()
            await asyncio.sleep(PUBLISH_S)

    def _apply(self, command: Command, origin: str, future: Future[str]) -> None:
        assert self._session is not None  # noqa: S101 - set before any command is let in
        try:
            future.set_result(apply(self._session, command, origin=origin))
        except EaglegenError as error:
            future.set_exception(error)

    def _refuse_waiting(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for _, _, future in waiting:
            future.set_exception(RunUnreachableError("the run ended before it began"))


def _changes(plan: Plan) -> tuple[str, ...]:
    record = read_json(plan.folder / RUN)
    if not isinstance(record, dict):
        return ()
    return tuple(changes(record.get("manifest") or {}, plan.manifest.model_dump(mode="json")))
