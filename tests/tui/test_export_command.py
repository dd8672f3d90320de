"""`eaglegen-tui export` on real runs: the report, the files, and how it refuses."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_desk import Desk, Result, until
from e2e_provider import playing, slow
from export_runs import distorted

from engine.export.catalogue import FORMATS


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with distorted(tmp_path_factory.mktemp("exported"), singles=120) as (desk, _):
        yield desk


def export(desk: Desk, out: Path, to: str = "specforge", *options: object) -> Result:
    return desk.run("export", desk.files.folder, "--to", to, "--out", out, *options)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_report_counts_rows_in_and_out_of_every_dataset(desk: Desk, tmp_path: Path) -> None:
    out = tmp_path / "train.jsonl"
    result = export(desk, out)
    assert (result.code, result.err) == (0, "")
    rows = records(out)
    assert re.search(r"A_single · 120 prompts: \d+ of 120 rows, [\d.]+k tokens", result.out)
    assert re.search(r"F_cut · 12 prompts: .*\n    left out: .*\d+ cut by length", result.out)
    assert re.search(rf"\n{len(rows)} of 196 rows for specforge, .* supervised", result.out)
    digest = hashlib.sha256(out.read_bytes()).hexdigest()
    assert f"{out}: {len(rows)} rows, 0 zero-mask rows" in result.out
    assert digest in result.out
    longest = max(len(row["input_ids"]) for row in rows)
    assert f"longest row {longest}" in result.out
    assert "note: --max-length keeps the first N tokens" in result.out


def test_json_is_the_sidecar(desk: Desk, tmp_path: Path) -> None:
    result = export(desk, tmp_path / "a.jsonl", "speculators", "--json")
    assert result.code == 0
    (record,) = result.records
    assert record == json.loads((tmp_path / "a.jsonl.meta.json").read_bytes())
    assert record["rows_in"] == record["rows_out"] + sum(record["left_out"].values()) == 196


@pytest.mark.parametrize("to", [name for name in FORMATS if name != "parquet"])
def test_every_format_is_written_and_explains_itself(desk: Desk, tmp_path: Path, to: str) -> None:
    result = export(desk, tmp_path / "a.jsonl", to)
    assert (result.code, result.err) == (0, "")
    found = records(tmp_path / "a.jsonl")
    assert {tuple(record) for record in found} == {FORMATS[to].keys}
    assert "note: " in result.out


def test_includes_may_stand_alone_or_together(desk: Desk, tmp_path: Path) -> None:
    few = export(desk, tmp_path / "a.jsonl", "specforge", "--json").summary
    options = ("--include", "ambiguous,mismatch", "--include", "length,reasoning_only", "--json")
    many = export(desk, tmp_path / "b.jsonl", "specforge", *options).summary
    assert few["rows_out"] < many["rows_out"] == many["rows_in"]
    assert many["selection"]["grades"] == ["engine", "matched", "ambiguous", "mismatch"]


def test_only_max_length_and_shards(desk: Desk, tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    options = ("--only", "A_single", "--only", "D_last", "--max-length", 60, "--shard-rows", 50)
    result = export(desk, out, "specforge", *options, "--json")
    record = result.summary
    assert list(record["datasets"]) == ["A_single", "D_last"]
    assert record["longest_row"] == 60
    assert record["clipped_rows"] > 0
    assert [file["rows"] for file in record["files"]][:-1] == [50] * (len(record["files"]) - 1)
    assert not out.exists()
    assert export(desk, out, "torchspec", *options[:6], "--json", "--force").summary["left_out"][
        "too_long"
    ]
    assert out.exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--to", "medusa"), "Known: specforge, speculators"),
        (("--include", "lenght"), "Did you mean length?"),
        (("--only", "A"), "It has A_single"),
        (("--shard-rows", 1, "--shard-tokens", 1), "choose one of them"),
        (("--only", "F_cut", "--include", "unverified", "--max-length", 1), "nothing to export"),
    ],
)
def test_what_cannot_be_done_ends_with_2_and_no_file(
    desk: Desk, tmp_path: Path, options: tuple[object, ...], says: str
) -> None:
    result = export(desk, tmp_path / "a.jsonl", "specforge", *options)
    assert (result.code, result.out) == (2, "")
    assert says in result.err
    assert list(tmp_path.iterdir()) == []


def test_another_file_is_kept_unless_forced(desk: Desk, tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    out.write_text("mine\n")
    refused = export(desk, out)
    assert refused.code == 2
    assert "--force" in refused.err
    assert out.read_text() == "mine\n"
    assert export(desk, out, "specforge", "--force").code == 0
    assert export(desk, out).code == 0


def test_a_live_run_goes_out_as_far_as_it_is(tmp_path: Path) -> None:
    with playing(latency=slow(0.2)) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(400)
        process = desk.begin("--headless")
        until(lambda: desk.files.whole_lines("A/rows.jsonl"), "the first row")
        options = ("--include", "unverified")
        result = export(desk, tmp_path / "a.jsonl", "angelslim", *options)
        assert process.running
        process.kill()
    assert (result.code, result.err) == (0, "")
    assert "note: the run is live: its rows up to now" in result.out
    assert 0 < len(records(tmp_path / "a.jsonl")) < 400


def test_a_run_without_ids_says_what_to_include(tmp_path: Path) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(3)
        assert desk.go("--headless").code == 0
        refused = export(desk, tmp_path / "a.jsonl", "torchspec")
        assert (refused.code, refused.out) == (2, "")
        assert "nothing to export: 3 unverified" in refused.err
        done = export(desk, tmp_path / "a.jsonl", "torchspec", "--include", "unverified")
        assert done.code == 0
        ids = export(desk, tmp_path / "b.jsonl", "specforge", "--include", "unverified")
        assert "nothing to export: 3 without token ids" in ids.err
