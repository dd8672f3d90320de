"""How many bytes a second the screen may cost: whole frames are left out, never parts of one.

A key's own picture is always drawn; the frames after it wait until it is paid for. The budget of
8 KB/s (issue 5) is for every size, since a line does not widen with the window. Eight moving
datasets need 1 KB/s at 80x24 and 4 KB/s at 160x48 with two frames a second, 8 KB/s with ten
(tests/perf/traffic.py); the demo's first minute, whose charts shift every second, needs up to
6 KB/s at 80x24 and 10 at 120x40.
"""

from __future__ import annotations

from collections import deque

KILOBYTE = 1000
DEFAULT_KB = 8.0
BURST_S = 1.0
"""Seconds of the budget that a quiet screen may save up: a sudden change is drawn at once."""
START_S = 3.0
"""Seconds of the budget for the first pictures, which are whole screens."""
STILL_S = 2.0
"""The longest that frames wait for what keys have cost; the rest of such a debt is forgiven."""
WINDOW_S = 5.0
"""Seconds over which the rate is measured that people see."""


class Governor:
    """Told how much was written, it says whether the next frame may be drawn.

    Times are monotonic seconds. Over any span of T seconds without a key the screen costs at most
    `budget` x (T + BURST_S) and one frame; the first span may cost START_S instead of BURST_S.
    """

    def __init__(self, budget: float) -> None:
        """`budget` is in bytes per second."""
        self.budget = budget
        self.total = 0
        """Bytes written so far."""
        self.drawn = 0
        self.left_out = 0
        """Frames that were due and not drawn."""
        self._credit = budget * START_S
        self._at: float | None = None
        self._began = 0.0
        self._samples: deque[tuple[float, int]] = deque()

    def note(self, now: float, total: int) -> None:
        """Hear how many bytes have been written since the start."""
        if self._at is None:
            self._began = self._at = now
        since, self._at = self._at, now
        credit = self._credit + (now - since) * self.budget - (total - self.total)
        spare = START_S if now - self._began < START_S else BURST_S
        most = min(spare * self.budget, max(BURST_S * self.budget, self._credit))
        self._credit = max(-STILL_S * self.budget, min(credit, most))
        self.total = total
        self._samples.append((now, total))
        while len(self._samples) > 1 and self._samples[1][0] <= now - WINDOW_S:
            self._samples.popleft()

    def due(self) -> bool:
        """Whether the frame that is due now may be drawn; it is counted either way."""
        if self._credit < 0:
            self.left_out += 1
            return False
        self.drawn += 1
        return True

    @property
    def rate(self) -> float:
        """Bytes per second over the last WINDOW_S seconds."""
        if len(self._samples) < 2:  # noqa: PLR2004 - a rate needs two points
            return 0.0
        (first, before), (last, after) = self._samples[0], self._samples[-1]
        return (after - before) / max(last - first, 1e-3)
