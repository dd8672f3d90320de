"""What one benchmark process measures of itself: rows, seconds, CPU and peak memory."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Measured:
    """One window of one case; CPU is that of the whole process, all threads."""

    rows: int
    seconds: float
    cpu_s: float
    peak_mb: float
    lag_ms: tuple[float, float] | None = None
    """99th percentile and maximum of the engine's loop lag."""

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds

    @property
    def cpu_ms(self) -> float:
        """CPU milliseconds per row."""
        return 1e3 * self.cpu_s / max(1, self.rows)

    @classmethod
    def parse(cls, text: str) -> Measured:
        """From the line that a child wrote."""
        return cls(**json.loads(text))

    def line(self) -> str:
        """For the parent process."""
        return json.dumps(asdict(self)) + "\n"


class Window:
    """Begins when it is made; `end` says what passed since."""

    def __init__(self, rows: Callable[[], int]) -> None:
        self._rows = rows
        self._from = rows(), time.perf_counter(), _cpu_s()

    def end(self, lag_ms: tuple[float, float] | None = None) -> Measured:
        """Rows, seconds and CPU since the beginning, peak memory of the process's life."""
        rows, at, cpu_s = self._from
        seconds = time.perf_counter() - at
        return Measured(self._rows() - rows, seconds, _cpu_s() - cpu_s, _peak_mb(), lag_ms)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _peak_mb() -> float:
    """Resident memory at its highest; Linux's own figure, as ru_maxrss inherits the parent's."""
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    unit = 1 << 20 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
