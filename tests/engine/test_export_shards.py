"""Shards export to the very file that the whole run gives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk
from export_cases import kit_of
from export_runs import served
from shard_cases import split

from engine.audits.survey import survey, survey_all
from engine.audits.workers import Inline
from engine.fleet.runs import open_runs


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with served(tmp_path_factory.mktemp("whole"), "vllm", singles=120) as (desk, _):
        split(desk.files.folder, desk.folder / "dealt", 3)
        yield desk


@pytest.mark.parametrize("to", ["specforge", "torchspec"])
def test_the_file_is_that_of_the_whole(desk: Desk, tmp_path: Path, to: str) -> None:
    whole, dealt = tmp_path / "whole.jsonl", tmp_path / "dealt.jsonl"
    assert desk.run("export", desk.files.folder, "--to", to, "--out", whole).code == 0
    result = desk.run("export", desk.folder / "dealt", "--to", to, "--out", dealt)
    assert result.code == 0, result.err
    assert dealt.read_bytes() == whole.read_bytes()
    assert "A_single · 120 prompts: 120 of 120 rows" in result.out


def test_the_sidecar_names_every_folder(desk: Desk, tmp_path: Path) -> None:
    folders = [desk.folder / "dealt" / f"shard-{i}-of-3" for i in (1, 2)]
    out = tmp_path / "some.jsonl"
    meta = desk.run("export", *folders, "--to", "specforge", "--out", out, "--json").summary
    assert meta["run"]["folders"] == [str(folder.resolve()) for folder in folders]
    assert "shard 3/3 is not among the folders given" in meta["notes"]


def test_one_folder_more_is_another_export(desk: Desk, tmp_path: Path) -> None:
    folders = [desk.folder / "dealt" / f"shard-{i}-of-3" for i in (1, 2, 3)]
    out = tmp_path / "out.jsonl"
    assert desk.run("export", *folders[:2], "--to", "specforge", "--out", out).code == 0
    assert desk.run("export", *folders[:2], "--to", "specforge", "--out", out).code == 0
    refused = desk.run("export", *folders, "--to", "specforge", "--out", out)
    assert refused.code == 2
    assert "an export of another run" in refused.err


def test_rows_of_all_grade_each(desk: Desk) -> None:
    whole = survey(desk.files.folder, open_runs([desk.files.folder]).manifest, Inline(kit_of()))
    runs = open_runs([desk.folder / "dealt"])
    places = [(run.folder, run.manifest) for run in runs.runs]
    dealt = survey_all(places, Inline(kit_of()))
    assert sum(len(part) for part in dealt.datasets) == sum(len(part) for part in whole.datasets)
    assert set(dealt.known) == set(whole.known)
