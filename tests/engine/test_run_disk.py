"""A disk that takes nothing more: the run waits with what it paid for, and goes on when mended.

The child's largest file size stands in for the disk: it refuses the same write with an error.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk, Process, until
from e2e_files import assert_accounted
from e2e_provider import arrived, is_idle, playing

from engine.simulator import Simulator

ROOM = 24 * 1024
FULL = f"""
import resource, sys
sys.dont_write_bytecode = True  # the limit would cut the cached modules short
resource.setrlimit(resource.RLIMIT_FSIZE, ({ROOM}, resource.RLIM_INFINITY))
"""
PROMPTS = 60


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing() as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, endpoint={"api": "openai"})
        yield desk


def waiting(desk: Desk, provider: Simulator) -> Process:
    """A run whose rows do not fit the disk any more."""
    process = desk.begin(before=FULL)
    status = desk.folder / "out" / "status.json"
    process.until(lambda: status.exists() and desk.files.status()["state"] == "waiting", "it waits")
    until(lambda: is_idle(provider), "what was in flight has come")
    return process


def test_a_full_disk_makes_the_run_wait_and_a_mended_one_lets_it_go_on(
    desk: Desk, provider: Simulator
) -> None:
    process = waiting(desk, provider)
    status = desk.files.status()
    assert "rows.jsonl: File too large" in status["reason"]
    assert arrived(provider) < PROMPTS
    assert status["datasets"][0]["rows"] <= len(desk.files.whole_lines("A/rows.jsonl"))
    infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, infinite)
    result = process.wait()
    assert result.code == 0, result.err
    assert len(desk.files.all("rows")) == provider.ledger.requests == PROMPTS
    assert_accounted(desk.files)
    assert any("File too large" in entry["text"] for entry in desk.files.events("state"))


def test_a_third_signal_leaves_without_the_disk(desk: Desk, provider: Simulator) -> None:
    process = waiting(desk, provider)
    for words in ("draining", "stopping"):
        process.signal(signal.SIGTERM)
        process.says(f"SIGTERM: {words}")
    assert process.running
    process.signal(signal.SIGTERM)
    result = process.wait()
    assert result.code == 130
    assert "Traceback" not in result.err
    assert "not on disk" in result.err
    assert desk.go().code == 0
    assert len(desk.files.all("rows")) == PROMPTS
    assert_accounted(desk.files)
    assert provider.ledger.requests == PROMPTS + sum(
        attempt["family"] == "unknown" for attempt in desk.files.all("attempts")
    )
