"""`python tests/perf/reliability.py`: the README's reliability table, measured here and now.

Every figure is made by the real engine against the local provider, and checked against the
provider's own ledger. `--quick` plays small versions in about two minutes.
"""

from __future__ import annotations

import argparse
import os
import random
import runpy
import signal
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from e2e_desk import Desk  # noqa: E402 - the paths above come first
from e2e_files import RunFiles  # noqa: E402
from e2e_provider import playing, slow  # noqa: E402
from money_burst import Burst, with_engine, with_fixed  # noqa: E402
from money_engine import engine_on  # noqa: E402
from money_faults import (  # noqa: E402
    ACCOUNT,
    ATTEMPT,
    BUSY,
    EVERY,
    HEALED_BY_CACHE,
    PROMPT,
    PROVIDER,
    ROWS,
    RUN,
)
from money_kills import killed  # noqa: E402
from money_play import Played, ending_with, lasting, passing  # noqa: E402

from engine.clock import SystemClock  # noqa: E402
from engine.wire.reply import Reply, parse_reply  # noqa: E402

CLOCK = SystemClock()
TEXT_ONLY = {"tokenizer": "none"}
NEVER_ROWS = frozenset({*PROMPT, *PROVIDER, *ATTEMPT} - HEALED_BY_CACHE)
"""Played at every attempt: no later one may have become a row either."""
DEAR = {"name": "Dear", "tag": "dear", "prompt_usd_per_m": 0.0, "completion_usd_per_m": 1000.0}


class Line(NamedTuple):
    """One row of the table: what is done, and what comes of it."""

    what: str
    outcome: str


FULL_BURST = Burst(capacity=400, ceiling=2000, prompts=6000, latency_s=4.0)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is played."""

    kills: int = 50
    cached_kills: int = 20
    kill_prompts: int = 1000
    burst: Burst = FULL_BURST
    token_budget: int = 1_000_000
    in_flight: int = 128
    cap_usd: float = 30.0
    synced_rows: int = 6000
    mutations: int = 10_000


QUICK = Size(
    kills=5,
    cached_kills=3,
    kill_prompts=100,
    burst=Burst(capacity=40, ceiling=400, prompts=800),
    token_budget=150_000,
    in_flight=50,
    cap_usd=8.0,
    synced_rows=1500,
)


def faults(folder: Path, size: Size) -> Iterator[Line]:
    """Every fault of the simulator's table, each suffered by a prompt of its own."""
    del size
    bogus, wrong, flagged = 0, 0, Counter[str]()
    for played in _sessions(folder):
        rows, attempts = played.of("rows"), played.of("attempts")
        for name in set(played.names.values()):
            expected = EVERY[name]
            wrong += {a["family"] for a in attempts[name]} != {expected.family} - {""}
            for row in rows[name]:
                healed = row["attempts"] > 1 and name not in NEVER_ROWS
                bogus += bool(expected.family) and not healed
                flagged.update(row["flags"])
        wrong += played.requests != played.provider.ledger.requests
    kept = f"{len(EVERY)} played: {bogus} saved as a row, {wrong} under a wrong family"
    doubtful = f"{len(ROWS)} doubtful replies that are the model's kept, {flagged.total()} flags"
    yield Line("every fault of the provider's table, through the engine", f"{kept}; {doubtful}")


def _sessions(folder: Path) -> Iterator[Played]:
    with lasting(_fresh(folder)) as played:
        yield played
    hint = {"retry_hint": "header", "retry_after_s": 0.5}
    for names in (list(BUSY), [name for name in ACCOUNT if not name.startswith("html")]):
        with passing(_fresh(folder), names, **hint) as played:
            yield played
    with passing(_fresh(folder), [n for n in ACCOUNT if n.startswith("html")]) as played:
        yield played  # these wait for a minute
    for name in RUN:
        with ending_with(_fresh(folder), name) as (played, desk):
            again = engine_on(desk)  # the prompt is left for the next session, and then known
            first = {row["index"]: row["id"] for row in again.files.all("rows")}
            yield Played(again, played.provider, {first[0]: name})


