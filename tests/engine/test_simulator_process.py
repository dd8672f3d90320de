"""The local provider as a process of its own: its one line, its end, its files."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from playing import ask, playing

from engine import simulator
from engine.simulator import Scenario, ScenarioError
from engine.simulator.faults import FAULTS
from engine.simulator.toml import to_toml

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
REQUEST = {"model": "moonshotai/kimi-k2.5", "messages": [{"role": "user", "content": "Hi"}]}
QUICK = 'tokenizer = "none"\n[latency]\nmean_s = 0.0\n'


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "quick.toml"
    path.write_text(QUICK)
    return path


class Process:
    def __init__(self, *arguments: str) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "engine.simulator", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def said(self) -> dict[str, object]:
        assert self.popen.stdout
        line: dict[str, object] = json.loads(self.popen.stdout.readline())
        return line

    def end(self) -> tuple[str, str]:
        return self.popen.communicate(timeout=20)


@pytest.fixture
def started(scenario: Path, tmp_path: Path) -> Iterator[Process]:
    process = Process(
        "--scenario", str(scenario), "--ledger", str(tmp_path / "ledger.jsonl"), "--parent-watch"
    )
    with process.popen:
        yield process
        process.popen.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_listens_and_ends_on_a_signal(
    started: Process, tmp_path: Path, number: signal.Signals
) -> None:
    said = started.said()
    assert said["pid"] == started.popen.pid
    reply = httpx.post(f"{said['base_url']}/chat/completions", json=REQUEST)
    assert reply.status_code == 200
    (line,) = (tmp_path / "ledger.jsonl").read_text().splitlines()
    assert json.loads(line)["id"] == reply.json()["id"]
    started.popen.send_signal(number)
    out, err = started.end()
    assert started.popen.returncode == 0
    assert out == ""
    assert "ended: 1 requests, 1 charged" in err
    assert "Traceback" not in err


def test_it_ends_with_its_parent(started: Process) -> None:
    started.said()
    assert started.popen.stdin
    started.popen.stdin.close()
    assert started.popen.wait(timeout=20) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("speeed = 2\n", "wrong.toml:1: speeed: unknown key; did you mean 'speed'?"),
        (
            "[[providers]]\nname = 'A'\ntag = 'a'\nwieght = 1\n",
            "wrong.toml:4: providers 1.wieght: unknown key; did you mean 'weight'?",
        ),
        (
            "[faults]\nempty_stob = 0.5\n",
            "toml:2: faults.empty_stob: unknown fault 'empty_stob'; did you mean 'empty_stop'?",
        ),
        ("[faults]\nempty_stop = 1.5\n", "less than or equal to 1"),
        (
            "[[windows]]\nprovider = 'b'\n",
            "wrong.toml:2: windows 1.provider: no provider has the tag b",
        ),
        ("[[windows]]\nrefusal = 'rate_limi'\n", "wrong.toml:2: windows 1.refusal: unknown fault"),
        ("speed = inf\n", "wrong.toml:1: speed: "),
        ("seed = \n", "line 1"),
        ("seed = " + "9" * 5000, "not valid TOML"),
    ],
)
def test_a_wrong_scenario_is_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_toml(path)
    assert words in str(caught.value)
    assert "wrong.toml" in str(caught.value)
    assert simulator.main(scenario_path=path) == 2


def test_a_missing_scenario_is_a_usage_error(tmp_path: Path) -> None:
    assert simulator.main(scenario_path=tmp_path / "none.toml") == 2
    with pytest.raises(ScenarioError) as caught:
        Scenario.from_toml("domo")
    assert str(caught.value) == "there is no scenario domo\nBuilt in: bench, demo."


def test_a_scenario_that_is_no_text_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"model = '\xe9'\n")
    assert simulator.main(scenario_path=tmp_path / "latin.toml") == 2
    assert simulator.main(scenario_path=tmp_path) == 2


def test_a_ledger_that_cannot_be_written_is_not_taken_for_the_port(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert simulator.main(ledger_path=tmp_path / "file" / "ledger") == 2
    assert f"cannot write to {tmp_path / 'file'}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["demo", "bench"])
def test_a_scenario_survives_its_own_file(tmp_path: Path, name: str) -> None:
    scenario = Scenario.from_toml(name)
    path = tmp_path / "copy.toml"
    path.write_text(to_toml(scenario))
    assert Scenario.from_toml(path) == scenario


async def test_the_demo_has_a_burst_and_a_bad_host_and_recovers() -> None:
    story = Scenario.from_toml("demo").model_dump() | {"tokenizer": "none", "speed": 50.0}
    burst, bad_host = story["windows"]
    burst |= {"from_request": 130, "capacity": 4}
    bad_host |= {"from_request": 300}
    async with playing(**story) as (sim, client):
        gate = asyncio.Semaphore(12)

        async def one(number: int) -> None:
            async with gate:
                await ask(client, f"Question {number}", max_tokens=8192)

        await asyncio.gather(*(one(n) for n in range(600)))
    faults = [entry.fault for entry in sorted(sim.ledger.entries, key=lambda e: e.at)]
    refused = [n for n, fault in enumerate(faults) if fault == "rate_limit_upstream"]
    empty = [n for n, fault in enumerate(faults) if fault == "empty_stop"]
    assert 120 < min(refused) <= max(refused) < 590
    assert 290 < min(empty) <= max(empty) < 600
    assert {e.provider for e in sim.ledger.entries if e.fault == "empty_stop"} == {"Novita"}


def test_faults_are_listed() -> None:
    listed = subprocess.run(
        [sys.executable, "-m", "engine.simulator", "--list-faults"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = [line.partition("]]")[0].removeprefix("[[sim:") for line in listed.stdout.splitlines()]
    assert names == list(FAULTS)
