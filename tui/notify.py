"""`run --notify CMD`: runs a command of the user's when the run is done, waits, or stops."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.format import safe_text
from engine.handle import OwnRun
from engine.view.snapshot import Snapshot
from tui.detach import LOG

SECRETS = ("EAGLEGEN_API_KEY", "OPENROUTER_API_KEY")
_POLL_S = 0.5
_PATIENCE_S = 30.0
"""How long a command may take; the run's end waits for it no longer."""
_AGAIN_S = 600.0
"""The same wait is not told again within this time: an account limit comes and goes by minutes."""


@contextmanager
def notifying(run: OwnRun, command: str | None) -> Iterator[None]:
    """Watch the run for as long as the context lasts, and tell its end before it closes."""
    if command is None:
        yield
        return
    notifier = _Notifier(run, command)
    notifier.start()
    yield
    notifier.join(2 * _PATIENCE_S)  # a run that never began leaves by its exception instead


class Waits:
    """Which waits are news; `now` in seconds."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}
        self._waiting = False

    def is_news(self, snapshot: Snapshot, now: float) -> bool:
        """Whether the run has begun to wait, for a reason not told lately."""
        began = snapshot.state == "waiting" and not self._waiting
        self._waiting = snapshot.state == "waiting"
        what = snapshot.reason.partition(";")[0]  # behind it stands how long it may take
        if not began or now - self._told.get(what, -_AGAIN_S) < _AGAIN_S:
            return False
        self._told[what] = now
        return True


class _Notifier(threading.Thread):
    def __init__(self, run: OwnRun, command: str) -> None:
        super().__init__(name="notify", daemon=True)
        self._run = run
        self._command = command

    def run(self) -> None:
        waits = Waits()
        while not self._run.join(_POLL_S):
            snapshot = self._run.snapshot()
            if waits.is_news(snapshot, snapshot.elapsed_s):
                tell(self._command, snapshot, None)
        tell(self._command, self._run.snapshot(), self._run.exit_code)


def tell(command: str, snapshot: Snapshot, exit_code: int | None) -> None:
    """Run the command with the run's state in its environment, and never the key.

    Its output goes to the run's log, so that it cannot disturb a screen.
    """
    environment = {name: value for name, value in os.environ.items() if name not in SECRETS}
    environment |= {
        "EAGLEGEN_RUN": snapshot.run,
        "EAGLEGEN_RUN_DIR": snapshot.output,
        "EAGLEGEN_STATE": snapshot.state,
        "EAGLEGEN_REASON": safe_text(snapshot.reason),
        "EAGLEGEN_EXIT": "" if exit_code is None else str(exit_code),
    }
    with suppress(OSError, subprocess.TimeoutExpired), Path(snapshot.output, LOG).open("ab") as log:
        subprocess.run(  # noqa: S603 - the user's own command, by the user's own shell
            ["/bin/sh", "-c", command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            timeout=_PATIENCE_S,
            check=False,
            start_new_session=True,
        )
