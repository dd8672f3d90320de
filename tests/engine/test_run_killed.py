"""kill -9 at seeded moments of a real run, then resume: nothing lost, doubled or paid for twice."""

from __future__ import annotations

import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from e2e_desk import Desk, Process, until
from e2e_files import assert_accounted
from e2e_provider import arrived, is_idle, playing, slow

from engine.simulator import Simulator
from engine.simulator.call import hashes

CONCURRENCY = 16
Answers = dict[str, tuple[Any, ...]]
Undisturbed = Callable[[int], Answers]
PLAIN: dict[str, Any] = {"api": "openai"}
"""Without a response cache: what was in flight at a kill is paid again, and nothing else."""


def lay(desk: Desk, prompts: int, endpoint: dict[str, Any], **limits: Any) -> None:
    """Two datasets, single turns and conversations, some of which are refused once."""
    single = [
        {"prompt": f"{'[[sim:server_500*1]] ' * (n % 9 == 4)}Task {n}"} for n in range(prompts)
    ]
    talks = [{"turns": [f"Talk {n}", "Go on", "And then?"]} for n in range(prompts // 3)]
    desk.manifest(
        {"name": "A", "source": desk.source("a.jsonl", single), "prompts": len(single)},
        {"name": "B", "source": desk.source("b.jsonl", talks), "prompts": len(talks)},
        endpoint=endpoint,
        limits={"concurrency": CONCURRENCY, **limits},
    )


class Story:
    """A run that is killed again and again; keeps what was seen at each kill."""

    def __init__(self, desk: Desk, provider: Simulator, seed: int) -> None:
        self.desk = desk
        self.provider = provider
        self.draw = random.Random(seed)
        self.killed = 0

    def kill_once(self, after: int, *, settled: bool = True) -> None:
        """Start the run and kill it once `after` more requests have come, give or take a moment."""
        goal = arrived(self.provider) + after
        process = self.desk.begin("--headless")
        until(lambda: arrived(self.provider) >= goal or not process.running, f"{after} requests")
        self._linger(process)
        process.kill()
        self.killed += process.popen.returncode == -signal.SIGKILL
        if settled:
            until(lambda: is_idle(self.provider), "the provider has finished what was in flight")
        self._assert_counted_rows_are_there()

    def _linger(self, process: Process) -> None:
        """Let a random number of rows more reach the disk, so that the moments differ in phase."""
        rows = self._rows_on_disk() + self.draw.randrange(3)
        until(lambda: self._rows_on_disk() >= rows or not process.running, "some rows more")

    def _rows_on_disk(self) -> int:
        paths = [self.desk.folder / "out" / name / "rows.jsonl" for name in "AB"]
        return sum(path.read_bytes().count(b"\n") for path in paths if path.exists())

    def _assert_counted_rows_are_there(self) -> None:
        files = self.desk.files
        if not (files.folder / "status.json").exists():
            return
        for view in files.status()["datasets"]:
            assert len(files.whole_lines(f"{view['name']}/rows.jsonl")) >= view["rows"]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """The answers of a run that nothing happens to, by its size."""
    known: dict[int, Answers] = {}

    def answers(prompts: int) -> Answers:
        if prompts not in known:
            folder = tmp_path_factory.mktemp("undisturbed")
            with playing() as provider, Desk(folder, provider.base_url) as desk:
                lay(desk, prompts, PLAIN)
                assert desk.go("--headless").code == 0
                known[prompts] = desk.files.answers()
        return known[prompts]

    return answers


def assert_paid_again_only_what_was_in_flight(desk: Desk, provider: Simulator, kills: int) -> None:
    """Each charge beyond a prompt's row is an attempt that a kill left without an outcome."""
    unknown = Counter(a["id"] for a in desk.files.all("attempts") if a["family"] == "unknown")
    assert sum(unknown.values()) <= kills * CONCURRENCY
    charges = provider.ledger.charges
    for row in desk.files.all("rows"):
        paid = charges[hashes({"messages": row["messages"]})[0]]
        assert 1 <= paid <= 1 + unknown[row["id"]], row["id"]
    assert len(charges) == len(desk.files.all("rows"))


def assert_requests_are_on_record(desk: Desk, provider: Simulator) -> None:
    """A kill may come between the line in sent.jsonl and the request: never the other way."""
    attempts = desk.files.all("attempts")
    unknown = sum(attempt["family"] == "unknown" for attempt in attempts)
    recorded = len(desk.files.all("rows")) + len(attempts)
    assert recorded - unknown <= provider.ledger.requests <= recorded


def killed_and_resumed(
    folder: Path, undisturbed: Undisturbed, *, prompts: int, kills: int, seed: int
) -> None:
    with playing() as provider, Desk(folder, provider.base_url) as desk:
        lay(desk, prompts, PLAIN)
        story = Story(desk, provider, seed)
        for _ in range(kills):
            story.kill_once(story.draw.randint(0, prompts // kills))
        assert story.killed == kills, "a session ended before it was killed"
        result = desk.go("--headless")
        assert result.code == 0, result.err
        assert desk.files.answers() == undisturbed(prompts)
        assert_accounted(desk.files)
        assert_paid_again_only_what_was_in_flight(desk, provider, kills)
        assert_requests_are_on_record(desk, provider)


def test_a_killed_run_goes_on_where_it_ended(tmp_path: Path, undisturbed: Undisturbed) -> None:
    killed_and_resumed(tmp_path, undisturbed, prompts=90, kills=3, seed=3)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_with_the_response_cache_nothing_is_paid_twice(tmp_path: Path) -> None:
    """A resend waits for the deadline of the first request, and is free from then on.

    The next session begins while the provider still works for the one that was killed.
    """
    with playing(latency=slow(1.0)) as provider, Desk(tmp_path, provider.base_url) as desk:
        lay(desk, 300, {}, request_timeout_s=4)
        story = Story(desk, provider, 20)
        for _ in range(20):
            story.kill_once(story.draw.randint(0, 15), settled=False)
        assert story.killed == 20, "a session ended before it was killed"
        result = desk.go("--headless")
        assert result.code == 0, result.err
        assert_accounted(desk.files)
        assert set(provider.ledger.charges.values()) == {1}
        assert provider.ledger.cached > 0
        rows = desk.files.all("rows")
        assert len(rows) == len(provider.ledger.charges) == 600
        assert sum(r["usage"]["cost"] for r in rows) == pytest.approx(provider.ledger.cost_usd)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_fifty_kills_lose_and_double_nothing(tmp_path: Path, undisturbed: Undisturbed) -> None:
    killed_and_resumed(tmp_path, undisturbed, prompts=1500, kills=50, seed=50)
