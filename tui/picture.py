"""Draws the pictures: `python -m tui.picture OUT.svg --size 160x48 --theme dark`, or `--all DIR`.

A picture is the app itself, drawn by Textual without a terminal, from a moment of the recorded run
(tui.recorded): the burst of rate limits has passed, B6 is under way. `story` is the same moment of
the story that this project comes from (DESIGN §1), made up for tests.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import themes
from engine.commands import Command
from engine.view.snapshot import (
    AttemptRate,
    DatasetView,
    ErrorLine,
    EventSeries,
    FamilySeries,
    Forecast,
    JournalEntry,
    Mark,
    ProviderView,
    Series,
    Snapshot,
)

NOW = 1_796_045_002.0
"""The story's moment."""
AT_S = 130.0
"""The recorded run's moment, in seconds from its beginning."""
SIZES = ((80, 24), (120, 40), (160, 48))
SCREENS = {"overview": (), "dataset": ("enter",)}


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


def burst_of_refusals(seconds: int, width: float = 5.0) -> tuple[FamilySeries, ...]:
    """The burst that dents the wave, and a few single timeouts."""
    places = range(int(seconds / width))
    middle = seconds / width / 3
    refused = [round(52 * math.exp(-(((place - middle) / 6) ** 2))) for place in places]
    late = [place % 17 == width - 1 for place in places]
    return tuple(
        FamilySeries(family, Series(NOW - seconds, width, tuple(map(float, counts))))
        for family, counts in (("deadline", late), ("rate_limit", refused))
    )


def fallen_limit(seconds: int, width: float = 5.0) -> Series:
    """The limit that falls with the burst and recovers in steps."""
    middle = seconds / width / 3
    levels = []
    for place in range(int(seconds / width)):
        passed = place - middle + 6
        levels.append(2000.0 if passed < 0 else min(2000.0, 500 + 125 * max(0, passed - 6) // 2))
    return Series(NOW - seconds, width, tuple(levels))


ORDERS = (
    Mark(NOW - 355, "throttle", "throttle 1000"),
    Mark(NOW - 250, "throttle", "throttle 2000"),
    Mark(NOW - 40, "pause", "pause B7_openhermes", "B7_openhermes"),
)


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
        errors_by_family=burst_of_refusals(520),
        forecast=Forecast(28.0, 61.0, 1_500.0, 4_200.0),
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
        errors_by_family=burst_of_refusals(600),
        limit_series=fallen_limit(600),
        events=EventSeries(marks=ORDERS),
        forecast=Forecast(58.0, 97.0, 3_900.0, 7_800.0),
    )


async def draw(
    snapshot: Snapshot, cells: int, rows: int, theme: str = "dark", keys: Sequence[str] = ()
) -> str:
    """The app's screen for this snapshot as an SVG document, after these keys."""
    from tui.app import EaglegenApp

    app = EaglegenApp(StillRun(snapshot), theme=theme, clock=StillClock(snapshot.heartbeat_at))
    async with app.run_test(size=(cells, rows)) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            await pilot.pause()
        return app.export_screenshot(title=f"eaglegen-tui · {snapshot.run}")


def draw_all(snapshot: Snapshot, folder: Path) -> list[Path]:
    """One picture for each theme and size, and of the dataset's screen; returns the files."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for theme in themes.names():
        for cells, rows in SIZES:
            for name, keys in SCREENS.items():
                path = folder / f"{name}-{theme}-{cells}x{rows}.svg"
                path.write_text(asyncio.run(draw(snapshot, cells, rows, theme, keys)), "utf-8")
                made.append(path)
    return made


def main(arguments: list[str] | None = None) -> None:
    """Draw pictures from the recorded run, or record another one."""
    from tui import recorded

    parser = argparse.ArgumentParser(prog="python -m tui.picture", description=main.__doc__)
    parser.add_argument("out", type=Path, nargs="?", help="the SVG file")
    parser.add_argument("--size", default="160x48", help="cells by rows")
    parser.add_argument("--theme", default="dark")
    parser.add_argument("--at", type=float, default=AT_S, help="seconds from the run's beginning")
    parser.add_argument("--press", default="", help="keys before it, with commas between")
    parser.add_argument("--run", type=Path, default=recorded.FOLDER, help="another run directory")
    parser.add_argument("--all", type=Path, metavar="DIR", help="every theme and size instead")
    parser.add_argument("--record", type=Path, metavar="RUN_DIR", help="make --run from this run")
    given = parser.parse_args(arguments)
    os.environ["TZ"] = "UTC"  # the same picture everywhere
    time.tzset()
    if given.record is not None:
        size = recorded.record(given.record, given.run)
        print(f"{given.run}: {size} bytes")  # noqa: T201 - a developer's tool
        return
    snapshot = recorded.moment(given.at, given.run)
    if given.all is not None:
        for path in draw_all(snapshot, given.all):
            print(path)  # noqa: T201 - a developer's tool
        return
    if given.out is None:
        parser.error("OUT or --all DIR")
    cells, _, rows = given.size.partition("x")
    keys = [key for key in given.press.split(",") if key]
    svg = asyncio.run(draw(snapshot, int(cells), int(rows), given.theme, keys))
    given.out.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
