"""The provider as a process of its own, on a core of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = "moonshotai/kimi-k2.5"


def cores() -> tuple[set[int], set[int]]:
    """A core for the provider and one for the client; the same one where there is no other."""
    if not hasattr(os, "sched_getaffinity"):
        return set(), set()
    usable = sorted(os.sched_getaffinity(0))
    return {usable[0]}, {usable[-1]}


def pin(core: set[int]) -> None:
    """Bind this process to a core where the system can."""
    if core:
        os.sched_setaffinity(0, core)


def environment() -> dict[str, str]:
    """What children get: this checkout's packages."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


@contextmanager
def provider(scenario: str, ledger: Path | None = None) -> Iterator[str]:
    """Yield the base URL of a provider that plays a scenario until the context ends.

    `ledger` is the file that gets a line for each request.
    """
    core, _ = cores()
    command = [sys.executable, "-m", "engine.simulator", "--scenario", scenario, "--parent-watch"]
    command += [] if ledger is None else ["--ledger", str(ledger)]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        if core:
            os.sched_setaffinity(process.pid, core)
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["base_url"]
        finally:
            process.terminate()
