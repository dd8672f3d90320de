"""How the engine's thread runs: few socket events at a time, and a garbage collector that rests."""

from __future__ import annotations

import asyncio
import gc
import selectors

EVENTS = 32
"""Socket events in one turn of the loop. Without a bound, 2000 replies that wait are all read, then
all parsed, then all stored; a second passes before a command, a write or the heartbeat is heard,
the provider runs dry meanwhile, and its next replies come all at once too."""
_YOUNG, _MIDDLE, _OLD = 50_000, 5, 20
"""Python's 700, 10, 10 walk through all that is in flight every few seconds, 0.3 s each time, and
find nothing: what a reply is made of is freed by counting references."""


class _FewEvents(selectors.DefaultSelector):
    """Hands out what one look at the sockets has found in several turns, before the next look."""

    def __init__(self) -> None:
        super().__init__()
        self._left: list[tuple[selectors.SelectorKey, int]] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """At most `EVENTS` events; an old one of a socket that was closed meanwhile is dropped."""
        if not self._left:
            self._left = super().select(timeout)
        turn, self._left = self._left[:EVENTS], self._left[EVENTS:]
        known = self.get_map()
        return [(key, events) for key, events in turn if known.get(key.fd) is key]


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop for the engine's thread, as asyncio.Runner's `loop_factory`."""
    return asyncio.SelectorEventLoop(_FewEvents())


def calm_collector() -> None:
    """Make collections rare for the whole process, and spare them what is loaded already."""
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
