"""A clock that tests turn by hand."""

from __future__ import annotations

EPOCH = 1_796_047_402.125
"""2026-11-30T14:03:22.125Z."""


class VirtualClock:
    """Both kinds of time, moved only by `advance`."""

    def __init__(self, now: float = 1000.0) -> None:
        self._now = now
        self._epoch = EPOCH - now

    def monotonic(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._now + self._epoch

    def advance(self, seconds: float) -> None:
        self._now += seconds
