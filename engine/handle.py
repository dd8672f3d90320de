"""What a front end holds of a run: the newest snapshot, and a way to send commands."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from engine.commands import Command
from engine.view.snapshot import Snapshot


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


class OwnRun(RunHandle, Protocol):
    """A run that this process answers for: its engine, or a fleet of workers."""

    error: BaseException | None
    """What ended it early: an EaglegenError, or a fault of ours."""

    def start(self) -> None:
        """Begin; raises EaglegenError where it cannot."""
        ...

    def send(self, command: Command, *, origin: str = "screen") -> Future[str]:
        """See RunHandle; `origin` says who ordered it."""
        ...

    def join(self, timeout: float | None = None) -> bool:
        """Wait for the end; False where the time (seconds) ran out first."""
        ...

    @property
    def exit_code(self) -> int:
        """What the process should return; valid once ended."""
        ...

    def note(self, text: str) -> None:
        """Journal what happened to the front end; from any thread, and from a signal handler."""
        ...

    def abandon(self) -> None:
        """End at once; the process must leave."""
        ...
