"""`run --ray` on a Ray of this host: two workers, one killed with -9 in the middle."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from e2e_desk import Desk, until
from e2e_files import RunFiles, assert_accounted
from e2e_provider import is_idle, playing, slow

from engine.simulator import Simulator

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="ray has no wheel for this Python")
PROMPTS = 400
PATIENCE_S = 120.0


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing(latency=slow(0.3)) as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, endpoint={"api": "openai"}, limits={"concurrency": 16})
        yield desk


def shards(desk: Desk) -> list[RunFiles]:
    return [RunFiles(desk.folder / "out" / f"shard-{i}-of-2") for i in (1, 2)]


def rows(files: RunFiles) -> int:
    return len(files.whole_lines("A/rows.jsonl"))


def holder(files: RunFiles) -> int:
    pid: int = json.loads((files.folder / "run.lock").read_bytes())["pid"]
    return pid


@pytest.mark.slow
def test_a_killed_worker_is_placed_again_and_loses_and_doubles_nothing(
    desk: Desk, provider: Simulator
) -> None:
    run = desk.begin("--ray", "--workers", 2, "--headless", "--interval", 1)
    first, second = shards(desk)
    run.until(lambda: rows(first) >= 20 and rows(second) >= 20, "both workers have rows")
    killed = holder(first)
    counted = rows(first)
    os.kill(killed, signal.SIGKILL)
    run.says("died; process")
    assert holder(first) != killed
    assert rows(first) >= counted
    result = run.wait(PATIENCE_S)
    assert result.code == 0, result.err
    assert f"A {PROMPTS}/{PROMPTS} (" in result.err
    until(lambda: is_idle(provider), "the provider has finished")
    ids = [row["id"] for files in shards(desk) for row in files.all("rows")]
    assert len(ids) == len(set(ids)) == PROMPTS
    for files in shards(desk):
        assert_accounted(files)
    lost = Counter(a["family"] for a in first.all("attempts"))
    assert set(lost) <= {"unknown"}
    assert provider.ledger.charged <= PROMPTS + lost["unknown"]  # only what was in flight
    assert not second.all("attempts")
    assert desk.run("verify", desk.folder / "out").code == 0


@pytest.mark.slow
def test_orders_and_signals_reach_the_workers(desk: Desk) -> None:
    desk.environment["EAGLEGEN_API_KEY"] = "sk-or-v1-" + "5e" * 32
    run = desk.begin("--ray", "--workers", 2, "--headless", "--json")
    run.until(lambda: all(rows(files) for files in shards(desk)), "both workers have rows")
    held = desk.go("--ray", "--workers", 2)
    assert held.code == 5
    words = desk.run("control", desk.folder / "out", "throttle", 6)
    assert words.out == "ceiling now 3 in flight (each of 2)\n"
    run.signal(signal.SIGTERM)
    result = run.wait(PATIENCE_S)
    assert result.code == 130
    assert result.summary["event"] == "summary"
    assert result.summary["datasets"][0]["in_flight"] == 0
    assert sum(map(rows, shards(desk))) == result.summary["datasets"][0]["rows"]
    kept = [path for path in (desk.folder / "out").rglob("*") if path.is_file()]
    assert all(b"5e5e5e5e" not in path.read_bytes() for path in kept)
    assert "5e5e5e5e" not in result.out + result.err


def test_without_ray_the_extra_is_named(desk: Desk) -> None:
    run = desk.begin("--ray", "--workers", 2, before="import sys; sys.modules['ray'] = None")
    result = run.wait()
    assert result.code == 2
    assert "pip install 'eaglegen-tui[ray]'" in result.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--ray",), "--ray needs --workers N"),
        (("--ray", "--workers", "1"), "at least 2"),
        (("--workers", "2"), "--workers is for --ray"),
        (("--ray", "auto", "--workers", "2", "--shard", "1/2"), "leave out --shard"),
        (("--ray", "--workers", "17"), "limits.concurrency: 16 cannot be shared by 17 shards"),
    ],
)
def test_options_that_do_not_go_together(desk: Desk, options: tuple[str, ...], words: str) -> None:
    result = desk.go(*options)
    assert result.code == 2
    assert words in result.err


def test_an_address_that_does_not_answer(desk: Desk) -> None:
    result = desk.begin("--ray", "127.0.0.1:9", "--workers", 2, "--headless").wait()
    assert result.code == 2
    assert "no Ray answers there" in result.err
