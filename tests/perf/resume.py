"""`python tests/perf/resume.py`: how long a resume takes, and what memory a run of any size takes.

Each figure is of a process of its own. The first part makes a run directory in which all prompts
but the last few have their rows, and resumes it with and without the resume index; the second
begins runs of growing sizes. Figures of one machine in the same minutes are comparable.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perf_provider import ROOT, cores, environment, pin, provider

NAME, ROWS, SENT, INDEX = "B6_ultrachat", "rows.jsonl", "sent.jsonl", "resume.index"
HERE = Path(__file__).parent
POLL_S = 0.005
LEFT = 200
"""Prompts that are not done yet."""


@dataclass(frozen=True, slots=True)
class Resumed:
    """One session, from the start of its process."""

    first_s: float
    """Until its first request was written down, just before it left."""
    peak_mb: float
    rows: int
    seconds: float


def session(manifest: Path, *, at_most_s: float) -> Resumed:
    """Run a manifest headless until it ends, or so long after its first request."""
    sent = manifest.parent / "run" / NAME / SENT
    before = size_of(sent)
    started = time.perf_counter()
    first = peak = 0.0
    with _running(manifest) as process:
        while process.poll() is None:
            peak = max(peak, _peak_mb(process.pid))
            passed = time.perf_counter() - started
            if not first and size_of(sent) > before:
                first = passed
            if first and passed > first + at_most_s:
                process.kill()
            time.sleep(POLL_S)
    seconds = time.perf_counter() - started
    return Resumed(first, peak, _lines(sent.with_name(ROWS)), seconds)


@contextmanager
def _running(manifest: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-c", "from tui.cli import main; main()"]
    command += ["run", str(manifest), "--headless"]
    env = environment() | {"EAGLEGEN_API_KEY": "perf"}
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=(manifest.parent / "stderr.txt").open("wb"),
    ) as process:
        yield process


def rebuild(dataset: Path) -> dict[str, float]:
    """Seconds and peak MB of reading a dataset's ledger, in a process that does nothing else."""
    code = (
        "import sys, time; from pathlib import Path; from engine.disk.restore import read_ledger\n"
        "from perf_meter import _peak_mb; began = time.perf_counter()\n"
        "rows = read_ledger(Path(sys.argv[1])).rows\n"
        "import json; print(json.dumps("
        "{'seconds': time.perf_counter() - began, 'peak_mb': _peak_mb(), 'rows': rows}))"
    )
    env = environment()
    env["PYTHONPATH"] += f":{HERE}"
    done = subprocess.run(
        [sys.executable, "-c", code, str(dataset)], env=env, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def say(line: str) -> None:
    """One line of the tables."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    return path.stat().st_size if path.is_file() else 0


def _lines(path: Path) -> int:
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))


def _peak_mb(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii")
    except OSError:
        return 0.0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(found[0]) / 1024 if found else 0.0


class Desk:
    """Makes run directories for one provider and measures sessions over them."""

    def __init__(self, folder: Path, base_url: str, tokenizer: str) -> None:
        self._folder = folder
        self._given = base_url, tokenizer

    def _make(self, prompts: int, done: int, row_bytes: int) -> Path:
        folder = self._folder / f"{prompts}-{done}"
        sizes = [str(prompts), str(done), str(row_bytes)]
        command = [sys.executable, str(HERE / "perf_rundir.py"), str(folder), *self._given, *sizes]
        subprocess.run(command, env=environment(), check=True)
        return folder / "manifest.toml"

    def resume(self, prompts: int, row_bytes: int) -> None:
        """The table of one size: reading what is on disk, then whole sessions."""
        manifest = self._make(prompts, prompts - LEFT, row_bytes)
        dataset = manifest.parent / "run" / NAME
        megabytes = size_of(dataset / ROWS) / 1e6
        say(f"{prompts - LEFT:,} of {prompts:,} prompts done, rows.jsonl {megabytes:,.0f} MB")
        made, read = rebuild(dataset), rebuild(dataset)
        rate = f"{megabytes / made['seconds']:.0f} MB/s"
        figures = f"{made['seconds']:6.2f} s  {made['peak_mb']:4.0f} MB"
        say(f"  index made anew          {figures}  {rate}")
        say(f"  index read               {read['seconds']:6.2f} s  {read['peak_mb']:4.0f} MB")
        (dataset / INDEX).unlink()
        for words in ("first request, no index", "first request, index"):
            found = session(manifest, at_most_s=2.0)
            say(f"  {words:24} {found.first_s:6.2f} s  {found.peak_mb:4.0f} MB")

    def fresh(self, prompts: int, seconds: float) -> None:
        """One line of the table of memory: a run from its beginning."""
        found = session(self._make(prompts, 0, 0), at_most_s=seconds)
        say(
            f"  {prompts:>9,} prompts: first request {found.first_s:5.2f} s, {found.rows:,} rows "
            f"in {found.seconds:.0f} s, peak {found.peak_mb:.0f} MB"
        )


def main() -> None:
    """Parse what to measure, and measure it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the resumed run; 0: none")
    parser.add_argument("--row-bytes", type=int, default=600)
    parser.add_argument("--fresh", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--seconds", type=float, default=60.0, help="of each fresh run, at most")
    parser.add_argument("--scenario", default=str(HERE / "paced.toml"), help="of the provider")
    parser.add_argument("--tokenizer", default="none", help="none or kimi-k2.5")
    parser.add_argument("--folder", type=Path, help="where to work; else a temporary folder")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="eg-resume-", dir=options.folder))
    try:
        with provider(options.scenario) as base_url:
            pin(cores()[1])
            desk = Desk(folder, base_url, options.tokenizer)
            if options.rows:
                desk.resume(options.rows, options.row_bytes)
            for prompts in options.fresh:
                desk.fresh(prompts, options.seconds)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
