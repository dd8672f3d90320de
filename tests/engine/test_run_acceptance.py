"""The acceptance run: six real prompt sets in four row forms, whole, then killed halfway."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import SHARED, Desk, until
from e2e_files import assert_accounted
from e2e_provider import is_idle, playing

from engine.simulator import Scenario, Simulator
from engine.simulator.call import hashes

MANIFEST = SHARED / "prompts" / "manifest.toml"
ROWS = {
    "B3_humaneval": 80,
    "B4_sum": 80,
    "B5_mt_bench": 160,
    "B6_gsm8k": 7473,
    "B7_synthetic": 1000,
    "B8_conversations": 1001,
}
DEADLINE_S = 20
"""Of one request; a killed one may be resent for free only after it."""
LONG_S = 500.0

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not MANIFEST.exists(), reason="the prompt sets are in ../shared"),
]


@pytest.fixture
def provider() -> Iterator[Simulator]:
    """The provider as `eaglegen-tui simulate` plays it."""
    with playing(**Scenario().model_dump()) as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        text = MANIFEST.read_text("utf-8").replace('source = "', f'source = "{MANIFEST.parent}/')
        text = text.replace("[limits]", f"[limits]\nrequest_timeout_s = {DEADLINE_S}")
        (tmp_path / "manifest.toml").write_text(text, "utf-8")
        yield desk


def assert_whole(desk: Desk, provider: Simulator) -> None:
    for name, count in ROWS.items():
        rows = desk.files.lines(f"{name}/rows.jsonl")
        assert len({row["id"] for row in rows}) == len(rows) == count
    assert_accounted(desk.files)
    # 1,001 conversations begin with 200 different questions: one request may serve several rows
    served = Counter(hashes({"messages": row["messages"]})[0] for row in desk.files.all("rows"))
    assert set(provider.ledger.charges) == set(served)
    assert all(paid <= served[key] for key, paid in provider.ledger.charges.items())
    for view in desk.files.status()["datasets"]:
        assert (view["state"], view["ok"]) == ("done", view["prompts"])


def options(desk: Desk) -> list[str]:
    return ["--headless", "--output", str(desk.files.folder), "--base-url", desk.base_url]


def test_the_acceptance_run_is_whole(desk: Desk, provider: Simulator) -> None:
    result = desk.begin(*options(desk)).wait(LONG_S)
    assert result.code == 0, result.err
    assert_whole(desk, provider)
    attempts = desk.files.all("attempts")
    assert provider.ledger.requests == sum(ROWS.values()) + len(attempts)


def test_the_acceptance_run_killed_halfway_comes_to_the_same(
    desk: Desk, provider: Simulator
) -> None:
    process = desk.begin(*options(desk))
    half = sum(ROWS.values()) // 2
    until(
        lambda: provider.ledger.requests > half or not process.running,
        "halfway",
        patience_s=LONG_S,
    )
    process.kill()
    counted = sum(view["rows"] for view in desk.files.status()["datasets"])
    assert counted <= sum(
        len(desk.files.whole_lines(f"{n}/rows.jsonl"))
        for n in ROWS
        if (desk.files.folder / n).exists()
    )
    result = desk.begin(*options(desk)).wait(LONG_S)
    assert result.code == 0, result.err
    until(lambda: is_idle(provider), "nothing is in flight")
    assert_whole(desk, provider)
    assert provider.ledger.cached > 0
