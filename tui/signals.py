"""Sends signals to whoever is in charge, without a moment at which the default action would do."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Hear = Callable[[int], None]


@contextmanager
def routed(hear: Hear, *numbers: int) -> Iterator[None]:
    """Call `hear` with each signal, in the main thread, between two instructions of any code."""

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        hear(number)

    earlier = {number: signal.signal(number, handle) for number in numbers}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
