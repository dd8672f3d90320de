"""The story with all that the detail screens show: rows, failures, lengths, ages, a journal."""

from __future__ import annotations

from dataclasses import replace

from scripted_run import LiveRun, dataset

from engine.view.snapshot import (
    FailureLine,
    Flying,
    JournalEntry,
    Latency,
    ProviderView,
    RowLine,
    Snapshot,
)
from tui.picture import NOW, story

ANSWERS = (
    "The derivative of x squared is 2x, because the limit of the quotient exists for every x.",
    "def merge(left, right):\\n    out = []\\n    while left and right:\\n        out.append(",
    "Es tut mir leid, das kann ich so nicht beantworten.",
    "第一步:先求出两个方程的公共解。",
)
GRADES = ("matched", "matched", "matched", "ambiguous", "matched", "mismatch")


def _row(place: int) -> RowLine:
    cut = place == 4
    return RowLine(
        id=f"B6_ultrachat/{0xA5F0_3C61_77D2_0000 + place * 7919:016x}.0#0",
        at=NOW - 1 - place * 0.4,
        provider="SiliconFlow" if place % 3 else "Novita",
        tokens=8192 if cut else 420 + place * 317,
        grade=GRADES[place % len(GRADES)],
        flags=("truncated",) if cut else (),
        finish_reason="length" if cut else "stop",
        latency_s=31.0 + 7 * place,
        text=ANSWERS[place % len(ANSWERS)],
    )


def _failure(place: int) -> FailureLine:
    moderated = place % 2
    return FailureLine(
        id=f"B6_ultrachat/{0x1B22_9E40_0000_0000 + place * 104729:016x}.0#{place % 3}",
        at=NOW - 300 - 41 * place,
        family="moderation" if moderated else "deadline",
        message="Input was flagged by the provider [violence]" if moderated else "no reply in time",
        attempts=1 if moderated else 8,
    )


def detailed() -> Snapshot:
    """The story's run; its running dataset has everything."""
    snapshot = story()
    errors = tuple(
        replace(error, words=words)
        for error, words in zip(
            snapshot.datasets[3].errors,
            ("Rate limit exceeded: limit_rpm/moonshotai. High demand right now.", ""),
            strict=True,
        )
    )
    shown = dataset(
        snapshot,
        3,
        errors=errors,
        exactness={"engine": 12, "matched": 3_850, "ambiguous": 25, "mismatch": 1},
        flags={"truncated": 3, "reasoning_only": 1},
        latency=Latency(71.0, 164.0, 412.0),
        lengths=((128, 12), (256, 96), (512, 410), (1024, 1_004), (2048, 1_377), (4096, 802),
                 (8192, 187)),
        finish_reasons={"stop": 3_885, "length": 3},
        slowest=tuple(
            Flying(f"B6_ultrachat/{0xC0DE_0000_0000_0000 + n * 65537:016x}.0#0", 702.0 - 31 * n,
                   1 + n % 3)
            for n in range(20)
        ),
        last_rows=tuple(_row(place) for place in range(12)),
        last_failures=tuple(_failure(place) for place in range(12)),
    )  # fmt: skip
    return replace(
        shown,
        providers=(
            ProviderView("SiliconFlow", 11_020, 946, None, 18_000_000, 14_020.0, 28.31, "verbatim"),
            ProviderView("Novita", 631, 12, None, 900_000, 600.0, 1.78, "spaced",
                         "adds 18 prompt tokens: the old default system prompt"),
            ProviderView("Fireworks", 0, 40, None, 0, 0.0, None, "", "", "resting until 14:07"),
        ),
        journal=(
            JournalEntry(NOW - 1860, "state", "run starting → running"),
            JournalEntry(NOW - 420, "limit", "limit 1,000: 429 burst from SiliconFlow"),
            JournalEntry(NOW - 415, "verdict", "rate_limit SiliconFlow is ACTIVE: 38 per 100 "
                         "attempts in the last minute; 612 since 14:01:08", "B6_ultrachat"),
            JournalEntry(NOW - 252, "limit", "the limit is back at 2,000"),
            JournalEntry(NOW - 250, "verdict", "rate_limit SiliconFlow is RESOLVED: 946 in 2m 48s",
                         "B6_ultrachat"),
            JournalEntry(NOW - 40, "command", "paused B7_openhermes: 0 in flight will finish",
                         "B7_openhermes"),
        ),
        journal_total=6,
    )  # fmt: skip


class DetailedRun(LiveRun):
    """The busiest run there is, with everything that the dataset screen shows on the move."""

    def snapshot(self) -> Snapshot:
        shown, still = super().snapshot(), detailed().datasets[3]
        passed = shown.heartbeat_at - shown.started_at
        beat = int(2 * passed)
        rows = tuple(_row(place + beat) for place in range(12))
        flying = tuple(replace(one, age_s=one.age_s + passed) for one in still.slowest)
        lengths = tuple((bound, count + beat) for bound, count in still.lengths)
        views = tuple(
            replace(view, last_rows=rows, slowest=flying, lengths=lengths, latency=still.latency,
                    last_failures=still.last_failures, finish_reasons={"stop": view.ok})
            for view in shown.datasets
        )  # fmt: skip
        return replace(shown, datasets=views, providers=detailed().providers)
