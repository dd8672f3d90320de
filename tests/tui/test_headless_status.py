"""`status RUN_DIR`: a live run, an ended one, a killed one, and a folder that holds none."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk, Process, Result
from e2e_provider import playing, slow

from engine.simulator import Simulator

PROMPTS = 40


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing(latency=slow(0.3)) as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, "B6_ultrachat", endpoint={"api": "openai"}, limits={"concurrency": 2})
        yield desk


def status(desk: Desk, *options: str, folder: str = "out") -> Result:
    return desk.run("status", desk.folder / folder, *options)


def counted(desk: Desk) -> bool:
    """Whether status.json counts some rows already."""
    path = desk.files.folder / "status.json"
    return path.exists() and bool(desk.files.status()["datasets"][0]["rows"])


def live(desk: Desk) -> Process:
    process = desk.begin()
    process.until(lambda: counted(desk), "the heartbeat counts rows")
    return process


def test_a_live_run_then_a_killed_one(desk: Desk) -> None:
    process = live(desk)
    (record,) = status(desk, "--json").records
    assert record["state"] == "running"
    assert record["live"] is True
    assert record["pid"] == process.pid
    assert 0 <= record["heartbeat_age_s"] < 60
    assert record["datasets"][0]["prompts"] == PROMPTS
    text = status(desk).out
    assert "e2e  running" in text
    assert f"from process {process.pid} on " in text
    assert "B6_ultrachat · 40 prompts: running, " in text
    assert "DEAD" not in text

    process.kill()
    dead = status(desk)
    assert dead.code == 0
    assert "e2e  DEAD while running: its process is gone" in dead.out
    (record,) = status(desk, "--json").records
    assert (record["state"], record["live"]) == ("running", False)
    assert record["heartbeat_age_s"] >= 0


def test_an_ended_run(desk: Desk) -> None:
    desk.asking(3)
    assert desk.go().code == 0
    result = status(desk)
    assert result.code == 0
    assert "e2e  done" in result.out
    assert (
        "A · 3 prompts: done, 3 ok, 0 failed, 0 invalid, 0 in flight, 0 left; 3 rows" in result.out
    )
    (record,) = status(desk, "--json").records
    assert (record["state"], record["live"]) == ("done", False)
    assert set(record) == {*desk.files.status(), "heartbeat_age_s", "live"}


def test_a_drained_run_says_why_it_ended(desk: Desk) -> None:
    process = live(desk)
    process.signal(signal.SIGTERM)
    assert process.wait().code == 130
    text = status(desk).out
    assert "e2e  stopped: drained by order" in text
    assert "DEAD" not in text


def test_a_run_that_the_endpoint_refused_says_why(desk: Desk) -> None:
    """It ended before the first heartbeat."""
    desk.asking(3, endpoint={"base_url": "http://127.0.0.1:9/api/v1"})
    assert desk.go().code == 4
    result = status(desk)
    assert result.code == 0
    assert "e2e  stopped: http://127.0.0.1:9/api/v1 does not answer" in result.out


def test_a_later_refusal_hides_no_row_of_an_earlier_session(desk: Desk) -> None:
    desk.asking(3)
    assert desk.go().code == 0
    desk.asking(3, endpoint={"base_url": "http://127.0.0.1:9/api/v1"})
    assert desk.go().code == 4
    (record,) = status(desk, "--json").records
    assert record["state"] == "stopped"
    assert "does not answer" in record["reason"]
    assert record["datasets"][0]["rows"] == 3


@pytest.mark.parametrize(
    ("name", "words"), [("empty", "is no run directory"), ("missing", "is no run directory")]
)
def test_a_folder_that_holds_no_run(desk: Desk, name: str, words: str) -> None:
    (desk.folder / "empty").mkdir()
    for option in ([], ["--json"]):
        result = status(desk, *option, folder=name)
        assert result.code == 2
        assert words in result.err
        assert result.out == ""


def test_a_status_that_is_no_status_is_refused(desk: Desk) -> None:
    (desk.folder / "out").mkdir()
    (desk.folder / "out" / "status.json").write_text('{"schema": 1}')
    result = status(desk)
    assert result.code == 2
    assert "Traceback" not in result.err
