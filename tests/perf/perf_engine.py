"""The whole engine in a process of its own, at a fixed number in flight, with or without a screen.

`python perf_engine.py MANIFEST OUT WARM_S WINDOW_S [FPS]` writes one JSON line to OUT; with FPS
the screen is drawn on this process's terminal.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from pathlib import Path

from perf_meter import Window

import engine.assemble
from engine.commands import Stop
from engine.manifest import load_manifest
from engine.pace.limits import Limiter
from engine.plan import Options, make_plan
from engine.readers import reader_for
from engine.runner import EngineThread
from engine.settings import Settings

_POLL_S = 0.01
_PROBE_S = 0.005


class AtCeiling(Limiter):
    """Opens at the ceiling and stays there, so that a figure belongs to a number in flight."""

    def __init__(self, ceiling: int, *, now: float) -> None:
        super().__init__(ceiling, now=now, start=ceiling)

    def tick(self, now: float, in_flight: int) -> None:
        """Learn nothing."""


class Lag:
    """How late the engine's loop wakes who sleeps in it, sampled from inside."""

    def __init__(self) -> None:
        self._late_s: list[float] = []

    async def probe(self) -> None:
        """Sample until cancelled; runs in the engine's loop."""
        while True:
            due = time.perf_counter() + _PROBE_S
            await asyncio.sleep(_PROBE_S)
            self._late_s.append(time.perf_counter() - due)

    def begin(self) -> None:
        """Forget what was before the window."""
        self._late_s = []

    def end(self) -> tuple[float, float]:
        """The 99th percentile and the maximum since `begin`, in milliseconds."""
        late = sorted(self._late_s)
        return 1e3 * late[int(0.99 * len(late))], 1e3 * late[-1]


def start(manifest: Path) -> EngineThread:
    """Begin the run that a manifest names."""
    # a benchmark's wish and no user's: hence no setting
    engine.assemble.Limiter = AtCeiling  # type: ignore[assignment, attr-defined]
    plan = make_plan(load_manifest(manifest), Options())
    run = EngineThread(plan, key=None, reader=reader_for(plan.manifest, Settings()))
    run.start()
    return run


def measure(run: EngineThread, out: Path, warm_s: float, window_s: float) -> None:
    """Measure one window of a run, then stop it."""
    while run.snapshot().state == "starting":
        _sleep(run, _POLL_S)
    lag = Lag()
    assert run._loop is not None
    run._loop.call_soon_threadsafe(lambda: asyncio.ensure_future(lag.probe()))
    _sleep(run, warm_s)
    _fresh(run)
    window = Window(lambda: sum(view.rows for view in run.snapshot().datasets))
    lag.begin()
    _sleep(run, window_s)
    _fresh(run)
    out.write_text(window.end(lag.end()).line(), "utf-8")
    run.send(Stop())
    run.join()


def _sleep(run: EngineThread, seconds: float) -> None:
    if run.join(seconds):
        raise SystemExit(f"the run ended before it was measured: {run.snapshot().reason}")


def _fresh(run: EngineThread) -> None:
    """Wait for a new snapshot, so that rows and time belong together."""
    before = run.snapshot().heartbeat_at
    while run.snapshot().heartbeat_at == before:
        _sleep(run, _POLL_S)


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
