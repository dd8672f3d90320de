"""How a screen may be left, and how it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

Act = Callable[[], None]


AGAIN = "Run the same command again to go on: nothing on disk is asked twice."


def _nothing() -> None:
    pass


class Parting(Enum):
    """Why a screen is no longer there."""

    ENDED = auto()
    """The run has ended, and whoever watched it has left."""
    AWAY = auto()
    """Left by key; the run goes on."""
    LOST = auto()
    """The terminal has been hung up on; the run goes on."""
    CRASHED = auto()
    """A fault of the screen; the run goes on."""


@dataclass(frozen=True, slots=True)
class Exits:
    """What leaving means for this viewer."""

    background: bool = False
    """The run can go on without a screen: `q` offers it."""
    remote: bool = False
    """Another process does the run: signals and a lost terminal end only this screen."""
    steers: bool = True
    """Whether commands are sent at all."""
    without: frozenset[str] = frozenset()
    """Actions that there are not here: their keys do nothing and are not shown."""
    again: str = AGAIN
    """How to go on with the run after it was drained or stopped."""
    lost: Act = _nothing
    """Called at once when the terminal is gone: whoever reads or writes it would spin or fail."""
    abandon: Act = _nothing
    """Called on the third interrupt: end at once."""


@dataclass(frozen=True, slots=True)
class Left:
    """How a screen was left."""

    parting: Parting
    summary: bool = False
    """The summary is wanted in the scrollback though the run goes on (`Q`)."""


class Viewer(Protocol):
    """What a screen asks of the app that shows it."""

    exits: Exits

    def depart(self, parting: Parting, *, summary: bool = False) -> None:
        """Leave while the run goes on."""
        ...

    def measured(self) -> list[tuple[str, str]]:
        """What the screen has cost so far, as heads and sentences; empty without a terminal."""
        ...

    def use_theme(self, name: str) -> None:
        """Draw everything in another theme from now on."""
        ...

    def toggle_mouse(self) -> bool:
        """Mouse on or off; returns whether it is on now."""
        ...
