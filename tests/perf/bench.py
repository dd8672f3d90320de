"""`python tests/perf/bench.py`: what the engine makes of a core, beside bare clients.

Provider and client are processes of their own, each on one core; all cases run in turn, round by
round, so that a ratio compares what one machine did in the same minutes. Quote ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from perf_cases import Case, Group, groups
from perf_client import prompt_text
from perf_meter import Measured
from perf_provider import MODEL, cores, environment, provider

HERE = Path(__file__).parent
ROWS = 100_000
DATASETS = 6
SCREEN_HZ = 4
COLUMNS, LINES = 160, 48
OTHERS = {4: "audits.py", 5: "resume.py"}
"""Tables with scripts of their own."""


class Bench:
    """Runs the cases of one group against one provider, in one folder."""

    def __init__(self, group: Group, base_url: str, folder: Path) -> None:
        self._group = group
        self._base_url = base_url
        self._folder = folder

    def run(self, case: Case, spans: list[str]) -> Measured:
        """One round of one case; `spans` are the seconds to warm up and to measure."""
        if case.kind == "engine":
            return self._engine(case, spans)
        arguments = [case.kind, self._base_url, str(case.in_flight), *spans]
        done = subprocess.run(
            _pinned("perf_client.py", arguments),
            env=environment(),
            stdout=subprocess.PIPE,
            check=True,
        )
        return Measured.parse(done.stdout.decode())

    def _engine(self, case: Case, spans: list[str]) -> Measured:
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            folder = Path(name)
            out = folder / "measured.json"
            arguments = [str(self._manifest(case, folder)), str(out), *spans]
            if case.screen:
                _on_screen(_pinned("perf_engine.py", [*arguments, str(SCREEN_HZ)]))
            else:
                command = _pinned("perf_engine.py", arguments)
                subprocess.run(command, env=environment(), check=True)
            return Measured.parse(out.read_text("utf-8"))

    def _manifest(self, case: Case, folder: Path) -> Path:
        datasets = "".join(
            f'[[datasets]]\nname = "B{number + 3}"\nsource = "../prompts.jsonl"\n'
            f"prompts = {ROWS}\ntoken_budget = 10_000_000_000\n"
            for number in range(DATASETS)
        )
        path = folder / "manifest.toml"
        path.write_text(
            '[run]\nname = "bench"\noutput = "out"\n'
            f'[endpoint]\nbase_url = "{self._base_url}"\nmodel = "{MODEL}"\n'
            f'tokenizer = "{self._group.tokenizer}"\n'
            "[sampling]\ntemperature = 1.0\ntop_p = 0.95\nmax_tokens = 8192\n"
            f"[limits]\nconcurrency = {case.in_flight}\nmax_cost_usd = 1_000_000.0\n{datasets}",
            "utf-8",
        )
        return path


def _pinned(script: str, arguments: list[str]) -> list[str]:
    """A script of this folder on the client's core, from its first instruction on."""
    _, core = cores()
    path = str(HERE / script)
    bind = f"os.sched_setaffinity(0, {core}); " if core else ""
    program = (
        f"import os, runpy, sys; {bind}sys.path.insert(0, {str(HERE)!r}); "
        f"runpy.run_path({path!r}, run_name='__main__')"
    )
    return [sys.executable, "-c", program, *arguments]


def _on_screen(command: list[str]) -> None:
    """Run a command in a terminal of its own that is read as fast as it writes."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": str(COLUMNS), "LINES": str(LINES), "TERM": "xterm-256color"}
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


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--rounds", type=int, default=3, help="the table shows medians of these")
    parser.add_argument(
        "--groups",
        default="1,2,3,4,5",
        help="1 to 3: cases; 4: verify and export; 5: resume, memory",
    )
    parser.add_argument("--kinds", default="", help="only cases whose name is among these")
    return parser.parse_args()


def _measure(group: Group, folder: Path, arguments: argparse.Namespace) -> None:
    rounds, spans = (1, ["4", "4"]) if arguments.quick else (arguments.rounds, ["6", "10"])
    kinds = arguments.kinds.split(",") if arguments.kinds else [c.name for c in group.cases]
    with provider(group.scenario) as base_url:
        bench = Bench(group, base_url, folder)
        for number in range(rounds):
            for case in group.cases:
                if case.name in kinds and not (number and case.once):
                    case.runs.append(bench.run(case, spans))
                    sys.stderr.write(
                        f"{number + 1}/{rounds} {case.name} {case.in_flight}: "
                        f"{case.runs[-1].rate:.0f} rows/s, {case.runs[-1].cpu_ms:.2f} CPU ms\n"
                    )


def main() -> None:
    """Run the chosen groups and print their tables."""
    arguments = _arguments()
    numbers = [int(number) for number in arguments.groups.split(",")]
    chosen = [groups()[number - 1] for number in numbers if number not in OTHERS]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = (json.dumps({"prompt": prompt_text(n)}) + "\n" for n in range(ROWS))
        (folder / "prompts.jsonl").write_text("".join(lines), "utf-8")
        for group in chosen:
            _measure(group, folder, arguments)
            sys.stdout.write(group.table() + "\n\n")
            sys.stdout.flush()
    for number in numbers:
        if number in OTHERS:
            subprocess.run([sys.executable, str(HERE / OTHERS[number])], check=True)


if __name__ == "__main__":
    main()
