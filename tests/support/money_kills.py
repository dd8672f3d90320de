"""A run with every kind of trouble, killed with SIGKILL at random moments, then ended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from e2e_desk import Desk, until
from e2e_files import assert_accounted
from e2e_provider import arrived, is_idle, playing, slow
from money_engine import engine_on

from engine.simulator import Simulator

CONCURRENCY = 16
DOUBLES = 10
"""Prompts that the source holds twice."""
HOSTS: list[dict[str, Any]] = [
    {"name": "SiliconFlow", "tag": "siliconflow/int4"},
    {"name": "AtlasCloud", "tag": "atlas-cloud/int4"},
    {"name": "Novita", "tag": "novita", "faults": {"bad_gateway": 0.8}},
]
"""One of them fails, so that requests differ in the hosts that they leave out."""


@dataclass(frozen=True, slots=True)
class Killed:
    """What was left of a run after so many kills."""

    kills: int
    prompts: int
    rows: int
    lost: int
    """Rows that status.json had counted at a kill and that were not there then."""
    doubled: int
    paid_again: int
    """Charges beyond one a row."""
    unknown: int
    """Requests that a kill left without an outcome."""
    paid_usd: float
    told_usd: float
    """What the provider charged, and what the run says that it cost."""
    hits: int
    most_twice: int
    """Requests that the summary says may have been paid twice."""
    left_out: int
    """Requests that asked for hosts to be left out."""


def killed(folder: Path, *, prompts: int, kills: int, seed: int, caches: bool) -> Killed:
    """Kill a run again and again, and let it end; fails where a session ended before its kill."""
    faults = {"reset_in_body": 0.03, "close": 0.03} if caches else {}
    weather = {"faults": faults, "latency": slow(0.5), "generation_delay_s": 0.2}
    with (
        playing(providers=HOSTS, **weather) as provider,
        Desk(folder, provider.base_url) as desk,
    ):
        _lay(desk, prompts, caches=caches)
        draw, lost = Random(seed), 0
        for _ in range(kills):
            lost += _kill(desk, provider, draw.randint(1, max(2, prompts // kills)))
        outcome = engine_on(desk, patience_s=120)
        assert outcome.code == 0
        assert_accounted(outcome.files)
        until(lambda: is_idle(provider), "the provider has finished")
        rows = outcome.files.all("rows")
        ids = Counter(row["id"] for row in rows)
        families = Counter(a["family"] for a in outcome.files.all("attempts"))
        return Killed(
            kills=kills,
            prompts=prompts + DOUBLES,
            rows=len(rows),
            lost=lost,
            doubled=sum(count - 1 for count in ids.values()),
            paid_again=provider.ledger.charged - len(rows),
            unknown=families["unknown"],
            paid_usd=provider.ledger.cost_usd,
            told_usd=outcome.last.cost_usd or 0.0,
            hits=provider.ledger.cached,
            most_twice=outcome.last.twice_attempts,
            left_out=sum("ignore" in record for record in outcome.files.all("sent")),
        )


def _lay(desk: Desk, prompts: int, *, caches: bool) -> None:
    numbers = [*range(prompts), *range(DOUBLES)]
    source = desk.source("a.jsonl", [{"prompt": f"Question {n}"} for n in numbers])
    desk.manifest(
        {"name": "A", "source": source, "prompts": len(numbers)},
        endpoint={"tokenizer": "none", "response_cache": caches},
        limits={"concurrency": CONCURRENCY, "request_timeout_s": 3},
    )


def _kill(desk: Desk, provider: Simulator, after: int) -> int:
    """Start the run, kill it once so many more requests have come; the rows that are missing."""
    goal = arrived(provider) + after
    process = desk.begin("--headless")
    until(lambda: arrived(provider) >= goal or not process.running, f"{after} requests")
    process.kill()
    assert process.popen.returncode < 0, "the session ended before it was killed"
    if not (desk.files.folder / "status.json").exists():
        return 0
    counted = sum(view["rows"] for view in desk.files.status()["datasets"])
    return max(0, counted - len(desk.files.whole_lines("A/rows.jsonl")))
