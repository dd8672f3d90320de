"""SIGINT and SIGTERM of a headless run: the first drains, the second stops, the third leaves."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk, Process, until
from e2e_files import assert_accounted
from e2e_provider import arrived, is_idle, playing, slow

from engine.simulator import Simulator

FLYING = 6
PROMPTS = 30


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing(latency=slow(1.2)) as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, endpoint={"api": "openai"}, limits={"concurrency": FLYING})
        yield desk


def flying(desk: Desk, provider: Simulator, *options: object) -> Process:
    """A run whose slots are all filled."""
    process = desk.begin(*options)
    process.until(lambda: provider.provider.in_flight == FLYING, "all slots are filled")
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_drains(desk: Desk, provider: Simulator, number: signal.Signals) -> None:
    process = flying(desk, provider)
    process.signal(number)
    result = process.wait()
    assert result.code == 130
    assert f"{number.name}: draining; once more stops" in result.err
    rows = desk.files.all("rows")
    assert FLYING <= len(rows) == arrived(provider) < PROMPTS
    assert desk.files.all("attempts") == []
    assert provider.ledger.cancelled == 0
    status = desk.files.status()
    assert (status["state"], status["in_flight"]) == ("stopped", 0)
    assert status["datasets"][0]["left"] == PROMPTS - len(rows)
    (command,) = desk.files.events("command")
    assert (command["command"], command["origin"]) == ("drain", number.name)
    assert desk.files.events("state")[-1]["state"] == "stopped"
    assert_accounted(desk.files)


def test_a_drained_run_goes_on_to_its_end(desk: Desk, provider: Simulator) -> None:
    process = flying(desk, provider)
    process.signal(signal.SIGTERM)
    assert process.wait().code == 130
    assert desk.go("--concurrency", PROMPTS).code == 0
    assert len(desk.files.all("rows")) == PROMPTS
    assert provider.ledger.requests == PROMPTS
    assert_accounted(desk.files)


def test_the_second_signal_stops_and_the_next_run_completes(
    desk: Desk, provider: Simulator
) -> None:
    process = flying(desk, provider)
    process.signal(signal.SIGINT)
    process.says("SIGINT: draining")
    process.signal(signal.SIGTERM)
    result = process.wait()
    assert result.code == 130
    assert "SIGTERM: stopping" in result.err
    assert [c["command"] for c in desk.files.events("command")] == ["drain", "stop"]
    attempts = desk.files.all("attempts")
    cancelled = len(attempts)
    assert cancelled > 0
    assert {attempt["family"] for attempt in attempts} == {"cancelled"}
    assert all(attempt["sent"] and attempt["cost"] is None for attempt in attempts)
    assert len(desk.files.all("rows")) + cancelled == arrived(provider)
    status = desk.files.status()
    assert status["datasets"][0]["attempt_errors"] == 0
    assert status["cost_unknown_attempts"] == cancelled
    assert_accounted(desk.files)
    until(lambda: is_idle(provider), "the provider has charged what it was asked")
    assert provider.ledger.cancelled == cancelled
    assert desk.go("--concurrency", PROMPTS).code == 0
    rows = desk.files.all("rows")
    assert len(rows) == PROMPTS
    assert sum(row["attempts"] == 2 for row in rows) == cancelled
    assert provider.ledger.requests == len(rows) + cancelled
    assert_accounted(desk.files)


def test_a_signal_before_the_first_request_is_not_lost(tmp_path: Path) -> None:
    """The order waits until the engine can take it; nothing is sent."""
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS)
        holding = "import engine.runner as r, signal, os\ninspect = r.inspect\n"
        holding += "async def first(*a):\n os.kill(os.getpid(), signal.SIGTERM)\n"
        holding += " return await inspect(*a)\nr.inspect = first"
        result = desk.begin(before=holding).wait()
        assert result.code == 130
        assert arrived(provider) == 0
        assert desk.files.all("sent") == []
        assert desk.go().code == 0


def test_a_signal_after_the_last_row_changes_nothing(desk: Desk, provider: Simulator) -> None:
    desk.asking(FLYING, endpoint={"api": "openai"}, limits={"concurrency": FLYING})
    process = flying(desk, provider)
    process.signal(signal.SIGTERM)
    result = process.wait()
    assert result.code == 0
    assert desk.files.status()["state"] == "done"
