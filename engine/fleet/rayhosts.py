"""Ray places the workers, restarts them and reports; the one module that imports ray."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from engine.audits.workers import usable_cores
from engine.errors import UsageError
from engine.fleet.run import Absence
from engine.fleet.worker import Report, ShardWorker

if TYPE_CHECKING:
    from engine.plan import Options

RESTARTS: Final = 10
"""How often Ray places a worker again: each death may cost what was in flight a second time."""
LOG: Final = "ray.log"
_PLACE: Final = re.compile(r"(?:ray://)?([^/]+):(\d+)")
_CONNECT_S: Final = 5.0
LOCAL: Final = "local"
"""The cluster of RAY_ADDRESS, else a Ray of this host, which begins and ends with the run."""
_STORE_BYTES: Final = 100 << 20
_ANSWERERS: Final = 4
"""Calls that a worker answers at a time: an order must not wait for a look."""


def require_ray() -> None:
    """Raise UsageError where ray is not installed."""
    try:
        import ray  # noqa: F401 - only whether it is there
    except ImportError:
        raise UsageError(
            "--ray needs ray, which is not installed",
            hint="pip install 'eaglegen-tui[ray]', on every host of the cluster.",
        ) from None


class Actor:
    """A worker as an actor. Ray makes it anew, with the same arguments, when its process dies."""

    def __init__(self, manifest: str, options: Options, folder: str) -> None:
        import ray

        again = ray.get_runtime_context().was_current_actor_reconstructed
        self._worker = ShardWorker(manifest, options, folder, again=again)

    def look(self) -> Report:
        """See ShardWorker."""
        return self._worker.look()

    def order(self, wire: Mapping[str, Any], origin: str) -> tuple[bool, str]:
        """See ShardWorker."""
        return self._worker.order(wire, origin)


class RayCrew:
    """Workers by their number from 0; a Crew of engine.fleet.run."""

    def __init__(self, address: str) -> None:
        """`address` as ray.init takes it, or LOCAL."""
        self._address = address
        self._actors: list[Any] = []
        self._asked: dict[int, Any] = {}
        self._log: IO[str] | None = None
        self._stderr = sys.stderr

    def start(self, manifest: Path, options: Sequence[Options], folder: Path) -> None:
        """Connect and place one worker for each of `options`; raises UsageError."""
        import ray

        folder.mkdir(parents=True, exist_ok=True)
        # ray prints what becomes of workers to sys.stderr, which may be a screen
        self._log = (folder / LOG).open("a", encoding="utf-8", buffering=1)
        sys.stderr = self._log
        try:
            with _own_signals():
                self._connect(len(options))
        except BaseException:
            self.close()
            raise
        make = ray.remote(Actor).options(
            num_cpus=1,
            max_restarts=RESTARTS,
            max_task_retries=0,
            max_concurrency=_ANSWERERS,
            scheduling_strategy="SPREAD",
        )
        where = str(Path.cwd())
        self._actors = [make.remote(str(manifest), each, where) for each in options]

    def _connect(self, workers: int) -> None:
        import ray

        # without an address ray.init would take whatever cluster was begun on this host last
        named = None if self._address == LOCAL else self._address
        address = named or os.environ.get("RAY_ADDRESS") or LOCAL
        _check_answers(address)
        # the store holds nothing but snapshots on their way; usage is nobody's business
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        here: dict[str, Any] = {
            "num_cpus": max(workers, usable_cores()),
            "include_dashboard": False,
            "object_store_memory": _STORE_BYTES,
        }
        try:
            ray.init(
                address=address,
                logging_level=logging.ERROR,
                log_to_driver=False,
                **(here if address == LOCAL else {}),
            )
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise UsageError(
                f"--ray {address}: no Ray answers: {error}",
                hint="A cluster that wants a token wants RAY_AUTH_MODE=token here too.",
            ) from None

    def look(self, number: int) -> Report | Absence | None:
        """A worker's report, or why it has none; None until it has answered."""
        import ray
        from ray.exceptions import ActorDiedError, RayError

        if number not in self._asked:
            self._asked[number] = self._actors[number].look.remote()
        ready, _ = ray.wait([self._asked[number]], timeout=0)
        if not ready:
            return None
        answer = self._asked.pop(number)
        try:
            report: Report = ray.get(answer)
        except ActorDiedError as error:
            return Absence(_cause(error), final=True)
        except RayError:
            return Absence("its process died, and Ray places it again", final=False)
        return report

    def order(self, number: int, wire: Mapping[str, Any], origin: str) -> Future[tuple[bool, str]]:
        """Pass an order on; the future fails where the worker dies before it has answered."""
        future: Future[tuple[bool, str]] = self._actors[number].order.remote(wire, origin).future()
        return future

    def dismiss(self, number: int) -> None:
        """End a worker whose engine has ended."""
        import ray

        ray.kill(self._actors[number], no_restart=True)

    def close(self) -> None:
        """Leave Ray; workers that still run end with it, and their files stay."""
        import ray

        with suppress(Exception):  # whatever Ray says of its own end, ours is decided
            ray.shutdown()
        if self._log is not None:
            sys.stderr = self._stderr
            self._log.close()
            self._log = None


def _check_answers(address: str) -> None:
    """Ray itself would try for minutes; raises UsageError."""
    match = _PLACE.fullmatch(address)
    if match is None:  # such as `auto`
        return
    try:
        socket.create_connection((match[1].strip("[]"), int(match[2])), _CONNECT_S).close()
    except OSError as error:
        raise UsageError(
            f"--ray {address}: no Ray answers there: {error}",
            hint="`ray start --head` prints the address of the cluster that it begins.",
        ) from None


def _cause(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(lines)[:300]


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray's handler of SIGTERM would end the driver without draining its workers."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
