"""`python tests/perf/soak.py`: a long run with faults, orders and viewers: is it flat?

200,000 prompts go through the real command line against the local provider. Meanwhile the run is
paused, throttled, watched and left. The script samples the process's memory and its loop's lag,
and in the end compares the run's files with what the provider charged.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perf_books import Books
from perf_provider import MODEL, ROOT, cores, environment, provider

sys.path.insert(0, str(ROOT))

from engine.commands import Command, Pause, Resume, Throttle
from engine.errors import EaglegenError
from engine.link.remote import RemoteRun, ask

HERE = Path(__file__).parent
DATASETS = 4
IN_FLIGHT = 600
SAMPLE_S = 1.0
ORDER_S = 20.0
"""Seconds between two orders; a pause lasts two of them at most."""


@dataclass(slots=True)
class Sample:
    """What the process was like at a moment."""

    at: float
    rows: int
    memory_mb: float
    lag_ms: float


@dataclass(slots=True)
class Soak:
    """One run, watched from outside."""

    folder: Path
    process: subprocess.Popen[bytes]
    samples: list[Sample] = field(default_factory=list)
    orders: Counter[str] = field(default_factory=Counter)
    views: int = 0

    def watch(self) -> None:
        """Sample and disturb the run until it ends."""
        draw, due = random.Random(7), time.perf_counter() + ORDER_S
        while self.process.poll() is None:
            time.sleep(SAMPLE_S)
            self._sample()
            if time.perf_counter() >= due and self.samples:
                self._disturb(draw)
                due = time.perf_counter() + ORDER_S
        if self.process.returncode not in {0, 3}:
            raise SystemExit(f"the run ended with exit code {self.process.returncode}")

    def _sample(self) -> None:
        status = self.status()
        memory = _memory_mb(self.process.pid)
        if status is not None and status["state"] in {"running", "paused"} and memory:
            rows = sum(view["rows"] for view in status["datasets"])
            self.samples.append(Sample(time.perf_counter(), rows, memory, status["loop_lag_ms"]))

    def status(self) -> dict[str, Any] | None:
        """status.json, once it is there."""
        path = self.folder / "status.json"
        return json.loads(path.read_bytes()) if path.exists() else None

    def _disturb(self, draw: random.Random) -> None:
        match draw.choice(("pause", "throttle", "dataset", "attach")):
            case "pause":
                self._order(Pause(None))
                time.sleep(3 * SAMPLE_S)
                self._order(Resume(None))
            case "throttle":
                self._order(Throttle(draw.choice((IN_FLIGHT // 4, IN_FLIGHT // 2, IN_FLIGHT))))
            case "dataset":
                name = f"D{draw.randrange(DATASETS)}"
                self._order(Pause(name))
                self._order(Resume(name))
            case _:
                self._attach()

    def _order(self, command: Command) -> None:
        try:
            ask(self.folder, command)
        except EaglegenError:
            if self.process.poll() is None:
                raise
        else:
            self.orders[type(command).__name__] += 1

    def _attach(self) -> None:
        viewers = []
        try:
            viewers = [RemoteRun(self.folder, hz=4, read_only=True) for _ in range(3)]
            time.sleep(5 * SAMPLE_S)
        except EaglegenError:
            if self.process.poll() is None:
                raise
        for viewer in viewers:
            viewer.close()
            self.views += 1


def _memory_mb(pid: int) -> float:
    try:
        text = Path(f"/proc/{pid}/status").read_text("ascii")
    except OSError:
        return 0.0
    return next((int(s.split()[1]) / 1024 for s in text.splitlines() if s.startswith("VmRSS")), 0.0)


def _lay(folder: Path, base_url: str, prompts: int) -> Path:
    each = prompts // DATASETS
    datasets = ""
    for number in range(DATASETS):
        lines = (json.dumps({"prompt": f"Question {number}.{n}: why?"}) + "\n" for n in range(each))
        (folder / f"d{number}.jsonl").write_text("".join(lines), "utf-8")
        datasets += (
            f'[[datasets]]\nname = "D{number}"\nsource = "d{number}.jsonl"\nprompts = {each}\n'
        )
    path = folder / "manifest.toml"
    path.write_text(
        '[run]\nname = "soak"\noutput = "out"\n'
        f'[endpoint]\nbase_url = "{base_url}"\nmodel = "{MODEL}"\ntokenizer = "none"\n'
        "[sampling]\nmax_tokens = 4096\n"
        f"[limits]\nconcurrency = {IN_FLIGHT}\n{datasets}",
        "utf-8",
    )
    return path


def _begin(manifest: Path) -> subprocess.Popen[bytes]:
    program = "from tui.cli import main; main()"
    command = [sys.executable, "-c", program, "run", str(manifest), "--headless"]
    _, core = cores()
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, env=environment(), stdout=quiet, stderr=quiet)
    if core:
        os.sched_setaffinity(process.pid, core)
    return process


def _halves(samples: list[Sample], part: str) -> tuple[float, float]:
    """Medians of the second and of the last quarter: the first one fills pools and caches."""
    values = [getattr(sample, part) for sample in samples]
    quarter = max(1, len(values) // 4)
    second, last = values[quarter : 2 * quarter] or values, values[-quarter:]
    return statistics.median(second), statistics.median(last)


def _report(soak: Soak, books: Books) -> str:
    samples = soak.samples
    seconds = samples[-1].at - samples[0].at
    memory, lag = _halves(samples, "memory_mb"), _halves(samples, "lag_ms")
    orders = ", ".join(f"{count} {name.lower()}" for name, count in sorted(soak.orders.items()))
    peak = max(sample.memory_mb for sample in samples)
    parts = {
        "rows": f"{books.rows:,} of {books.prompts:,} prompts in {seconds / 60:.1f} min, "
        f"{books.failed} prompts given up, {books.doubled} rows doubled",
        "orders": f"{orders}; {soak.views} viewers attached",
        "memory": f"{memory[0]:.1f} MB in the second quarter, {memory[1]:.1f} MB in the last "
        f"({memory[1] / memory[0] - 1:+.1%}); peak {peak:.1f} MB",
        "loop lag": f"{lag[0]:.1f} ms in the second quarter, {lag[1]:.1f} ms in the last",
        "requests": f"{books.requests:,} at the provider = {books.rows:,} rows + "
        f"{books.attempts:,} attempts",
        "charges": f"{books.charged:,}: one a row and {books.charged_unseen} for replies lost "
        f"on their way (the run knows of {books.lost_replies})",
        "ledger": "exact" if books.exact else "NOT EXACT",
    }
    return "\n".join(f"{name:12}{text}" for name, text in parts.items())


def main() -> None:
    """Soak, report, and fail where the books do not balance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prompts", type=int, default=200_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ledger = folder / "ledger.jsonl"
        with provider(str(HERE / "soak.toml"), ledger) as base_url:
            soak = Soak(folder / "out", _begin(_lay(folder, base_url, arguments.prompts)))
            try:
                soak.watch()
            finally:
                soak.process.kill()
        books = Books.of(folder / "out", ledger, arguments.prompts // DATASETS * DATASETS)
    sys.stdout.write(_report(soak, books) + "\n")
    sys.exit(not books.exact)


if __name__ == "__main__":
    main()
