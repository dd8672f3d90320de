"""stdout is data, stderr is narration: the progress line and the JSON lines of DESIGN §5."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from e2e_contract import DATASET, STATUS
from e2e_desk import Desk, Result
from e2e_files import RunFiles
from e2e_provider import playing, slow

LINE = re.compile(
    r"(?P<time>\d\d:\d\d:\d\d) (?P<name>\S+) (?P<done>\d+)/(?P<prompts>\d+) "
    r"\((?P<ok>\d+) ok, (?P<failed>\d+) failed, (?P<err>\d+) err\) "
    r"(?P<rate>\d+\.\d) req/s avg_comp=(?P<mean>\d+|\?)tok "
    r"tot=(?P<tokens>\d+(?:\.\d)?[kMB]?)(?:/(?P<budget>\d+(?:\.\d)?[kMB]?))? "
    r"~\$(?P<cost>\d+(?:\.\d+)?|\?) ETA=(?P<eta>\d+[smhd]|\?)"
    r"(?P<verdicts>(?: [a-z_0-9]+:\w+)*)(?: \[(?P<state>\w+)\])?"
)


@dataclass(frozen=True)
class Ended:
    result: Result
    files: RunFiles

    @property
    def lines(self) -> list[dict[str, str]]:
        found = (LINE.fullmatch(line) for line in self.result.err.splitlines())
        return [match.groupdict() for match in found if match]

    def events(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self.result.records if record["event"] == kind]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    """Two datasets with failures of every kind, reported ten times a second."""
    rows: list[Any] = [{"prompt": f"Question {n}"} for n in range(24)]
    rows += [{"prompt": f"[[sim:server_500*1]] Trouble {n}"} for n in range(3)]
    rows += [{"prompt": "[[sim:moderation]] Refused"}, b"{broken", {"nothing": 1}]
    more = [{"prompt": f"More {n}"} for n in range(12)]
    length = {"mean_tokens": 60, "sigma": 0.1}
    folder = tmp_path_factory.mktemp("output")
    with (
        playing(latency=slow(0.25), length=length) as provider,
        Desk(folder, provider.base_url) as desk,
    ):
        desk.manifest(
            {
                "name": "B6_ultrachat",
                "source": desk.source("a.jsonl", rows),
                "prompts": 30,
                "token_budget": 10_000_000,
            },
            {"name": "B7", "source": desk.source("b.jsonl", more), "prompts": 12},
        )
        yield Ended(desk.begin("--json", "--interval", "0.1").wait(), desk.files)


def test_stdout_holds_json_lines_only(ended: Ended) -> None:
    assert ended.result.code == 3
    kinds = Counter(record["event"] for record in ended.result.records)
    assert set(kinds) <= {"progress", "summary", "state", "note", "verdict", "limit", "provider"}
    assert kinds["summary"] == 1
    assert kinds["progress"] > 4
    for record in ended.result.records[:-1]:
        assert list(record)[:2] == ["event", "at"]
        assert datetime.fromisoformat(record["at"]).tzinfo


def test_progress_carries_the_datasets_fields_of_status_json(ended: Ended) -> None:
    progress = ended.events("progress")
    assert {record["name"] for record in progress} == {"B6_ultrachat", "B7"}
    for record in progress:
        assert list(record) == ["event", "at", *DATASET]
        parts = ("ok", "failed", "invalid", "in_flight", "left")
        assert record["prompts"] == sum(record[part] for part in parts)
    assert {r["prompts"] for r in progress if r["name"] == "B6_ultrachat"} == {30}
    oks = [record["ok"] for record in progress if record["name"] == "B7"]
    assert oks == sorted(oks)


def test_journal_events_are_those_of_the_journal(ended: Ended) -> None:
    told = [r for r in ended.result.records if r["event"] not in {"progress", "summary"}]
    written = ended.files.lines("events.jsonl")
    assert [(r["at"], r["event"], r["dataset"], r["text"]) for r in told] == [
        (r["at"], r["kind"], r["dataset"], r["text"]) for r in written
    ]


def test_the_summary_is_the_whole_of_status_json(ended: Ended) -> None:
    summary = ended.result.summary
    assert list(summary) == ["event", *STATUS]
    status = ended.files.status()
    assert {key: summary[key] for key in status if key != "heartbeat_at"} | {
        "heartbeat_at": status["heartbeat_at"]
    } == status
    assert summary["state"] == "done"
    (first, second) = summary["datasets"]
    assert (first["ok"], first["failed"], first["invalid"], first["left"]) == (27, 1, 2, 0)
    assert first["attempt_errors"] == 4
    assert second["ok"] == 12


def test_the_progress_line_has_the_shape_of_the_story(ended: Ended) -> None:
    assert {line["name"] for line in ended.lines} == {"B6_ultrachat", "B7"}
    for line in ended.lines:
        assert int(line["done"]) == int(line["ok"]) + int(line["failed"])
        expected = ("30", "10M") if line["name"] == "B6_ultrachat" else ("12", None)
        assert (line["prompts"], line["budget"]) == expected
    last = next(line for line in ended.lines if line["state"])
    assert (last["done"], last["ok"], last["failed"], last["err"]) == ("28", "27", "1", "4")
    assert " invalid_row:2" in last["verdicts"]


def test_the_first_line_comes_at_once_and_knows_no_mean_yet(ended: Ended) -> None:
    first = ended.lines[0]
    assert (first["done"], first["mean"], first["tokens"], first["eta"]) == ("0", "?", "0", "?")


def test_numbers_of_the_line_are_those_of_the_data(ended: Ended) -> None:
    """Each progress line stands beside a JSON line of the same moment."""
    lines = [line for line in ended.lines if not line["state"]]
    records = ended.events("progress")
    assert len(lines) == len(records)
    for line, record in zip(lines, records, strict=True):
        counts = ("ok", "failed", "prompts")
        assert [int(line[name]) for name in counts] == [record[name] for name in counts]
        assert int(line["err"]) == record["attempt_errors"]
        assert float(line["rate"]) == pytest.approx(record["rows_per_s"], abs=0.051)
        if record["cost_usd"]:
            assert float(line["cost"]) == pytest.approx(record["cost_usd"], rel=0.1, abs=1e-4)
        if record["rows"]:
            mean = record["completion_tokens"] / record["rows"]
            assert float(line["mean"]) == pytest.approx(mean, abs=0.51)


def test_narration_ends_with_every_dataset_and_the_exit_code(ended: Ended) -> None:
    *_, first, second, closing = ended.result.err.splitlines()
    assert first.endswith("[done]")
    assert " B7 12/12 " in second
    assert closing.startswith("e2e done. 39 rows in ")
    assert closing.endswith("(exit 3)")


def test_without_json_stdout_is_empty_and_a_terminal_is_not_needed(tmp_path: Path) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(3)
        result = desk.begin().wait()
    assert result.code == 0
    assert result.out == ""
    assert re.search(r"^\d\d:\d\d:\d\d A 3/3 \(3 ok, 0 failed, 0 err\) ", result.err, re.MULTILINE)


def test_the_interval_comes_from_the_settings_too(tmp_path: Path) -> None:
    """One line at the start, and no further one within an hour."""
    with playing(latency=slow(0.5)) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(9)
        (tmp_path / ".env").write_text("EAGLEGEN_INTERVAL_S=3600\n")
        result = desk.go()
    lines = [line for line in result.err.splitlines() if LINE.fullmatch(line)]
    assert len(lines) == 2
    assert lines[1].endswith("[done]")
