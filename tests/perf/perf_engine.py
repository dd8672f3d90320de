"""The whole engine in a process of its own, at a fixed number in flight, with or without a screen.

`python perf_engine.py MANIFEST OUT WARM_S WINDOW_S [FPS]` writes one JSON line to OUT; with FPS
the screen is drawn on this process's terminal.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import engine.assemble
from engine.commands import Stop
from engine.limits import Limiter
from engine.manifest import load_manifest
from engine.plan import Options, make_plan
from engine.readers import reader_for
from engine.runner import EngineThread
from engine.settings import Settings
from perf_meter import Window

_POLL_S = 0.25
_FRESH_S = 0.01


class AtCeiling(Limiter):
    """Opens at the ceiling and stays there, so that a figure belongs to a number in flight."""

    def __init__(self, ceiling: int, *, now: float) -> None:
        super().__init__(ceiling, now=now, start=ceiling)

    def tick(self, now: float, in_flight: int) -> None:
        """Learn nothing."""


def start(manifest: Path) -> EngineThread:
    """Begin the run that a manifest names."""
    engine.assemble.Limiter = AtCeiling  # type: ignore[misc] # a benchmark's wish, no user's
    plan = make_plan(load_manifest(manifest), Options())
    run = EngineThread(plan, key=None, reader=reader_for(plan.manifest, Settings()))
    run.start()
    return run


def measure(run: EngineThread, out: Path, warm_s: float, window_s: float) -> None:
    """Measure one window of a run, then stop it."""
    while run.snapshot().state == "starting":
        run.join(_POLL_S)
    run.join(warm_s)
    _fresh(run)
    window = Window(lambda: sum(view.rows for view in run.snapshot().datasets))
    lag_ms = 0.0
    for _ in range(round(window_s / _POLL_S)):
        if run.join(_POLL_S):
            raise SystemExit(f"the run ended inside the window: {run.snapshot().reason}")
        lag_ms = max(lag_ms, run.snapshot().loop_lag_ms)
    _fresh(run)
    out.write_text(window.end(lag_ms).line(), "utf-8")
    run.send(Stop())
    run.join()


def _fresh(run: EngineThread) -> None:
    """Wait for a new snapshot, so that rows and time belong together."""
    before = run.snapshot().heartbeat_at
    while run.snapshot().heartbeat_at == before and not run.join(_FRESH_S):
        pass


def main(manifest: str, out: str, warm_s: str, window_s: str, fps: str = "") -> None:
    """Headless without `fps`; otherwise the screen in this thread, the measuring in another."""
    run = start(Path(manifest))
    arguments = run, Path(out), float(warm_s), float(window_s)
    if not fps:
        measure(*arguments)
        return
    from tui.app import run_app

    measuring = threading.Thread(target=measure, args=arguments)
    measuring.start()
    run_app(run, theme="dark", fps=float(fps), on_end=lambda _snapshot: True)
    measuring.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
