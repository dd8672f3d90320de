"""`python tests/perf/bench.py`: rows per second, CPU and memory of the engine and of what it rests on.

Provider and client are processes of their own, each on one core; all cases run in turn, round by
round, so that a ratio compares what one machine did in the same minutes. Quote ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from perf_client import prompt_text
from perf_meter import Measured
from perf_provider import MODEL, ROOT, cores, environment, provider

HERE = Path(__file__).parent
ROWS = 100_000
DATASETS = 6
SCREEN_HZ = 4
SIZE = (48, 160)


@dataclass(slots=True)
class Case:
    """One line of the table."""

    name: str
    kind: str
    """`httpx`, `transport`, `tokenizing`, `aiohttp`, or `engine`."""
    in_flight: int = 2000
    scenario: str = "bench"
    """Cases of one scenario are compared with each other."""
    tokenizer: str = "none"
    screen: bool = False
    once: bool = False
    """Slow and far from the others: one round tells enough."""
    runs: list[Measured] = field(default_factory=list)

    def median(self, attribute: str) -> float:
        """Over the rounds."""
        return statistics.median(getattr(run, attribute) for run in self.runs)

    def lag(self) -> str:
        """Medians of the 99th percentile and of the maximum."""
        lags = [run.lag_ms for run in self.runs if run.lag_ms]
        if not lags:
            return f"{'':7} {'':7}"
        p99, most = (statistics.median(values) for values in zip(*lags, strict=True))
        return f"{p99:7.0f} {most:7.0f}"


KIMI, PACED = str(HERE / "kimi.toml"), str(HERE / "paced.toml")
CASES = (
    ("text only, replies of 6.6 KB after 0.5 s", "bench", "none", "transport"),
    ("Kimi ids, replies of 1,700 tokens after 0.5 s", KIMI, "kimi-k2.5", "tokenizing"),
)


def cases() -> Iterator[Case]:
    """All lines, the references of each scenario first."""
    yield Case("plain httpx", "httpx", once=True)
    for reference in ("aiohttp", "transport"):
        yield Case(reference, reference)
    for in_flight in (64, 512, 2000):
        yield Case("engine", "engine", in_flight)
    yield Case("engine and screen", "engine", screen=True)
    for reference in ("aiohttp", "tokenizing"):
        yield Case(reference, reference, scenario=KIMI)
    for in_flight in (64, 512, 2000):
        yield Case("engine", "engine", in_flight, KIMI, "kimi-k2.5")
    yield Case("engine and screen", "engine", 2000, KIMI, "kimi-k2.5", screen=True)
    yield Case("engine", "engine", 2000, PACED, "kimi-k2.5")


class Bench:
    """Runs cases against one provider; use one folder for each."""

    def __init__(self, base_url: str, folder: Path, warm_s: float, window_s: float) -> None:
        self._base_url = base_url
        self._folder = folder
        self._spans = [str(warm_s), str(window_s)]
        self._count = 0
        lines = (json.dumps({"prompt": prompt_text(n)}) + "\n" for n in range(ROWS))
        (folder / "prompts.jsonl").write_text("".join(lines), "utf-8")

    def run(self, case: Case) -> Measured:
        """One round of one case."""
        if case.kind == "engine":
            return self._engine(case)
        arguments = [case.kind, self._base_url, str(case.in_flight), *self._spans]
        done = subprocess.run(
            self._command("perf_client.py", arguments),
            env=environment(),
            stdout=subprocess.PIPE,
            check=True,
        )
        return Measured.parse(done.stdout.decode())

    def _engine(self, case: Case) -> Measured:
        self._count += 1
        out = self._folder / f"out{self._count}.json"
        arguments = [str(self._manifest(case)), str(out), *self._spans]
        if case.screen:
            _on_screen(self._command("perf_engine.py", [*arguments, str(SCREEN_HZ)]))
        else:
            subprocess.run(
                self._command("perf_engine.py", arguments), env=environment(), check=True
            )
        return Measured.parse(out.read_text("utf-8"))

    def _command(self, script: str, arguments: list[str]) -> list[str]:
        _, core = cores()
        pinned = f"import os; os.sched_setaffinity(0, {core}); " if core else ""
        start = f"{pinned}import runpy, sys; sys.path.insert(0, {str(HERE)!r}); "
        path = str(HERE / script)
        start += f"sys.argv[0] = {path!r}; runpy.run_path({path!r}, run_name='__main__')"
        return [sys.executable, "-c", start, *arguments]

    def _manifest(self, case: Case) -> Path:
        path = self._folder / f"manifest{self._count}.toml"
        datasets = "".join(
            f'[[datasets]]\nname = "B{number + 3}"\nsource = "prompts.jsonl"\n'
            f"prompts = {ROWS}\ntoken_budget = 10_000_000_000\n"
            for number in range(DATASETS)
        )
        path.write_text(
            f'[run]\nname = "bench"\noutput = "out{self._count}"\n'
            f'[endpoint]\nbase_url = "{self._base_url}"\nmodel = "{MODEL}"\n'
            f'tokenizer = "{case.tokenizer}"\n'
            "[sampling]\ntemperature = 1.0\ntop_p = 0.95\nmax_tokens = 8192\n"
            f"[limits]\nconcurrency = {case.in_flight}\nmax_cost_usd = 1_000_000.0\n{datasets}",
            "utf-8",
        )
        return path


def _on_screen(command: list[str]) -> None:
    """Run a command in a terminal of its own that is read as fast as it writes."""
    ours, theirs = pty.openpty()
    rows, columns = SIZE
    size = {"LINES": str(rows), "COLUMNS": str(columns), "TERM": "xterm-256color"}
    with subprocess.Popen(
        command,
        env={**environment(), **size},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        threading.Thread(target=_drain, args=[ours], daemon=True).start()
        if process.wait():
            raise SystemExit("the case with the screen failed")
    os.close(ours)


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 1 << 16):
            pass
    except OSError:  # the other end is gone: Linux says EIO
        return


def table(done: list[Case]) -> str:
    """All cases with their ratios to the two references."""
    lines = [
        f"{'':32} {'in flight':>9} {'rows/s':>8} {'CPU ms':>7} {'peak MB':>8} {'lag ms':>7} "
        f"{'/aiohttp':>8} {'/transp.':>8}  CPU/transp."
    ]
    rates = {case.kind: case.of("rate") for case in done if case.kind != "engine"}
    transport_ms = next((c.of("cpu_ms") for c in done if c.kind == "transport"), None)
    for case in done:
        rate, cpu_ms = case.of("rate"), case.of("cpu_ms")
        lag = f"{case.of('lag_ms'):7.0f}" if case.kind == "engine" else f"{'':7}"
        ratios = " ".join(_ratio(rate, rates.get(kind)) for kind in ("aiohttp", "transport"))
        lines.append(
            f"{case.name:32} {case.in_flight:9} {rate:8.0f} {cpu_ms:7.2f} "
            f"{case.of('peak_mb'):8.0f} {lag} {ratios}  {_ratio(cpu_ms, transport_ms)}"
        )
    return "\n".join(lines)


def _ratio(value: float, reference: float | None) -> str:
    return f"{value / reference:8.2f}" if reference else f"{'':8}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--rounds", type=int, default=3, help="medians are over these")
    parser.add_argument("--only", default="", help="cases whose name holds this")
    parser.add_argument("--tokenizers", default="none,kimi-k2.5", help="which readers to measure")
    return parser.parse_args()


def main() -> None:
    """Run all cases round by round and print the table."""
    arguments = _arguments()
    rounds = 1 if arguments.quick else arguments.rounds
    warm_s, window_s = (4.0, 4.0) if arguments.quick else (6.0, 10.0)
    chosen = [
        case for case in cases(arguments.tokenizers.split(",")) if arguments.only in case.name
    ]
    with tempfile.TemporaryDirectory() as folder, provider("bench") as base_url:
        bench = Bench(base_url, Path(folder), warm_s, window_s)
        for number in range(rounds):
            for case in chosen:
                if number == 0 or not case.once:
                    case.runs.append(bench.run(case))
                    sys.stderr.write(f"round {number + 1}: {case.name} {case.in_flight}: ")
                    sys.stderr.write(f"{case.runs[-1]}\n")
    sys.stdout.write(table(chosen) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
