"""A run that goes on without its terminal, in the same process: by key, or hung up on."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.disk.rundir import RUN
from engine.handle import OwnRun
from tui.detach import LOG, Tether, divert, terminals
from tui.signals import routed


class Background:
    """The way out of the terminal; it is taken once."""

    def __init__(self, run: OwnRun, tether: Tether, *, on_screen: bool) -> None:
        """`on_screen`: all of stdin, stdout and stderr are the screen's, even those in a pipe."""
        self._run = run
        self._tether = tether
        self._descriptors = (0, 1, 2) if on_screen else terminals()
        self._gone = False

    @property
    def possible(self) -> bool:
        """Whether the shell gets its prompt back, so that it may be offered."""
        return self._tether.held

    def lose(self) -> None:
        """The terminal is dead: let nobody read or write it from now on."""
        divert(self._descriptors)

    def by_key(self) -> None:
        """The person goes; the terminal is restored already."""
        self._go("detached by key")

    def by_hangup(self) -> None:
        """The line was cut, or the terminal closed; without a terminal only SIGHUP tells so."""
        self._go("the terminal hung up" if self._descriptors else "hung up on (SIGHUP)")

    def by_crash(self) -> None:
        """The screen failed; the terminal stays, and gets lines from now on."""
        self._run.note("the screen failed: the run goes on without it")

    def _go(self, why: str) -> None:
        if self._gone:
            return
        self._gone = True
        folder = Path(self._run.snapshot().output)
        divert(self._descriptors, folder / LOG)
        self._run.note(f"{why}: the run goes on without a screen as process {os.getpid()}")
        self._tether.let_go(farewell(self._run.snapshot().run, folder))

    @contextmanager
    def surviving_hangup(self) -> Iterator[None]:
        """Go on when the line is lost; who has ignored SIGHUP for us (nohup) is obeyed."""
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            yield
            return
        with routed(lambda _: self.by_hangup(), signal.SIGHUP):
            yield


def farewell(name: str, folder: Path) -> str:
    """What the shell shows when the run has gone into the background."""
    where = shlex.quote(str(folder))
    several = "" if (folder / RUN).exists() else "--read-only "  # shards are watched together
    return (
        f"{name} goes on in the background (process {os.getpid()}).\n"
        f"  watch  eaglegen-tui attach {several}{where}\n"
        f"  end    eaglegen-tui control {where} drain\n"
        f"  log    {where}/{LOG}\n"
    )
