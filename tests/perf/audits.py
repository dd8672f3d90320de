"""`python tests/perf/audits.py`: rows per second of `verify` and `export`, on one core and on all.

A run directory of Kimi rows of about 1,700 tokens is made first, by a real run against the local
provider. The baseline reads each row's JSON and encodes its text once, on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson
from perf_client import prompt_text
from perf_provider import MODEL, ROOT, environment, provider

sys.path.insert(0, str(ROOT))

HERE = Path(__file__).parent
DATASETS = 4
PROGRAM = "from tui.cli import main; main()"


def _lay(folder: Path, base_url: str, rows: int) -> Path:
    each = rows // DATASETS
    datasets = ""
    for number in range(DATASETS):
        place = number * each
        lines = (json.dumps({"prompt": prompt_text(place + n)}) + "\n" for n in range(each))
        (folder / f"d{number}.jsonl").write_text("".join(lines), "utf-8")
        datasets += (
            f'[[datasets]]\nname = "D{number}"\nsource = "d{number}.jsonl"\nprompts = {each}\n'
        )
    path = folder / "manifest.toml"
    path.write_text(
        '[run]\nname = "audits"\noutput = "out"\n'
        f'[endpoint]\nbase_url = "{base_url}"\nmodel = "{MODEL}"\ntokenizer = "kimi-k2.5"\n'
        f"[sampling]\nmax_tokens = 8192\n[limits]\nconcurrency = 1000\n{datasets}",
        "utf-8",
    )
    return path


def _command(arguments: list[str], used: set[int]) -> float:
    """Seconds of a command of ours on these cores."""
    bind = f"import os; os.sched_setaffinity(0, {used}); " if used else ""
    command = [sys.executable, "-c", bind + PROGRAM, *arguments]
    started = time.perf_counter()
    done = subprocess.run(command, env=environment(), capture_output=True, check=False)
    if done.returncode not in {0, 3}:
        raise SystemExit(done.stderr.decode())
    return time.perf_counter() - started


def _encoding(folder: Path, used: set[int]) -> float:
    """Seconds for reading every row and encoding its text once."""
    program = f"import sys; sys.path[:0] = [{str(HERE)!r}, {str(ROOT)!r}]; import audits; "
    bind = f"import os; os.sched_setaffinity(0, {used}); " if used else ""
    command = [sys.executable, "-c", bind + program + "audits.encode_all(sys.argv[1])", str(folder)]
    done = subprocess.run(command, env=environment(), capture_output=True, check=True)
    return float(done.stdout)


def encode_all(folder: str) -> None:
    """The baseline's own process: prints its seconds, without the vocabulary's loading."""
    from engine.tokens.vocabulary import load_vocabulary

    vocabulary = load_vocabulary("kimi-k2.5")
    started = time.perf_counter()
    for path in sorted(Path(folder).glob("*/rows.jsonl")):
        with path.open("rb") as lines:
            for line in lines:
                row = orjson.loads(line)
                vocabulary.encode(f"{row['reasoning']}</think>{row['content']}<|im_end|>")
    sys.stdout.write(f"{time.perf_counter() - started}\n")


def _cores() -> list[set[int]]:
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return [{usable[-1]}, set(usable)] if len(usable) > 1 else [set()]


def main() -> None:
    """Make the rows, then measure each command in turn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    rows = parser.parse_args().rows // DATASETS * DATASETS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = str(folder / "out")
        with provider(str(HERE / "kimi.toml")) as base_url:
            _command(["run", str(_lay(folder, base_url, rows)), "--headless"], set())
        one, *more = _cores()
        base = rows / _encoding(folder / "out", one)
        sys.stdout.write(f"{'':34}{'cores':>6}{'rows/s':>9}{'/ encoding':>12}\n")
        sys.stdout.write(f"{'reading and encoding alone':34}{len(one) or 1:6}{base:9.0f}\n")
        for used in (one, *more):
            for format_ in ("", "specforge", "parquet"):
                out = ["--to", format_, "--out", str(folder / f"out.{format_}"), "--force"]
                what = ["export", run, *out] if format_ else ["verify", run]
                rate = rows / _command(what, used)
                label = " ".join(what[:1] + what[3:4])
                cells = f"{len(used) or 1:6}{rate:9.0f}{rate / base:12.2f}"
                sys.stdout.write(f"{label:34}{cells}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
