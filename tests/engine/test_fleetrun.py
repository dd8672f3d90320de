"""A crew's workers watched, summed and steered; the engines are real, Ray is not there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e_desk import Desk, until
from e2e_files import RunFiles, assert_settled
from e2e_provider import playing, slow
from local_crew import LocalCrew

from engine.commands import Drain, ExcludeProvider, Pause, Resume, Skip, Stop, Throttle
from engine.errors import RunHeldError, RunUnreachableError, UsageError
from engine.fleet.merge import Fleet, FleetSnapshot
from engine.fleet.orders import Standing, share, together
from engine.fleet.run import Absence, FleetRun
from engine.fleet.runs import open_runs
from engine.fleet.view import Whole
from engine.fleet.watch import FleetWatch
from engine.plan import Options, Shard

PROMPTS, WATCHED = 60, 180
WENT_ON = "goes on from its files"


def fleet_of(desk: Desk, count: int = 2) -> tuple[FleetRun, LocalCrew]:
    root, crew = desk.folder / "out", LocalCrew()
    options = [
        Options(shard=Shard(i, count), output=root / f"shard-{i}-of-{count}")
        for i in range(1, count + 1)
    ]
    fleet = Fleet("e2e", {"A": Whole(PROMPTS, PROMPTS)}, None, str(root), ceiling=8)
    return FleetRun(crew, fleet, desk.folder / "manifest.toml", options, root), crew


@contextmanager
def going(folder: Path, seconds: float = 0.02) -> Iterator[tuple[Desk, FleetRun, LocalCrew]]:
    with playing(latency=slow(seconds)) as provider, Desk(folder, provider.base_url) as desk:
        desk.asking(PROMPTS, endpoint={"api": "openai"}, limits={"concurrency": 8})
        run, crew = fleet_of(desk)
        run.start()
        try:
            yield desk, run, crew
        finally:
            if not run.ended:
                run.send(Stop())
            assert run.join(40)


def rows(desk: Desk) -> int:
    return sum(len(files.all("rows")) for files in shards(desk))


def shards(desk: Desk) -> list[RunFiles]:
    return [RunFiles(desk.folder / "out" / f"shard-{i}-of-2") for i in (1, 2)]


def snapshot(run: FleetRun | FleetWatch) -> FleetSnapshot:
    found = run.snapshot()
    assert isinstance(found, FleetSnapshot)
    return found


def said(future: Future[str]) -> str:
    return future.result(20)


def done(run: FleetRun) -> int:
    return sum(view.ok for view in run.snapshot().datasets)


def test_the_shards_are_done_and_summed(tmp_path: Path) -> None:
    with going(tmp_path) as (desk, run, crew):
        assert run.join(40)
        last = snapshot(run)
        assert (run.exit_code, last.exit_code, last.state) == (0, 0, "done")
        assert (last.datasets[0].ok, last.datasets[0].left) == (PROMPTS, 0)
        assert [worker.state for worker in last.workers] == ["done", "done"]
        assert sum(worker.prompts for worker in last.workers) == PROMPTS
        assert rows(desk) == PROMPTS
        assert (sorted(crew.dismissed), crew.closed) == ([0, 1], True)
        told = [entry.text for entry in last.journal]
        assert sum("its share is 4 of 8 in flight" in text for text in told) == 2
        with pytest.raises(RunUnreachableError):
            said(run.send(Pause()))


def test_orders_reach_every_worker_and_a_throttle_is_shared_out(tmp_path: Path) -> None:
    with going(tmp_path, 0.3) as (_, run, _crew):
        until(lambda: run.snapshot().limit_ceiling == 8 and done(run), "both work")
        with pytest.raises(UsageError, match="throttle 1 cannot be shared by 2 workers"):
            said(run.send(Throttle(1)))
        words = said(run.send(Throttle(5)))
        assert words == ("shard 1/2: ceiling now 3 in flight; shard 2/2: ceiling now 2 in flight")
        until(lambda: run.snapshot().limit_ceiling == 5, "the sum of both ceilings")
        said(run.send(Pause()))
        until(lambda: run.snapshot().state == "paused", "all are paused")
        assert run.snapshot().paused
        said(run.send(Resume()))
        until(lambda: run.snapshot().state == "running", "all go on")
        with pytest.raises(UsageError, match="no dataset is called 'Z'"):
            said(run.send(Skip("Z")))
        said(run.send(Drain()))
        assert run.join(40)
        assert run.exit_code == 130
        assert "drained by order" in run.snapshot().reason


def test_a_worker_made_anew_goes_on_from_its_files_and_hears_the_orders(tmp_path: Path) -> None:
    with going(tmp_path, 0.2) as (desk, run, crew):
        until(lambda: done(run) >= 4, "some rows")
        said(run.send(Throttle(4)))
        until(lambda: run.snapshot().limit_ceiling == 4, "both have their shares")
        crew.replace(0)
        until(lambda: any(WENT_ON in entry.text for entry in run.snapshot().journal), "it is back")
        until(lambda: snapshot(run).workers[0].state == "running", "it works")
        until(lambda: run.snapshot().limit_ceiling == 4, "it was told of the throttle")
        assert run.join(40)
        assert run.exit_code == 0
        assert rows(desk) == PROMPTS
        for files in shards(desk):
            assert_settled(files)


def test_a_worker_that_is_gone_is_said(tmp_path: Path) -> None:
    with going(tmp_path, 0.2) as (_, run, crew):
        until(lambda: done(run) >= 2, "some rows")
        crew.absent[1] = Absence("its process died, and Ray places it again", final=False)
        until(lambda: snapshot(run).workers[1].state == "dead", "it is called dead")
        assert "shard 2/2: DEAD while running" in run.snapshot().reason
        crew.absent[1] = Absence("ten restarts are used up", final=True)
        until(lambda: any("is given up" in e.text for e in run.snapshot().journal), "it is told")
        assert run.join(40)
        assert run.exit_code == 1
        crew.workers[1].order({"command": "stop"}, "test")
        until(lambda: crew.workers[1].look().ended, "its engine has ended")


def test_what_a_worker_cannot_start_with_is_its_end(tmp_path: Path) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS)
        run, _ = fleet_of(desk)
        (tmp_path / "A.jsonl").unlink()
        run.start()
        assert run.join(40)
        assert run.exit_code == 2
        assert "all 2: A: " in run.snapshot().reason


def test_two_fleets_on_one_folder(tmp_path: Path) -> None:
    with going(tmp_path, 0.1) as (desk, _run, _crew), pytest.raises(RunHeldError):
        fleet_of(desk)[0].start()


def test_a_watcher_sees_the_live_the_dead_and_the_missing(tmp_path: Path) -> None:
    with playing(latency=slow(0.1)) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(WATCHED, endpoint={"api": "openai"}, limits={"concurrency": 6})
        first = desk.begin("--headless", "--shard", "1/3")
        second = desk.begin("--headless", "--shard", "2/3")
        root = tmp_path / "out"
        ready = [root / f"shard-{i}-of-3" / "run.json" for i in (1, 2)]
        first.until(lambda: all(path.exists() for path in ready), "both have begun")
        watch = FleetWatch(open_runs([root]), hz=10)
        try:
            until(lambda: snapshot(watch).datasets[0].ok >= 4, "rows of both")
            assert snapshot(watch).datasets[0].prompts == WATCHED
            assert [w.state for w in snapshot(watch).workers] == ["running", "running", "missing"]
            with pytest.raises(UsageError, match="read-only"):
                watch.send(Pause()).result(1)
            second.kill()
            until(lambda: snapshot(watch).workers[1].state == "dead", "one is dead")
            assert "shard 2/3: DEAD" in snapshot(watch).reason
            again = desk.begin("--headless", "--shard", "2/3")
            until(lambda: snapshot(watch).workers[1].state == "running", "it is back")
            assert first.wait().code == again.wait().code == 0
            until(lambda: watch.ended, "both have ended")
            until(lambda: snapshot(watch).state == "stopped", "it says so")
            assert [w.state for w in snapshot(watch).workers] == ["done", "done", "missing"]
        finally:
            watch.close()
        with pytest.raises(RunUnreachableError, match="no process does any of these 2 runs"):
            FleetWatch(open_runs([root]))


def test_what_stands_is_the_newest_of_each_kind() -> None:
    standing = Standing()
    for command in (
        Throttle(9),
        Pause(),
        Pause("A"),
        Throttle(4),
        Resume(),
        Skip("A"),
        ExcludeProvider("X"),
        Drain(),
    ):
        standing.note(command)
    assert list(standing) == [Throttle(4), Pause("A"), ExcludeProvider("X"), Drain()]


def test_answers_in_words() -> None:
    assert together({"a": (True, "done"), "b": (True, "done")}) == "done (each of 2)"
    assert together({"a": (True, "1"), "b": (False, "2")}) == "a: 1; b: 2"
    assert share(Throttle(7), 1, 3) == {"command": "throttle", "limit": 3}
