"""The only place that asks the machine for the time or for randomness."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Monotonic seconds for intervals, epoch seconds for the record."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch, UTC."""
        ...


class SystemClock:
    """The machine's clock."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        return time.monotonic()

    def wall(self) -> float:
        """Seconds since the epoch, UTC."""
        return time.time()


def iso(epoch: float) -> str:
    """Epoch seconds as ISO 8601 in UTC with milliseconds: `2026-11-30T14:03:22.125Z`."""
    stamp = datetime.fromtimestamp(epoch, UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")


def local_hms(epoch: float) -> str:
    """Epoch seconds as the local time of day: `14:03:22`."""
    return datetime.fromtimestamp(epoch, UTC).astimezone().strftime("%H:%M:%S")


def local_hm(epoch: float) -> str:
    """Epoch seconds as the local time of day without seconds: `14:03`."""
    return local_hms(epoch)[:5]


def randomness(seed: int | None = None) -> random.Random:
    """A generator for jitter and sampling; seeded in tests."""
    return random.Random(seed)
