"""The workers of a fleet on the screen: a line each, those in trouble first where room is short."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from e2e_desk import Desk
from e2e_provider import playing, slow
from life_terminal import command

from engine.fleet.merge import Fleet, FleetSnapshot, Part, WorkerView, merge
from engine.view.snapshot import DatasetView, Latency
from tui.draw.crew import crew, crew_rows
from tui.draw.detail import latency
from tui.draw.grades import exportable
from tui.draw.paint import line_width, plain
from tui.headless import closing_line
from tui.picture import NOW, story

LEFT = WorkerView("shard 1/2", "running", NOW - 1, 6.5, 10, 120, 5000, 3, 1.5, "a", 42)
RIGHT = WorkerView("shard 2/2", "dead", NOW - 75, finished=80, prompts=5010, note="placed again")


def fleet(*workers: WorkerView) -> FleetSnapshot:
    whole = merge(Fleet("story", {}), [Part("x", story())], NOW)
    return FleetSnapshot(
        **{name: getattr(whole, name) for name in whole.__dataclass_fields__ if name != "workers"},
        workers=workers,
    )


def drawn(snapshot: FleetSnapshot, cells: int, rows: int) -> list[str]:
    lines = crew(snapshot, cells, rows, NOW)
    assert {line_width(line) for line in lines} == {cells}
    return [plain(line).rstrip() for line in lines]


def test_a_line_each_with_the_dead_one_said() -> None:
    titles, first, second = drawn(fleet(LEFT, RIGHT), 110, 3)
    assert titles.split() == (
        ["worker", "state", "prompts", "req/s", "in", "flight", "err", "cost", "heartbeat", "note"]
    )
    assert " ".join(first.split()) == (
        "shard 1/2 running 120 of 5,000 6.5 10 3 $1.50 1s process 42 on a"
    )
    assert " ".join(second.split()) == ("shard 2/2 dead 80 of 5,010 0.0 0 0 $? 1m 15s placed again")


def test_on_a_narrow_screen_the_state_and_the_rate_stay() -> None:
    lines = drawn(fleet(LEFT, RIGHT), 40, 3)
    assert lines[1].startswith("shard 1/2  running")
    assert "6.5" in lines[1]


def test_where_there_are_too_many_the_dead_come_first() -> None:
    many = [WorkerView(f"shard {n}/9", "running", NOW) for n in range(1, 9)]
    lines = drawn(fleet(*many, WorkerView("shard 9/9", "dead", NOW)), 100, 5)
    assert lines[1].startswith("shard 9/9  dead")
    assert lines[-1] == "6 more workers: 6 running"


@pytest.mark.parametrize(("rows", "shown"), [(15, 0), (24, 3), (80, 3)])
def test_a_small_screen_keeps_its_lines_for_the_datasets(rows: int, shown: int) -> None:
    assert crew_rows(fleet(LEFT, RIGHT), rows) == shown


def test_a_run_of_one_process_has_no_such_lines() -> None:
    assert crew_rows(story(), 40) == 0
    assert crew(story(), 80, 0, NOW) == []


def test_attach_read_only_shows_all_shards(tmp_path: Path) -> None:
    with playing(latency=slow(0.2)) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(400, limits={"concurrency": 6})
        live = desk.begin("--headless", "--shard", "1/3")
        other = desk.begin("--headless", "--shard", "2/3")
        folders = [desk.folder / "out" / f"shard-{i}-of-3" for i in (1, 2)]
        live.until(lambda: all((f / "run.json").exists() for f in folders), "both have begun")
        terminal = command(desk, "attach", "out", "--read-only")
        try:
            terminal.until("shard 3/3  missing")
            terminal.until("A · 400 prompts")
            other.kill()
            terminal.until("shard 2/3  dead")
            terminal.until("shard 1/3  running")
        finally:
            terminal.close()
        assert live.running


def test_a_fleets_quantiles_say_whose_they_are() -> None:
    view = DatasetView("A", "running", 10, latency=Latency(1.0, 2.0, 3.0))
    (line,) = latency(view, 80, several=True)
    assert plain(line).startswith("Latency of the slowest worker  half within 1.0s")
    assert "worker" not in plain(latency(view, 80)[0])


def test_who_leaves_runs_that_go_on_is_told_no_exit_code() -> None:
    assert closing_line(replace(story(), exit_code=3)).endswith(" (exit 3)")
    assert "exit" not in closing_line(replace(story(), exit_code=None))


def test_exportable_tokens_that_are_not_known_are_no_number() -> None:
    view = story().datasets[0]
    assert plain(exportable(replace(view, exportable_tokens=6_400_000))) == "6.4M exportable"
    assert plain(exportable(replace(view, exportable_tokens=None))) == "? exportable"
