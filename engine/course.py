"""The run as a whole: where it is in its life, why, and with which exit code it ends."""

from __future__ import annotations

from dataclasses import dataclass

from engine.errors import ExitCode
from engine.view.snapshot import RunState


@dataclass(slots=True)
class Course:
    """Run-level facts; `state` and `exit_code` are derived from them, never set."""

    started: bool = False
    draining: bool = False
    stopping: bool = False
    ended: bool = False
    ordered: bool = False
    """The end was ordered by an operator or a signal, with work left."""
    reason: str = ""
    """Why it drains, in words."""
    fatal: str = ""
    """The endpoint's refusal that ended the run, with what to do."""
    capped: bool = False
    """`max_cost_usd` leaves no room."""
    crash: BaseException | None = None
    too_many_failures: bool = False
    """--max-error-rate was passed."""

    def drain(self, reason: str) -> None:
        """Start nothing any more; the first reason stands."""
        if not self.draining:
            self.draining = True
            self.reason = reason

    def state(self, *, paused: bool, waiting: str, work_left: bool) -> RunState:
        """The state word of DESIGN §6; `waiting` is why the engine itself waits."""
        if self.ended:
            return "stopped" if work_left else "done"
        if self.draining or self.stopping:
            return "draining"
        if not self.started:
            return "starting"
        if waiting:
            return "waiting"
        return "paused" if paused else "running"

    def exit_code(self, *, work_left: bool, incomplete: bool) -> ExitCode:
        """Where several apply: 1, 130, 4, 6, 3 (DESIGN §5)."""
        if self.crash is not None:
            return ExitCode.INTERNAL
        if self.ordered and work_left:
            return ExitCode.INTERRUPTED
        if self.fatal:
            return ExitCode.ENDPOINT
        if self.capped and work_left:
            return ExitCode.COST_CAP
        if incomplete or self.too_many_failures:
            return ExitCode.INCOMPLETE
        return ExitCode.OK
