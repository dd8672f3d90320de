"""One shard's engine in a process of its own, for a supervisor on another host; knows no Ray."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from engine.clock import SystemClock
from engine.commands import from_wire
from engine.errors import EaglegenError, ExitCode, RunHeldError
from engine.fleet.files import is_live, read_status
from engine.manifest import load_manifest
from engine.plan import Options, Plan, make_plan
from engine.readers import reader_for
from engine.reading import Reader
from engine.runner import EngineThread
from engine.settings import key_for, load_settings
from engine.view.snapshot import Snapshot

PATIENCE_S: Final = 180.0
"""How long a worker that was placed again waits for the lock of the one before: a server of a
shared file system keeps a dead host's locks for a lease (90 s on NFSv4)."""
_TRY_S, _ANSWER_S = 1.0, 10.0


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker says when it is asked."""

    life: str
    """Another one where the worker was made anew: process ids come again."""
    pid: int
    host: str
    snapshot: Snapshot | None
    """None until the engine has begun."""
    ended: bool = False
    exit_code: int | None = None
    words: str = ""
    """Why there is no engine: what it waits for, or what it was refused for."""


class ShardWorker:
    """Runs the engine as `run --shard` does; key and settings are those of its own environment."""

    def __init__(self, manifest: str, options: Options, folder: str, *, again: bool) -> None:
        """`folder` is where the supervisor was started: its `.env` counts, as for `run`.

        `again` says that a process before this one has died: its lock may outlive it.
        """
        self._path, self._options, self._cwd = Path(manifest), options, Path(folder)
        self._again = again
        self._life = uuid4().hex
        self._run: EngineThread | None = None
        self._words = "is starting"
        self._code: int | None = None
        self._pause = threading.Event()
        threading.Thread(target=self._begin, name="begin", daemon=True).start()

    def look(self) -> Report:
        """The newest snapshot, and whether the engine has ended."""
        run = self._run
        who = self._life, os.getpid(), socket.gethostname()
        if run is None:
            ended = self._code is not None
            return Report(*who, None, ended, self._code, self._words)
        ended = run.ended
        code = run.exit_code if ended else None
        words = "" if run.error is None else str(run.error).replace("\n", " ")
        return Report(*who, run.snapshot(), ended, code, words)

    def order(self, wire: Mapping[str, Any], origin: str) -> tuple[bool, str]:
        """Carry out a command; whether it was, and what was done in words."""
        run = self._run
        if run is None:
            return False, self._words
        try:
            return True, run.send(from_wire(wire), origin=origin).result(_ANSWER_S)
        except EaglegenError as error:
            return False, error.message
        except TimeoutError:
            return False, "the engine has not answered yet"

    def _begin(self) -> None:
        try:
            self._start()
        except EaglegenError as error:
            self._words, self._code = str(error).replace("\n", " "), int(error.exit_code)
        except Exception as error:  # noqa: BLE001 - told to the supervisor, never lost
            self._words = f"a fault of ours ({type(error).__name__}: {error})"
            self._code = int(ExitCode.INTERNAL)

    def _start(self) -> None:
        manifest = load_manifest(self._path)
        settings = load_settings(self._path.parent, self._cwd)
        plan = make_plan(manifest, self._options)
        key = key_for(settings, plan.manifest.endpoint.base_url)
        if self._again:
            self._await_predecessor(plan)
        run = self._started(plan, key, reader_for(plan.manifest, settings))
        if self._again:
            run.note("its process had died: placed again, it goes on from its files")
        self._run = run

    def _started(self, plan: Plan, key: str | None, reader: Callable[[], Reader]) -> EngineThread:
        for _ in range(int(PATIENCE_S / _TRY_S) if self._again else 1):
            run = EngineThread(plan, key=key, reader=reader)
            try:
                run.start()
            except RunHeldError as error:
                self._words = f"waits for a lock: {error.message}"
                held = error
                self._pause.wait(_TRY_S)
            else:
                return run
        raise held

    def _await_predecessor(self, plan: Plan) -> None:
        """A host that was lost may still work, where locks do not reach: wait for its silence."""
        clock = SystemClock()
        for _ in range(int(PATIENCE_S / _TRY_S)):
            if not is_live(plan.folder, read_status(plan.folder), clock.wall()):
                return
            self._words = "waits until the process before it is silent"
            self._pause.wait(_TRY_S)
        raise RunHeldError(f"{plan.folder}: another process still works on it")
