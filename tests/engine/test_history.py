"""A line of history.jsonl holds all that a screen draws and that nothing else tells."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from detailed_run import detailed
from scripted_run import SCENES, busy

from engine.disk.jsonlines import dump_line
from engine.past.history import WHOLE_EVERY, Historian, carried, picture
from engine.view.frame import status
from engine.view.snapshot import DatasetView, ProviderView, Snapshot

STANDS_ELSEWHERE = {"journal", "output"}
"""Of a snapshot: in events.jsonl, or the folder itself."""
SINGLE_ROWS = {"slowest", "last_rows", "last_failures"}
FAMILY = ("rate_limit", "SiliconFlow")


def told(*snapshots: Snapshot) -> list[dict[str, Any]]:
    historian = Historian()
    return [json.loads(dump_line(historian.line(snapshot))) for snapshot in snapshots]


def back(record: dict[str, Any]) -> Snapshot:
    return picture({**record, "datasets": None}, record["datasets"])


def is_series(kind: object) -> bool:
    return "Series" in str(kind)


def recorded(item: Any, left_out: set[str]) -> dict[str, Any]:
    names = [f.name for f in fields(item) if not is_series(f.type) and f.name not in left_out]
    return {name: getattr(item, name) for name in names}


@pytest.mark.parametrize("scene", [*SCENES, "detailed"])
def test_a_whole_line_gives_the_numbers_back(scene: str) -> None:
    snapshot = detailed() if scene == "detailed" else SCENES[scene]()
    again = back(told(snapshot)[0])
    apart = STANDS_ELSEWHERE | {"datasets", "providers"}
    assert recorded(again, apart) == pytest.approx(recorded(snapshot, apart), abs=2e-3)
    for view, before in zip(again.datasets, snapshot.datasets, strict=True):
        for name, value in recorded(before, SINGLE_ROWS | {"errors"}).items():
            wanted = pytest.approx(value, abs=1e-3) if isinstance(value, float) else value
            assert getattr(view, name) == wanted, name
        for line, error in zip(view.errors, before.errors, strict=True):
            assert line.evidence == error.evidence
            assert (line.recent, line.trend, line.action) == (
                error.recent,
                error.trend,
                error.action,
            )
            assert line.words == error.words[:160]
            assert line.first_at == pytest.approx(error.first_at, abs=1e-3)
    assert [view.errors for view in again.providers] == [p.errors for p in snapshot.providers]


def test_a_line_is_status_json_with_its_time_and_what_the_screens_need() -> None:
    snapshot = busy(1e9, 60)
    (record,) = told(snapshot)
    known = json.loads(json.dumps(status(snapshot)))
    assert record.pop("at") == known["heartbeat_at"]
    record.pop("screen")
    for view in record["datasets"]:
        view.pop("screen")
        for line in view["errors"]:
            for name in ("recent", "trend", "action", "words"):
                line.pop(name, None)
    assert record == known


def test_a_dataset_that_stands_still_is_told_once_in_five_minutes() -> None:
    start = SCENES["story"]()
    later = [
        replace(start, heartbeat_at=start.heartbeat_at + 10 * n) for n in range(WHOLE_EVERY + 1)
    ]
    lines = told(*later)
    names = [view.name for view in start.datasets]
    assert [[view["name"] for view in line["datasets"]] for line in lines] == [
        names,
        *[[]] * (WHOLE_EVERY - 1),
        names,
    ]


def test_what_the_clock_alone_changes_is_no_change() -> None:
    start = SCENES["story"]()
    view = start.datasets[3]
    older = tuple(replace(line, evidence="none for 99 s") for line in view.errors)
    waits = replace(view, errors=older, eta_s=1.0)
    more = replace(view, ok=view.ok + 1)
    lines = told(start, with_view(start, waits), with_view(start, more))
    assert lines[1]["datasets"] == []
    assert [view["name"] for view in lines[2]["datasets"]] == [view.name]


def with_view(snapshot: Snapshot, view: DatasetView) -> Snapshot:
    views = [view if each.name == view.name else each for each in snapshot.datasets]
    return replace(snapshot, datasets=tuple(views))


def test_words_are_told_once_and_carried_on() -> None:
    start = detailed()
    view = start.datasets[3]
    first, second, third = told(
        start,
        with_view(start, replace(view, ok=view.ok + 1)),
        with_view(start, replace(view, errors=(replace(view.errors[0], words="other"),))),
    )
    told_at_first = first["datasets"][3]["errors"][0]["words"]
    assert told_at_first.startswith(view.errors[0].words[:20])
    assert "words" not in second["datasets"][0]["errors"][0]
    carried_on = carried(second["datasets"][0], first["datasets"][3])
    assert carried_on["errors"][0]["words"] == told_at_first
    assert third["datasets"][0]["errors"][0]["words"] == "other"


def test_a_line_of_six_busy_datasets_stays_small() -> None:
    providers = tuple(ProviderView(f"Provider{n}", rows=n, profile="verbatim") for n in range(4))
    moving = [replace(busy(1e9, 10.0 * n), providers=providers) for n in range(60)]
    sizes = [len(dump_line(line)) for line in map(json.dumps, told(*moving))]
    assert sum(sizes) / len(sizes) < 6_000
    one = SCENES["story"]()
    running = one.datasets[3]
    calm = [with_view(one, replace(running, ok=running.ok + n)) for n in range(60)]
    sizes = [len(dump_line(line)) for line in told(*calm)]
    assert sum(sizes) / len(sizes) < 2_500


def test_lines_of_before_these_fields_are_read() -> None:
    snapshot = SCENES["story"]()
    old = {**json.loads(json.dumps(status(snapshot))), "at": "2026-11-30T14:03:22.125Z"}
    again = back(old)
    assert again.cost_usd == snapshot.cost_usd
    assert again.datasets[3].ok == 3_888
    assert again.datasets[3].latency.p50 is None


@pytest.mark.parametrize(
    "broken",
    [{}, {"datasets": []}, {"datasets": [{"name": 1}], "pid": "x"}, {"datasets": [3]}],
)
def test_what_is_no_line_of_ours_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError, AttributeError)):
        picture(broken, broken.get("datasets", []))
