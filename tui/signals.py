"""Sends signals to whoever is in charge, without a moment at which the default action would do."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

Hear = Callable[[int], None]
INTERRUPTED = 130
"""The exit code of work that was ended by a signal (DESIGN §5)."""


@contextmanager
def ending_early() -> Iterator[None]:
    """Until somebody is in charge, SIGINT and SIGTERM end the process as an interrupted one.

    Imports alone take a second on a slow disk. Threads of their own are left alone.
    """
    numbers = (signal.SIGINT, signal.SIGTERM)
    ours = threading.current_thread() is threading.main_thread()
    heard = [n for n in numbers if ours and signal.getsignal(n) is not signal.SIG_IGN]
    with routed(_end, *heard):
        yield


def _end(number: int) -> NoReturn:
    sys.stderr.write(f"{signal.Signals(number).name}: interrupted\n")
    raise SystemExit(INTERRUPTED)


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
