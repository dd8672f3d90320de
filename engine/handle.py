"""What a front end holds of a run: the newest snapshot, and a way to send commands."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from engine.commands import Command
from engine.snapshot import Snapshot


class RunHandle(Protocol):
    """A run in this process (EngineThread) or in another one (a socket)."""

    def snapshot(self) -> Snapshot:
        """The newest snapshot; never blocks."""
        ...

    def send(self, command: Command) -> Future[str]:
        """Hand a command over; the future says in words what was done, or raises EaglegenError."""
        ...

    @property
    def ended(self) -> bool:
        """True once the last snapshot (with its exit code) is there."""
        ...