def kills(folder: Path, size: Size) -> Iterator[Line]:
    """kill -9 at random moments, without the response cache and with it."""
    bare = killed(
        _fresh(folder), prompts=size.kill_prompts, kills=size.kills, seed=50, caches=False
    )
    yield Line(
        f"{bare.kills} random kill -9 of one run of {bare.prompts:,} prompts",
        f"{bare.lost + bare.prompts - bare.rows} rows lost, {bare.doubled} doubled; "
        f"paid again: {bare.paid_again} of the {bare.unknown} requests that were in flight",
    )
    cached = killed(
        _fresh(folder), prompts=size.kill_prompts, kills=size.cached_kills, seed=20, caches=True
    )
    yield Line(
        f"{cached.kills} random kill -9 with the response cache, replies lost on the way too",
        f"{cached.paid_again} requests paid again ({cached.hits} replies had from the cache); "
        f"charged ${cached.paid_usd:.5f}, told ${cached.told_usd:.5f}",
    )


def budgets(folder: Path, size: Size) -> Iterator[Line]:
    """How far a token budget is overshot, and what is left of a dollar cap."""
    tokens = {"mean_tokens": 600, "max": 8192}
    weather = {"latency": {"mean_s": 0.5, "sigma": 0.6}, "length": tokens}
    with playing(**weather) as provider, Desk(_fresh(folder), provider.base_url) as desk:
        _ask(desk, size.token_budget // 200, size, dataset={"token_budget": size.token_budget})
        (view,) = engine_on(desk, patience_s=600).last.datasets
        over = view.completion_tokens / size.token_budget - 1
        yield Line(
            f"token budget of {size.token_budget:,}, {size.in_flight} in flight",
            f"overshot by {100 * over:.2f}% ({view.completion_tokens:,} tokens)",
        )
    bad = {"reset_late": 0.1, "bad_gateway": 0.05}
    with (
        playing(providers=[DEAR], faults=bad) as provider,
        Desk(_fresh(folder), provider.base_url) as desk,
    ):
        limits = {"max_cost_usd": size.cap_usd}
        _ask(desk, int(size.cap_usd * 50), size, response_cache=False, **limits)
        outcome = engine_on(desk, patience_s=600)
        charged = provider.ledger.cost_usd
        yield Line(
            f"max_cost_usd ${size.cap_usd:.2f}, a tenth of the replies billed and never seen",
            f"charged ${charged:.2f}, overshoot ${max(0.0, charged - size.cap_usd):.2f} "
            f"(exit {outcome.code})",
        )


def bursts(folder: Path, size: Size) -> Iterator[Line]:
    """The opening burst against a client of fixed concurrency."""
    burst = size.burst
    fixed, ours = with_fixed(burst), with_engine(burst, _fresh(folder))
    yield Line(
        f"opening burst: ceiling {burst.ceiling:,}, the provider holds {burst.capacity}, "
        f"{burst.prompts:,} prompts",
        f"{ours.failed:,} failed attempts, {fixed.failed:,} with fixed concurrency "
        f"({100 * ours.failed / fixed.failed:.1f}%); steady throughput "
        f"{ours.steady_per_s:.0f} against {fixed.steady_per_s:.0f} replies/s",
    )


def draining(folder: Path, size: Size) -> Iterator[Line]:
    """From SIGTERM to the exit of a real process, beyond the last reply that was in flight."""
    late = []
    for _ in range(3):
        with (
            playing(latency=slow(2.0)) as provider,
            Desk(_fresh(folder), provider.base_url) as desk,
        ):
            _ask(desk, 4 * size.in_flight, size)
            process = desk.begin("--headless")
            process.until(lambda: provider.provider.in_flight >= 50, "requests are in flight")
            flying = provider.provider.in_flight
            process.signal(signal.SIGTERM)
            process.until(lambda: provider.provider.in_flight == 0, "all has been answered")
            answered = CLOCK.monotonic()
            result = process.wait()
            late.append(CLOCK.monotonic() - answered)
            assert result.code == 130
            assert len(desk.files.all("rows")) == provider.ledger.charged >= flying
    yield Line(
        "SIGTERM with 50 or more requests in flight, each of 2 s",
        f"exit 130 {statistics.median(late):.2f} s after the last reply, all of them saved",
    )


def mutations(folder: Path, size: Size) -> Iterator[Line]:
    """Mutated replies through the parser, judged by the fuzz test's own oracle."""
    del folder
    fuzz: dict[str, Any] = runpy.run_path(str(ROOT / "tests" / "engine" / "test_reply_fuzz.py"))
    rng = random.Random(7)
    escaped = bogus = rows = 0
    for _ in range(size.mutations):
        raw, _intact = fuzz["mutate"](rng)
        status = 200 if rng.random() < 0.95 else rng.choice([400, 402, 404, 429, 500, 524])
        try:
            found = parse_reply(status, {}, raw, fuzz["EXPECT"])
        except Exception:  # noqa: BLE001 - counting what escapes is the point
            escaped += 1
            continue
        rows += isinstance(found, Reply)
        bogus += isinstance(found, Reply) and not fuzz["is_answer"](status, raw)
    yield Line(
        f"{size.mutations:,} mutated replies through the parser",
        f"{escaped} exceptions, {bogus} bogus rows ({rows:,} were still answers)",
    )


def syncing(folder: Path, size: Size) -> Iterator[Line]:
    """What the fsync of each second costs: throughput with and without it, and its own time."""
    seconds: list[float] = []
    synced, unsynced = [], []
    for _ in range(3):
        with _timed_fsync() as spent:
            synced.append(_rows_per_s(folder, size))
        seconds += spent
        with patch.object(os, "fsync", lambda _descriptor: None):
            unsynced.append(_rows_per_s(folder, size))
    yield Line(
        f"fsync once a second, {size.synced_rows:,} rows as fast as they come, medians of 3",
        f"{statistics.median(synced):.0f} rows/s, {statistics.median(unsynced):.0f} without it; "
        f"one takes {1000 * statistics.median(seconds):.1f} ms "
        f"(at most {1000 * max(seconds):.1f}), beside the loop",
    )


@contextmanager
def _timed_fsync() -> Iterator[list[float]]:
    spent: list[float] = []
    fsync = os.fsync

    def timed(descriptor: int) -> None:
        begun = CLOCK.monotonic()
        fsync(descriptor)
        spent.append(CLOCK.monotonic() - begun)

    with patch.object(os, "fsync", timed):
        yield spent


def _rows_per_s(folder: Path, size: Size) -> float:
    with (
        playing(latency=slow(0.02)) as provider,
        Desk(_fresh(folder), provider.base_url) as desk,
    ):
        _ask(desk, size.synced_rows, size)
        assert engine_on(desk, patience_s=300).code == 0
        entries = provider.ledger.entries
        ends = sorted(entry.at for entry in entries)
        middle = ends[len(ends) // 4 : len(ends) * 3 // 4]
        return len(middle) / (middle[-1] - middle[0])


def _ask(
    desk: Desk, prompts: int, size: Size, *, dataset: dict[str, Any] | None = None, **more: Any
) -> None:
    cache = more.pop("response_cache", True)
    source = desk.source("a.jsonl", [{"prompt": f"Question {n}"} for n in range(prompts)])
    desk.manifest(
        {"name": "A", "source": source, "prompts": prompts, **(dataset or {})},
        endpoint={**TEXT_ONLY, "response_cache": cache},
        sampling={"max_tokens": 8192 if dataset else 300},
        limits={"concurrency": size.in_flight, **more},
    )


def _fresh(folder: Path) -> Path:
    made = Path(tempfile.mkdtemp(dir=folder))
    assert not RunFiles(made).datasets
    return made


PARTS: dict[str, Callable[[Path, Size], Iterator[Line]]] = {
    "faults": faults,
    "kills": kills,
    "budgets": budgets,
    "burst": bursts,
    "drain": draining,
    "fuzz": mutations,
    "fsync": syncing,
}


def main() -> None:
    """Print the table; each line as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small versions of everything")
    parser.add_argument("--only", choices=PARTS, nargs="*", default=list(PARTS))
    arguments = parser.parse_args()
    size = QUICK if arguments.quick else Size()
    sys.stdout.write("| what is done | what comes of it |\n|---|---|\n")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.only:
            for what, outcome in PARTS[name](Path(folder), size):
                sys.stdout.write(f"| {what} | {outcome} |\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
