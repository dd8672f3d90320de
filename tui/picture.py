"""Draws the README's picture: `python -m tui.picture OUT.svg --size 160x48 --theme dark`.

The picture is the app itself, drawn by Textual without a terminal, from a snapshot of the story
that this project comes from (DESIGN §1): the burst of rate limits has passed, B6 is under way.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import time
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from engine.commands import Command
from engine.snapshot import (
    AttemptRate,
    DatasetView,
    ErrorLine,
    JournalEntry,
    ProviderView,
    Series,
    Snapshot,
)

NOW = 1_796_045_002.0
"""The moment of the picture."""


@dataclass(frozen=True, slots=True)
class StillClock:
    """A clock that stands still, so that every picture of a snapshot is the same."""

    at: float = NOW

    def monotonic(self) -> float:
        """Seconds from an arbitrary start."""
        return self.at

    def wall(self) -> float:
        """Seconds since the epoch, UTC."""
        return self.at


@dataclass(frozen=True, slots=True)
class StillRun:
    """A run of one snapshot: a RunHandle for pictures."""

    shown: Snapshot

    def snapshot(self) -> Snapshot:
        """The one snapshot."""
        return self.shown

    def send(self, command: Command) -> Future[str]:
        """Nothing moves in a picture."""
        answer: Future[str] = Future()
        answer.set_result(f"{type(command).__name__}: not in a picture")
        return answer

    @property
    def ended(self) -> bool:
        """Whether the snapshot is a run's last."""
        return self.shown.exit_code is not None


def wave(seconds: int, height: float, *, burst: bool = False, width: float = 5.0) -> Series:
    """A throughput that breathes, ending now; `burst` dents it as refusals do."""
    values: list[float | None] = []
    for place in range(int(seconds / width)):
        ripple = 1 + 0.12 * math.sin(place * 0.61) + 0.07 * math.sin(place * 1.93)
        dent = 1 - 0.85 * math.exp(-(((place - seconds / width / 3) / 7) ** 2)) if burst else 1
        values.append(round(height * ripple * dent, 3))
    return Series(NOW - seconds, width, tuple(values))


def _finished(name: str, prompts: int, failed: int, tokens: int, cost: float) -> DatasetView:
    ok = prompts - failed
    return DatasetView(
        name=name,
        state="done",
        prompts=prompts,
        ok=ok,
        failed=failed,
        rows=ok,
        attempt_errors=failed * 8,
        completion_tokens=tokens,
        token_budget=10_000_000,
        cost_usd=cost,
        exactness={"matched": ok - 3, "ambiguous": 3},
        mean_completion_tokens=tokens / ok,
        attempts=AttemptRate(0, 0, 300, failed * 8, ok + failed * 8),
        exportable_tokens=tokens,
        reason="every prompt answered" if not failed else "",
    )


def _running() -> DatasetView:
    burst = ErrorLine(
        family="rate_limit",
        provider="SiliconFlow",
        count=946,
        verdict="RESOLVED",
        first_at=NOW - 420,
        last_at=NOW - 252,
        evidence="946 in 2m 48s, 939 of these prompts answered since, 7 wait",
    )
    cut = ErrorLine(
        family="deadline",
        provider="SiliconFlow",
        count=12,
        verdict="RESOLVED",
        first_at=NOW - 1100,
        last_at=NOW - 640,
        evidence="12 single ones, all answered since",
    )
    return DatasetView(
        name="B6_ultrachat",
        state="running",
        prompts=15_000,
        ok=3_888,
        failed=12,
        in_flight=1_998,
        left=9_102,
        rows=3_888,
        attempt_errors=958,
        completion_tokens=6_462_000,
        token_budget=10_000_000,
        cost_usd=14.22,
        rows_per_s=8.8,
        eta_s=242,
        exactness={"matched": 3_871, "ambiguous": 16, "mismatch": 1},
        flags={"truncated": 3},
        errors=(burst, cut),
        waiting=7,
        rate_limited_by="tokens",
        mean_completion_tokens=1662.0,
        attempts=AttemptRate(31, 2_671, 300, 958, 4_858),
        rate=wave(520, 8.8, burst=True),
        exportable_tokens=6_420_000,
    )


def story() -> Snapshot:
    """The story's run at the moment the log was misread."""
    queued = (
        DatasetView("B7_openhermes", "queued", 10_000, left=10_000, token_budget=10_000_000),
        DatasetView("B8_tulu", "queued", 5_000, left=5_000, token_budget=10_000_000),
    )
    datasets = (
        _finished("B3_codealpaca", 3_383, 0, 2_910_000, 6.40),
        _finished("B4_gsm8k", 1_891, 0, 1_204_000, 2.65),
        _finished("B5_mtbench", 2_500, 2, 3_100_000, 6.82),
        _running(),
        *queued,
    )
    return Snapshot(
        run="kimi-k25-eagle3",
        state="running",
        reason="",
        pid=4711,
        host="gpu-07",
        started_at=NOW - 1864,
        heartbeat_at=NOW,
        elapsed_s=1864.0,
        model="moonshotai/kimi-k2.5",
        limit=2000,
        limit_ceiling=2000,
        in_flight=1_998,
        rows_per_s=8.8,
        completion_tokens_per_s=14_620.0,
        cost_usd=30.09,
        cost_unknown_attempts=0,
        max_cost_usd=86.0,
        loop_lag_ms=3.0,
        datasets=datasets,
        output="runs/kimi-k25-eagle3",
        endpoint="openrouter.ai",
        in_flight_cost_usd=7.31,
        projected_cost_usd=68.4,
        eta_s=2_738,
        providers=(ProviderView("SiliconFlow", rows=11_660, errors=958, tokens_per_s=14_620.0),),
        journal=(JournalEntry(NOW - 252, "limit", "the limit is back at 2,000", "B6_ultrachat"),),
        rate=wave(600, 8.8, burst=True),
    )


async def draw(snapshot: Snapshot, cells: int, rows: int, theme: str = "dark") -> str:
    """The app's screen for this snapshot as an SVG document."""
    from tui.app import EaglegenApp

    app = EaglegenApp(StillRun(snapshot), theme=theme, clock=StillClock(snapshot.heartbeat_at))
    async with app.run_test(size=(cells, rows)) as pilot:
        await pilot.pause()
        return app.export_screenshot(title=f"eaglegen-tui · {snapshot.run}")


def main(arguments: list[str] | None = None) -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(prog="python -m tui.picture", description=main.__doc__)
    parser.add_argument("out", type=Path, help="the SVG file")
    parser.add_argument("--size", default="160x48", help="cells by rows")
    parser.add_argument("--theme", default="dark")
    given = parser.parse_args(arguments)
    os.environ["TZ"] = "UTC"  # the same picture everywhere
    time.tzset()
    cells, _, rows = given.size.partition("x")
    svg = asyncio.run(draw(story(), int(cells), int(rows), given.theme))
    given.out.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
