"""A RunHandle that plays given snapshots, and the scenes that the screen's tests draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace

from engine.clock import Clock
from engine.commands import Command
from engine.view.snapshot import (
    AttemptRate,
    DatasetView,
    ErrorLine,
    EventSeries,
    FamilySeries,
    Mark,
    Series,
    Snapshot,
    Spell,
)
from tui.picture import NOW, ORDERS, story, wave

Answer = Callable[[Command], str]


class ScriptedRun:
    """Plays snapshots, records commands, and answers them at once or when told to.

    `answer=None` leaves the futures open; `settle` completes the oldest one.
    """

    def __init__(self, *snapshots: Snapshot, answer: Answer | None = lambda _: "done") -> None:
        self.snapshots = list(snapshots)
        self.commands: list[Command] = []
        self.open: list[Future[str]] = []
        self._answer = answer

    def snapshot(self) -> Snapshot:
        return self.snapshots[0]

    def advance(self, snapshot: Snapshot | None = None) -> None:
        """Go on to the given snapshot, or to the next one of the script."""
        if snapshot is not None:
            self.snapshots = [snapshot]
        elif len(self.snapshots) > 1:
            del self.snapshots[0]

    def send(self, command: Command) -> Future[str]:
        self.commands.append(command)
        future: Future[str] = Future()
        if self._answer is None:
            self.open.append(future)
            return future
        try:
            future.set_result(self._answer(command))
        except Exception as error:  # noqa: BLE001 - what the script raises is the engine's answer
            future.set_exception(error)
        return future

    def settle(self, text: str = "done", error: Exception | None = None) -> None:
        future = self.open.pop(0)
        if error is None:
            future.set_result(text)
        else:
            future.set_exception(error)

    @property
    def ended(self) -> bool:
        return self.snapshot().exit_code is not None


class LiveRun(ScriptedRun):
    """Six running datasets whose numbers all move with the clock: the busiest screen there is."""

    def __init__(self, clock: Clock, period: float = 0.5) -> None:
        super().__init__(story())
        self._clock = clock
        self._period = period
        self._start = clock.wall()

    def snapshot(self) -> Snapshot:
        beats = int((self._clock.wall() - self._start) / self._period)
        return busy(self._start, beats * self._period)


def busy(start: float, elapsed: float) -> Snapshot:
    """Six datasets at work, `elapsed` seconds after `start`."""
    now = start + elapsed
    base = story()
    totals = [3383, 1891, 2500, 15000, 10000, 5000]
    datasets = tuple(
        _moving(view.name, place, total, now, elapsed)
        for place, (view, total) in enumerate(zip(base.datasets, totals, strict=True))
    )
    return replace(
        base,
        started_at=start,
        heartbeat_at=now,
        elapsed_s=elapsed,
        in_flight=sum(view.in_flight for view in datasets),
        rows_per_s=sum(view.rows_per_s for view in datasets),
        completion_tokens_per_s=32_000 + 900 * math.sin(elapsed),
        cost_usd=0.02 * elapsed,
        projected_cost_usd=60 + math.sin(elapsed / 9),
        eta_s=max(0.0, 3000 - elapsed),
        datasets=datasets,
        rate=_series(now, 19.6, 0),
        errors_by_family=_refusals(now, 3),
        limit_series=_limits(now),
        events=EventSeries(
            tuple(
                Mark(now - 300 + 29 * place, "throttle", f"throttle {500 * place}")
                for place in range(10)
            )
        ),
        journal=(),
    )


def _refusals(now: float, most: int) -> tuple[FamilySeries, ...]:
    """Counts that do not change once they are there, as a real run's."""
    first = int(now / 5.0) - 119
    return tuple(
        FamilySeries(
            family, Series(first * 5.0, 5.0, tuple((first + n) // every % most for n in range(120)))
        )
        for family, every in (("rate_limit", 5), ("deadline", 17))
    )


def _limits(now: float) -> Series:
    first = int(now / 5.0) - 119
    levels = (1000.0 + 500 * ((first + n) // 12 % 3) for n in range(120))
    return Series(first * 5.0, 5.0, tuple(levels))


def _series(now: float, height: float, phase: float, width: float = 5.0) -> Series:
    first = int(now / width) - 119
    values = [
        round(height * (1 + 0.3 * math.sin((first + place) * 0.7 + phase)), 3)
        for place in range(120)
    ]
    return Series(first * width, width, tuple(values))


def _moving(name: str, place: int, total: int, now: float, elapsed: float) -> DatasetView:
    speed = 1.0 + place / 3
    ok = min(total // 2, int(elapsed * speed))
    flying = 300 + int(20 * math.sin(elapsed + place))
    failed = int(elapsed / 40)
    attempts = int(elapsed * speed * 1.1)
    error = ErrorLine(
        "rate_limit",
        "SiliconFlow",
        attempts - ok,
        "ACTIVE",
        now - 60,
        now - 1,
        f"{attempts - ok} since the start",
        int(5 + 3 * math.sin(elapsed)),
        "rising",
    )
    return DatasetView(
        name=name,
        state="running",
        prompts=total,
        ok=ok,
        failed=failed,
        in_flight=flying,
        left=total - ok - failed - flying,
        rows=ok,
        attempt_errors=attempts - ok,
        completion_tokens=ok * 1662,
        token_budget=10_000_000,
        cost_usd=ok * 0.0036,
        rows_per_s=speed * (1 + 0.2 * math.sin(elapsed)),
        eta_s=(total - ok) / speed,
        exactness={"matched": ok},
        errors=(error,) if place % 2 else (),
        mean_completion_tokens=1662.0,
        attempts=AttemptRate(int(9 + 4 * math.sin(elapsed)), 600, 300, attempts - ok, attempts),
        rate=_series(now, speed, place),
        errors_by_family=_refusals(now, 2 + place),
    )


def dataset(snapshot: Snapshot, place: int, **changes: object) -> Snapshot:
    """The snapshot with one of its datasets changed."""
    views = list(snapshot.datasets)
    views[place] = replace(views[place], **changes)  # type: ignore[arg-type]  # any field may change
    return replace(snapshot, datasets=tuple(views))


def starting() -> Snapshot:
    quiet = tuple(
        DatasetView(view.name, "queued", view.prompts, left=view.prompts, token_budget=10_000_000)
        for view in story().datasets
    )
    return replace(
        story(),
        state="starting",
        reason="reading B6_ultrachat: 9,000 of 15,000 prompts",
        elapsed_s=2.0,
        started_at=NOW - 2,
        datasets=quiet,
        in_flight=0,
        rows_per_s=0.0,
        completion_tokens_per_s=0.0,
        cost_usd=None,
        in_flight_cost_usd=None,
        projected_cost_usd=None,
        eta_s=None,
        rate=Series(NOW, 5.0),
        errors_by_family=(),
        limit_series=Series(NOW, 5.0),
        events=EventSeries(),
        forecast=None,
        journal=(),
        limit=50,
        limit_reason="ramping up",
    )


def burst() -> Snapshot:
    values = wave(600, 8.8).values
    falling = Series(NOW - 600, 5.0, (*values[:-14], *(3.1 for _ in range(14))))
    refused = (*[0.0] * 105, 1.0, *(4.0 * n for n in range(1, 8)), 45.0, 61, 72, 80, 84, 78, 80)
    arriving = FamilySeries("rate_limit", Series(NOW - 600, 5.0, refused))
    error = ErrorLine(
        "rate_limit",
        "SiliconFlow",
        612,
        "ACTIVE",
        NOW - 74,
        NOW - 1,
        "38 per 100 attempts in the last minute; 612 since 14:01:08, limit down to 500",
        recent=402,
        trend="rising",
    )
    shown = dataset(
        story(),
        3,
        errors=(error,),
        rate=falling,
        errors_by_family=(arriving,),
        attempts=AttemptRate(612, 1_604, 300, 612, 4_512),
        rows_per_s=3.1,
        waiting=581,
        attempt_errors=612,
        eta_s=1_520,
        rate_limited_by="prompts",
    )
    return replace(
        shown,
        limit=500,
        limit_reason="429 burst from SiliconFlow",
        rows_per_s=3.1,
        in_flight=498,
        rate=falling,
        errors_by_family=(arriving,),
        limit_series=Series(NOW - 600, 5.0, (*[2000.0] * 107, *[1000.0] * 5, *[500.0] * 8)),
        events=EventSeries(),
    )


def paused_dataset() -> Snapshot:
    values = [*wave(600, 8.8).values[:90], *[None] * 30]
    shown = dataset(
        story(),
        3,
        state="paused",
        reason="paused by p at 14:02:11",
        in_flight=412,
        left=10_688,
        rows_per_s=4.2,
        eta_s=None,
        errors=(),
        flags={},
        exactness={"matched": 3888},
        rate=Series(NOW - 600, 5.0, tuple(values)),
    )
    return dataset(
        shown,
        4,
        state="running",
        reason="starts in the free slots",
        ok=120,
        rows=120,
        in_flight=1_570,
        left=8_310,
        completion_tokens=199_440,
        cost_usd=0.44,
        rows_per_s=4.6,
        eta_s=870,
        exactness={"matched": 120},
        mean_completion_tokens=1662.0,
        attempts=AttemptRate(0, 120, 300, 0, 120),
        rate=wave(60, 4.6),
    )


def paused_run() -> Snapshot:
    shown = dataset(story(), 3, in_flight=0, left=11_100, rows_per_s=0.0, waiting=0)
    return replace(
        shown,
        state="paused",
        paused=True,
        reason="by P at 14:02:11",
        rate=Series(NOW - 600, 5.0, (*wave(600, 8.8, burst=True).values[:-20], *[None] * 20)),
        events=EventSeries(
            (*ORDERS, Mark(NOW - 120, "pause", "pause run")),
            (Spell(NOW - 120, None, "paused"),),
        ),
        in_flight=0,
        rows_per_s=0.0,
        completion_tokens_per_s=0.0,
        in_flight_cost_usd=0.0,
    )


def disk_full() -> Snapshot:
    return replace(
        story(),
        state="waiting",
        reason="the disk of runs/kimi-k25-eagle3 is full (0 B free)",
        events=EventSeries(
            ORDERS, (Spell(NOW - 480, NOW - 430, "paused"), Spell(NOW - 50, None, "waiting"))
        ),
        rows_per_s=0.0,
    )


def draining() -> Snapshot:
    shown = dataset(story(), 3, in_flight=212, left=10_888)
    return replace(shown, state="draining", reason="asked by q", in_flight=212)


def structural() -> Snapshot:
    error = ErrorLine(
        "auth",
        "SiliconFlow",
        64,
        "STRUCTURAL",
        NOW - 30,
        NOW - 2,
        "64 of 64 attempts in the last 30 s answered 401; no other provider is allowed",
        recent=64,
        action="check OPENROUTER_API_KEY, or allow another provider in [endpoint.provider]",
    )
    older = story().datasets[3].errors
    return dataset(
        story(),
        3,
        errors=(*older, error),
        rows_per_s=0.0,
        attempts=AttemptRate(64, 64, 300, 1_022, 4_922),
    )


def budget() -> Snapshot:
    shown = dataset(
        story(),
        3,
        state="budget",
        in_flight=0,
        left=8_984,
        ok=6_004,
        rows=6_004,
        completion_tokens=10_000_412,
        rows_per_s=0.0,
        reason="token budget reached",
        exactness={"matched": 6_004},
        eta_s=None,
        errors=(),
    )
    return dataset(
        shown,
        4,
        state="running",
        in_flight=1_998,
        left=7_912,
        ok=90,
        rows=90,
        completion_tokens=140_000,
        cost_usd=0.31,
        rows_per_s=8.4,
        eta_s=560,
        rate=wave(120, 8.4),
        attempts=AttemptRate(0, 90, 300, 0, 90),
    )


def skipped() -> Snapshot:
    shown = dataset(
        story(),
        3,
        state="skipped",
        in_flight=37,
        left=11_063,
        reason="skipped by s at 14:02:11",
        rows_per_s=2.1,
        eta_s=None,
    )
    return dataset(shown, 4, state="running", in_flight=1_961, left=8_039)


def stalled() -> Snapshot:
    values = [*wave(600, 8.8).values[:60], *[0.0] * 60]
    return dataset(story(), 3, rate=Series(NOW - 600, 5.0, tuple(values)), rows_per_s=0.0)


def done() -> Snapshot:
    ended = tuple(
        replace(
            view,
            state="done",
            ok=view.prompts,
            failed=0,
            in_flight=0,
            left=0,
            waiting=0,
            rows=view.prompts,
            rows_per_s=0.0,
            eta_s=None,
            cost_usd=view.prompts * 0.0023,
            completion_tokens=view.prompts * 640,
            exactness={"matched": view.prompts},
            flags={},
            errors=(),
            reason="",
            attempts=AttemptRate(0, 0, 300, 0, view.prompts),
        )
        for view in story().datasets
    )
    return replace(
        story(),
        state="done",
        exit_code=0,
        datasets=ended,
        in_flight=0,
        rows_per_s=0.0,
        completion_tokens_per_s=0.0,
        eta_s=0.0,
        cost_usd=86.0,
        max_cost_usd=100.0,
        rate=wave(600, 8.8),
        errors_by_family=(),
        limit_series=Series(NOW - 600, 5.0, (2000.0,) * 120),
    )


def failed_some() -> Snapshot:
    shown = dataset(done(), 3, ok=14_988, failed=12, exactness={"matched": 14_988}, rows=14_988)
    return replace(shown, exit_code=3)


SCENES: dict[str, Callable[[], Snapshot]] = {
    "story": story,
    "starting": starting,
    "burst": burst,
    "paused_dataset": paused_dataset,
    "paused_run": paused_run,
    "disk_full": disk_full,
    "draining": draining,
    "structural": structural,
    "budget": budget,
    "skipped": skipped,
    "stalled": stalled,
    "done": done,
    "failed_some": failed_some,
    "busy": lambda: busy(NOW - 400, 400.0),
}


def many(count: int) -> Snapshot:
    """A run of many datasets: more than a small screen has lines for."""
    base: Sequence[DatasetView] = story().datasets
    views = tuple(replace(base[n % 6], name=f"set_{n:02}") for n in range(count))
    return replace(story(), datasets=views)


class HandClock:
    """A clock that a test turns by hand."""

    def __init__(self, at: float = NOW) -> None:
        self.at = at

    def monotonic(self) -> float:
        return self.at

    def wall(self) -> float:
        return self.at
