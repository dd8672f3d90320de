"""`eaglegen-tui verify` on real runs: what it prints, as a table and as JSON, and how it ends."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk, until
from e2e_provider import playing, slow
from export_runs import distorted, served


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with distorted(tmp_path_factory.mktemp("verified"), singles=700) as (desk, _):
        yield desk


def test_the_table_names_every_dataset_with_its_total(desk: Desk) -> None:
    result = desk.run("verify", desk.files.folder)
    assert (result.code, result.err) == (0, "")
    assert "A_single · 700 prompts: 700 with rows (100%), 0 failed, 0 invalid" in result.out
    assert re.search(r"A_single .*\n    700 rows: [\d,]+ matched, ", result.out)
    assert re.search(r"F_cut .*\n.*\n.*flagged: [1-9]\d* truncated", result.out)
    assert "adds 18 prompt tokens: the old default system prompt" in result.out
    assert re.search(r"Spaced: \d+% of \d+ rows sure, profile spaced", result.out)
    assert re.search(r"Trimmed: [\d.]+% of \d+ rows sure, profile trimmed", result.out)
    assert result.out.endswith(f"✓ {desk.files.folder}: no structural fault\n")


def test_json_is_one_record_with_the_same_numbers(desk: Desk) -> None:
    result = desk.run("verify", desk.files.folder, "--json")
    assert result.code == 0
    (record,) = result.records
    assert (record["fault_count"], record["faults"], record["live"]) == (0, [], False)
    parts = {part["name"]: part for part in record["datasets"]}
    rows = desk.files.lines("A_single/rows.jsonl")
    single = parts["A_single"]
    assert single["rows"] == single["requests"] == len(rows) == sum(single["grades"].values())
    assert single["completion_tokens"] == sum(r["usage"]["completion_tokens"] for r in rows)
    assert 0 < single["exportable_tokens"] < single["completion_tokens"]
    assert parts["B_turns"]["prompts_with_rows"] * 2 == parts["B_turns"]["rows"]
    spaced = record["providers"]["Spaced"]
    assert (spaced["profile"], spaced["sure"]) == ("spaced", spaced["rows"])


def test_structural_faults_give_exit_3_and_their_places(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(desk.files.folder, folder, ignore=shutil.ignore_patterns("control.sock"))
    path = folder / "D_last" / "rows.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    changed = json.loads(lines[1])
    changed["completion_ids"][0] += 1
    path.write_text("".join([*lines[:1], json.dumps(changed) + "\n", *lines[2:], lines[0]]))
    result = desk.run("verify", folder)
    assert result.code == 3
    assert "✗ D_last/rows.jsonl:2: its completion_ids do not decode to its text" in result.out
    assert f"✗ D_last/rows.jsonl:{len(lines) + 1}: D_last/" in result.out
    assert f"✗ 2 structural faults in {folder}" in result.out
    as_json = desk.run("verify", folder, "--json")
    assert (as_json.code, as_json.summary["fault_count"]) == (3, 2)


def test_a_row_that_status_counted_and_the_disk_lost(desk: Desk, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(desk.files.folder, folder, ignore=shutil.ignore_patterns("control.sock"))
    path = folder / "D_last" / "rows.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    result = desk.run("verify", folder)
    assert result.code == 3
    assert "✗ status.json: D_last: it counted 8 rows, 7 are on disk" in result.out
    assert "1 request without a known outcome" in result.out


def test_a_server_that_returns_ids(tmp_path: Path) -> None:
    with served(tmp_path, "vllm", singles=20, host={"non_canonical": 0.3}) as (desk, _):
        result = desk.run("verify", desk.files.folder)
    assert result.code == 0, result.out
    assert "20 rows: 20 engine" in result.out
    assert "vLLM" not in result.err


def test_a_live_run_is_no_fault(tmp_path: Path) -> None:
    with playing(latency=slow(0.3)) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(400)
        process = desk.begin("--headless")
        until(lambda: desk.files.whole_lines("A/rows.jsonl"), "the first row")
        result = desk.run("verify", desk.files.folder)
        assert process.running
        process.kill()
    assert (result.code, result.err) == (0, "")
    assert "The run is live" in result.out
    assert re.search(r"A · 400 prompts: \d+ with rows", result.out)
    assert "without a known outcome" in result.out


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with Desk(tmp_path) as desk:
        result = desk.run("verify", tmp_path)
    assert (result.code, result.out) == (2, "")
    assert "no run directory" in result.err
