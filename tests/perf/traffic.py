"""What the screen costs over a line: eight moving datasets on a real terminal, at three sizes.

`python tests/perf/traffic.py [--seconds 20] [--bandwidth KB]` prints kilobytes per second, frames
drawn and left out, and the processor's share of a core, for each size and rate.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from life_terminal import Terminal  # noqa: E402 - needs the path above

from engine.clock import SystemClock  # noqa: E402

CHILD = """
import sys, time
sys.path[:0] = [{root!r}, {root!r} + "/tests/support"]
from dataclasses import replace
from engine.clock import SystemClock
from scripted_run import LiveRun
from tui import app as screen

class Eight(LiveRun):
    def snapshot(self):
        shown = super().snapshot()
        more = [replace(view, name=view.name[:2] + "_again") for view in shown.datasets[:2]]
        return replace(shown, datasets=(*shown.datasets, *more))

class Measured(screen.EaglegenApp):
    def poll(self):
        super().poll()
        governor = self.link._governor
        with open({tally!r}, "w") as file:
            file.write(f"{{governor.drawn}} {{governor.left_out}} {{time.process_time()}}")

screen.EaglegenApp = Measured
run = Eight(SystemClock(), 1 / {fps})
screen.show(run, theme="dark", fps={fps}, bandwidth_kb={bandwidth})
"""


def measure(
    size: tuple[int, int], fps: float, seconds: float, bandwidth: float, folder: Path
) -> str:
    """One screen for some seconds after its first picture."""
    clock, tally = SystemClock(), folder / "tally"
    code = CHILD.format(root=str(ROOT), fps=fps, bandwidth=bandwidth, tally=str(tally))
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    terminal = Terminal([sys.executable, "-c", code], folder, environment, size)
    try:
        terminal.until("elapsed      3s")
        before, start = len(terminal.sent), clock.monotonic()
        counts = [float(word) for word in tally.read_text().split()]
        while clock.monotonic() - start < seconds:
            terminal.read(0.2)
        took = clock.monotonic() - start
        after = [float(word) for word in tally.read_text().split()]
        sent = len(terminal.sent) - before
    finally:
        terminal.close()
    drawn, left_out, cpu = (now - then for then, now in zip(counts, after, strict=True))
    return (
        f"{size[0]:>4}x{size[1]:<3} {fps:>4g} fps {sent / took / 1000:7.1f} KB/s "
        f"{drawn / took:5.1f} frames/s, {left_out / took:4.1f} left out, "
        f"{sent / max(drawn, 1):6.0f} B a frame, {100 * cpu / took:5.1f}% of a core"
    )


def main() -> None:
    """Every size at every rate, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--bandwidth", type=float, default=8.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for size in ((80, 24), (120, 40), (160, 48)):
            for fps in (2.0, 4.0, 10.0):
                line = measure(size, fps, options.seconds, options.bandwidth, Path(folder))
                sys.stdout.write(line + "\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
