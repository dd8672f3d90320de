"""The provider as a process of its own: says where it listens, ends cleanly, leaves no orphan."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from engine.errors import ExitCode
from engine.simulator.http import serve
from engine.simulator.scenario import Scenario, ScenarioError

if TYPE_CHECKING:
    from engine.simulator.http import Simulator


def main(
    port: int = 0,
    scenario_path: str | Path | None = None,
    ledger_path: str | Path | None = None,
    seed: int | None = None,
    parent_watch: bool = False,
) -> int:
    """Serve until SIGTERM or SIGINT (or, with `parent_watch`, until stdin closes).

    Prints one JSON line `{"base_url": ..., "pid": ...}` to stdout once it listens; everything
    else goes to stderr. `scenario_path` is a file or the name of a built-in scenario. Returns an
    exit code.
    """
    try:
        scenario = Scenario() if scenario_path is None else Scenario.from_toml(scenario_path)
    except ScenarioError as exc:
        _say(str(exc))
        return exc.exit_code
    if seed is not None:
        scenario = scenario.with_(seed=seed)
    _raise_file_limit()
    ledger = Path(ledger_path) if ledger_path is not None else None
    try:
        return asyncio.run(_serve(scenario, port, ledger, parent_watch=parent_watch))
    except OSError as exc:
        _say(f"{_refused(exc, port)}: {exc.strerror or exc}")
        return ExitCode.USAGE


def _refused(error: OSError, port: int) -> str:
    """What could not be had: only an error about a file names one."""
    if error.filename is not None:
        return f"cannot write to {error.filename}"
    return f"cannot listen on port {port}"


async def _serve(scenario: Scenario, port: int, ledger: Path | None, *, parent_watch: bool) -> int:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    if parent_watch:
        _watch_parent(loop, ended)
    async with serve(scenario, port=port, ledger_path=ledger, keep_entries=False) as simulator:
        line = {"base_url": simulator.base_url, "pid": os.getpid()}
        sys.stdout.write(orjson.dumps(line).decode() + "\n")
        sys.stdout.flush()
        _say(f"listening on {simulator.base_url}")
        await ended.wait()
        _say(_summary(simulator))
    return ExitCode.OK


def _watch_parent(loop: asyncio.AbstractEventLoop, ended: asyncio.Event) -> None:
    """End when stdin closes: the parent holds its other end, and dies with it."""
    descriptor = sys.stdin.fileno()

    def read() -> None:
        with suppress(BlockingIOError):
            if not os.read(descriptor, 4096):
                loop.remove_reader(descriptor)
                ended.set()

    os.set_blocking(descriptor, False)
    try:
        loop.add_reader(descriptor, read)
    except PermissionError:
        # A plain file or /dev/null never closes, and epoll does not take it.
        _say("stdin is no pipe: not watching the parent")


def _summary(simulator: Simulator) -> str:
    ledger = simulator.ledger
    return (
        f"ended: {ledger.requests} requests, {ledger.charged} charged, ${ledger.cost_usd:.4f}, "
        f"{len(ledger.paid_twice)} prompts paid twice"
    )


def _raise_file_limit() -> None:
    """Allow as many connections as the system does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _say(text: str) -> None:
    sys.stderr.write(f"simulator: {text}\n")
    sys.stderr.flush()
