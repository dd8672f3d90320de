"""Workers in threads of this process: what Ray does, without Ray; the engines are real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from engine.commands import Stop, to_wire
from engine.fleet.run import Absence
from engine.fleet.worker import Report, ShardWorker
from engine.plan import Options


class LocalCrew:
    """A Crew whose workers a test can take away and bring back."""

    def __init__(self) -> None:
        self.workers: list[ShardWorker] = []
        self.absent: dict[int, Absence] = {}
        self.dismissed: list[int] = []
        self.closed = False
        self._pool = ThreadPoolExecutor(4)
        self._given: tuple[Path, Sequence[Options]] = (Path(), ())

    def start(self, manifest: Path, options: Sequence[Options], folder: Path) -> None:
        self._given = manifest, options
        folder.mkdir(parents=True, exist_ok=True)
        self.workers = [ShardWorker(str(manifest), each, ".", again=False) for each in options]

    def replace(self, number: int) -> None:
        """End a worker as if its process were gone, and make it anew."""
        self.absent[number] = Absence("its process died, and Ray places it again", final=False)
        old = self.workers[number]
        old.order(to_wire(Stop()), "test")
        manifest, options = self._given
        self.workers[number] = ShardWorker(str(manifest), options[number], ".", again=True)
        del self.absent[number]

    def look(self, number: int) -> Report | Absence | None:
        return self.absent.get(number) or self.workers[number].look()

    def order(self, number: int, wire: Mapping[str, Any], origin: str) -> Future[tuple[bool, str]]:
        return self._pool.submit(self.workers[number].order, wire, origin)

    def dismiss(self, number: int) -> None:
        self.dismissed.append(number)

    def close(self) -> None:
        self.closed = True
        self._pool.shutdown()
