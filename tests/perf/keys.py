"""What a person waits for, and what the screen takes: measured on the real thing.

`python tests/perf/keys.py [--presses 100] [--rounds 3] [--seconds 12]` starts `run` on a terminal
of 120x40 with eight datasets, at about 700 short rows a second, and prints

- the time from a key to its effect on the screen (median, 95th percentile, longest), and
- the processor time of the run with the screen, less that of the same run headless, as a share of
  one core at two frames a second.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from e2e_desk import Desk  # noqa: E402 - needs the path above
from life_terminal import MAIN, Terminal, environment, finish  # noqa: E402
from perf_provider import provider  # noqa: E402

from engine.clock import SystemClock  # noqa: E402

SIZE = (120, 40)
KINDS = (
    "n N, next dataset",
    "?, help",
    "P, done by the engine",
    "P, state in the header",
)
DATASETS, PROMPTS = 8, 100_000
IN_FLIGHT = 64
SCENARIO = """
tokenizer = "none"
generation_delay_s = 0.0
[latency]
mean_s = 0.072
sigma = 0.2
refusal_s = 0.0
[length]
mean_tokens = 40
max = 200
"""
FULL_SPEED = """
import engine.assemble
from engine.pace.limits import Limiter
class AtOnce(Limiter):
    def __init__(self, ceiling, *, now):
        super().__init__(ceiling, now=now, start=ceiling)
engine.assemble.Limiter = AtOnce
"""
"""The ramp would take a minute to the rate that is measured at."""
_CLOCK = SystemClock()


def desk_on(folder: Path, base_url: str) -> Desk:
    """Eight datasets of many short questions."""
    desk = Desk(folder, base_url)
    rows = [{"prompt": f"Question {number}?"} for number in range(PROMPTS)]
    datasets = [
        {"name": f"B{n}_set", "source": desk.source(f"{n}.jsonl", rows), "prompts": PROMPTS}
        for n in range(1, DATASETS + 1)
    ]
    endpoint = {"api": "openai", "tokenizer": "none"}
    desk.manifest(*datasets, endpoint=endpoint, limits={"concurrency": IN_FLIGHT})
    return desk


@contextmanager
def at_work(desk: Desk, *options: str) -> Iterator[tuple[Terminal, int]]:
    """The run in full swing on a terminal, and its process; it is ended on the way out."""
    program = [sys.executable, "-c", f"{FULL_SPEED}\n{MAIN}", "run", "manifest.toml", *options]
    output = desk.folder / "out"
    terminal = Terminal(program, desk.folder, environment(desk), SIZE)
    try:
        terminal.read_until((output / "status.json").exists)
        terminal.read_until(lambda: rows(desk) > 20 * IN_FLIGHT)
        yield terminal, desk.files.status()["pid"]
    finally:
        finish(desk)
        terminal.close()
        for path in sorted(output.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        output.rmdir()


def rows(desk: Desk) -> int:
    """Rows so far, by the heartbeat."""
    return sum(int(view["rows"]) for view in desk.files.status()["datasets"])


# keys


def waited(terminal: Terminal, key: str, text: str) -> float:
    """Milliseconds from a key until the screen shows a text that it did not show before."""
    pause = _CLOCK.monotonic() + random.uniform(0.1, 0.6)
    while (left := pause - _CLOCK.monotonic()) > 0:
        terminal.read(left)
    assert not terminal.shows(text), text
    begin = _CLOCK.monotonic()
    terminal.press(key)
    while not terminal.shows(text):
        assert terminal.read(10), f"{key}: never shown: {text}\n{terminal.text}"
    return 1e3 * (_CLOCK.monotonic() - begin)


def key_times(desk: Desk, presses: int) -> dict[str, list[float]]:
    """Each kind of key so many times."""
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with at_work(desk) as (terminal, _):
        terminal.until("RUNNING")
        before, start = rows(desk), _CLOCK.monotonic()
        terminal.press("1\r")
        terminal.until("1 B1_set · ")
        for number in range(presses):
            key, place = ("N", 1) if number % 2 else ("n", 2)
            found["n N, next dataset"].append(waited(terminal, key, f"{place} B{place}_set · "))
            if number % 5 == 0:
                found["?, help"].append(waited(terminal, "?", "Keys (j k scroll"))
                terminal.press("\x1b")
                terminal.until_gone("Keys (j k scroll")
        rate = (rows(desk) - before) / (_CLOCK.monotonic() - start)
        say(f"{rate:.0f} rows/s while keys were pressed")
        for _ in range(presses // 4):
            for said, state in (("paused the run", "║ PAUSED"), ("resumed the run", "► RUNNING")):
                found["P, done by the engine"].append(waited(terminal, "P", said))
                terminal.until(state)
        for _ in range(presses // 10):
            for state in ("║ PAUSED", "► RUNNING"):
                found["P, state in the header"].append(waited(terminal, "P", state))
    return found


def told(kind: str, times: list[float]) -> str:
    """One line of the table."""
    ordered = sorted(times)
    p95 = ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]
    middle = statistics.median(ordered)
    figures = f"p50 {middle:5.0f} ms  p95 {p95:5.0f} ms  max {ordered[-1]:5.0f} ms"
    return f"{kind:<22} {len(times):>4} presses  {figures}"


def say(text: str) -> None:
    """A line of the report."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


# processor time


def cpu_share(desk: Desk, seconds: float, *options: str) -> tuple[float, float]:
    """The run's processor time as a share of one core, and its rows per second."""
    with at_work(desk, *options) as (terminal, pid):
        reader = threading.Thread(target=lambda: terminal.read_until(lambda: over), daemon=True)
        over = False
        reader.start()
        spent, before, start = cpu_s(pid), rows(desk), _CLOCK.monotonic()
        threading.Event().wait(seconds)
        took = _CLOCK.monotonic() - start
        share, rate = (cpu_s(pid) - spent) / took, (rows(desk) - before) / took
        over = True
        reader.join()
    return share, rate


def cpu_s(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Keys first, then the rounds of processor time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--presses", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=12.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "scenario.toml").write_text(SCENARIO, "utf-8")
        with provider(str(folder / "scenario.toml")) as base_url, desk_on(folder, base_url) as desk:
            for kind, times in key_times(desk, options.presses).items():
                say(told(kind, times))
            pairs = []
            for _ in range(options.rounds):
                screen, rate = cpu_share(desk, options.seconds)
                plain, same = cpu_share(desk, options.seconds, "--headless")
                pairs.append(100 * (screen - plain))
                say(
                    f"screen {100 * screen:.1f}% at {rate:.0f} rows/s, headless {100 * plain:.1f}%"
                    f" at {same:.0f} rows/s, difference {pairs[-1]:+.1f}% of a core"
                )
            if pairs:
                say(f"median of {len(pairs)}: {statistics.median(pairs):+.1f}% of a core")


if __name__ == "__main__":
    main()
