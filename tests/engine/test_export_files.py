"""An export's files: whole or not there, in the sources' order, and never over another's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from export_cases import kit_of, made, row_of, run_folder, user

from engine.audits.survey import make_kit
from engine.audits.workers import Inline, workers
from engine.errors import EaglegenError, UsageError
from engine.export import job
from engine.export.catalogue import FORMATS, format_named
from engine.export.job import Request, export_run
from engine.export.readback import read_back
from engine.export.selection import selection_of
from engine.export.shards import ShardLimits, shards_at
from engine.fleet.runs import open_runs

Record = dict[str, Any]


def export(folder: Path, out: Path, to: str = "speculators", **more: Any) -> Record:
    include = more.pop("include", ())
    limit = more.pop("max_length", None)
    request = Request(folder, format_named(to), out, selection_of(include, limit), **more)
    return export_run(request, open_runs([folder]).manifest, Inline(kit_of()))


def records(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two datasets whose replies came in another order than their prompts."""
    folder = tmp_path / "run"
    first = [row_of(index=n, messages=(user(f"{n}?"),)) for n in (3, 0, 2, 1)]
    second = [row_of(dataset="B3", index=n) for n in (1, 0)]
    run_folder(folder, {"B6": first, "B3": second})
    return folder


def test_rows_go_out_in_the_order_of_their_sources(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "train.jsonl"
    meta = export(run, out, "torchspec")
    found = records(out)
    assert [r["conversations"][0]["content"] for r in found] == ["0?", "1?", "2?", "3?"] + [
        "2+2?"
    ] * 2
    assert [r["id"].partition("/")[0] for r in found] == ["B6"] * 4 + ["B3"] * 2
    assert (meta["rows_in"], meta["rows_out"], meta["left_out"]) == (6, 6, {})
    assert names(out.parent) == {"train.jsonl", "train.jsonl.meta.json"}


def test_the_order_in_which_replies_came_does_not_matter(run: Path, tmp_path: Path) -> None:
    rows = (run / "B6" / "rows.jsonl").read_text().splitlines(keepends=True)
    export(run, tmp_path / "one.jsonl")
    (run / "B6" / "rows.jsonl").write_text("".join(reversed(rows)))
    export(run, tmp_path / "two.jsonl")
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()


def test_the_sidecar_tells_what_is_in_the_file(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "train.jsonl"
    meta = export(run, out, "specforge", only=("B6",))
    found = records(out)
    assert json.loads((tmp_path / "train.jsonl.meta.json").read_bytes()) == meta
    data = out.read_bytes()
    lengths = [len(r["input_ids"]) for r in found]
    supervised = sum(sum(r["loss_mask"]) for r in found)
    assert meta["files"] == [
        {
            "name": "train.jsonl",
            "rows": 4,
            "tokens": sum(lengths),
            "supervised_tokens": supervised,
            "longest_row": max(lengths),
            "zero_mask_rows": 0,
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
    ]
    assert (meta["tokens"], meta["supervised_tokens"]) == (sum(lengths), supervised)
    assert (meta["longest_row"], meta["zero_mask_rows"]) == (max(lengths), 0)
    assert (meta["schema"], meta["complete"], meta["format"]) == (1, True, "specforge")
    assert meta["run"]["name"] == "story"
    assert meta["run"]["folder"] == str(run)
    assert meta["run"]["identity"]["model"] == "moonshotai/kimi-k2.5"
    assert meta["selection"]["datasets"] == ["B6"]
    assert list(meta["datasets"]) == ["B6"]
    assert meta["live"] is False


def test_rows_left_out_are_counted_by_reason(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    rows = [
        row_of(index=0),
        row_of("caf\ufffd", index=1, exactness="mismatch"),
        row_of("It is", index=2, finish_reason="length", flags=["truncated"]),
        row_of(index=3, flags=["refusal"]),
        row_of(index=4, flags=["control_tokens", "refusal"]),
    ]
    run_folder(folder, {"B6": [*rows, rows[0]]})
    with (folder / "B6" / "rows.jsonl").open("a") as file:
        file.write('no row\n{"id": "torn')
    meta = export(folder, tmp_path / "a.jsonl")
    expected = {"mismatch": 1, "length": 1, "refusal": 1, "control_tokens": 1}
    assert meta["left_out"] == expected | {"doubled": 1, "unreadable": 1}
    assert (meta["rows_in"], meta["rows_out"]) == (7, 1)
    more = ("length", "refusal", "control_tokens")
    wide = export(folder, tmp_path / "b.jsonl", include=more)
    assert (wide["rows_out"], wide["left_out"]["mismatch"]) == (4, 1)
    text = export(folder, tmp_path / "c.jsonl", "torchspec", include=more)
    assert (text["rows_out"], text["left_out"]["length"]) == (3, 1)


def test_what_a_format_cannot_hold_is_left_out_by_its_reason(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    system = {"role": "system", "content": "Be brief."}
    run_folder(folder, {"B6": [row_of(), row_of(index=1, messages=(system, user("?")))]})
    assert export(folder, tmp_path / "a", "eagle")["left_out"] == {"system_message": 1}


@pytest.mark.parametrize("to", [name for name in FORMATS if name != "parquet"])
def test_every_format_is_what_its_function_makes_of_each_row(
    run: Path, tmp_path: Path, to: str
) -> None:
    export(run, tmp_path / "a.jsonl", to, only=("B6",))
    rows = sorted(records(run / "B6" / "rows.jsonl"), key=lambda row: row["index"])
    assert records(tmp_path / "a.jsonl") == [made(to, row) for row in rows]
    has_template = (tmp_path / "a.jsonl.chat_template.jinja").exists()
    assert has_template == (to in {"modelopt", "automodel"})


class TestShards:
    def test_by_rows(self, run: Path, tmp_path: Path) -> None:
        out = tmp_path / "train.jsonl"
        meta = export(run, out, "torchspec", limits=ShardLimits(rows=4))
        paths = [tmp_path / f"train-0000{n}-of-00002.jsonl" for n in (0, 1)]
        assert shards_at(out) == paths
        assert [file["rows"] for file in meta["files"]] == [4, 2]
        assert [file["name"] for file in meta["files"]] == [path.name for path in paths]
        assert not out.exists()
        whole = tmp_path / "whole.jsonl"
        export(run, whole, "torchspec")
        assert b"".join(path.read_bytes() for path in paths) == whole.read_bytes()

    def test_by_tokens(self, run: Path, tmp_path: Path) -> None:
        one = len(records(run / "B6" / "rows.jsonl")[0]["prompt_ids"])
        one += len(records(run / "B6" / "rows.jsonl")[0]["completion_ids"])
        meta = export(run, tmp_path / "a.jsonl", limits=ShardLimits(tokens=2 * one), only=("B6",))
        assert [file["rows"] for file in meta["files"]] == [2, 2]
        assert all(file["tokens"] <= 2 * one for file in meta["files"])
        tight = export(run, tmp_path / "b.jsonl", limits=ShardLimits(tokens=1), only=("B6",))
        assert [file["rows"] for file in tight["files"]] == [1] * 4

    def test_an_earlier_export_leaves_nothing_behind(self, run: Path, tmp_path: Path) -> None:
        out = tmp_path / "out" / "train.jsonl"
        export(run, out, limits=ShardLimits(rows=1))
        assert len(names(out.parent)) == 6 + 1
        export(run, out, limits=ShardLimits(rows=5))
        assert names(out.parent) == {
            "train-00000-of-00002.jsonl",
            "train-00001-of-00002.jsonl",
            "train.jsonl.meta.json",
        }
        export(run, out, "modelopt", force=True)
        export(run, out, force=True)
        assert names(out.parent) == {"train.jsonl", "train.jsonl.meta.json"}


class TestOverwriting:
    def test_the_same_run_may_write_again(self, run: Path, tmp_path: Path) -> None:
        out = tmp_path / "train.jsonl"
        export(run, out)
        before = out.read_bytes()
        assert "replaced 1 file of an earlier export" not in export(run, tmp_path / "new")["notes"]
        meta = export(run, out)
        assert meta["rows_out"] == 6
        assert out.read_bytes() == before
        assert "replaced 1 file of an earlier export" in meta["notes"]

    def test_another_format_of_the_same_run_is_not_replaced(
        self, run: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "train.jsonl"
        export(run, out, limits=ShardLimits(rows=2))
        with pytest.raises(UsageError, match="an export for speculators, not for modelopt"):
            export(run, out, "modelopt")
        meta = export(run, out, "modelopt", force=True)
        assert "replaced 3 files of an earlier export" in meta["notes"]

    def test_a_folder_that_is_made_is_said(self, run: Path, tmp_path: Path) -> None:
        out = tmp_path / "a" / "b" / "train.jsonl"
        assert f"made the folder {out.parent}" in export(run, out)["notes"]
        (tmp_path / "file").write_text("")
        with pytest.raises(UsageError, match="the folder cannot be made: Not a directory"):
            export(run, tmp_path / "file" / "c" / "train.jsonl")

    def test_rows_cut_by_length_that_a_format_cannot_take_are_said(self, tmp_path: Path) -> None:
        cut: Record = {"finish_reason": "length", "flags": ["truncated"]}
        folder = tmp_path / "run"
        run_folder(folder, {"B6": [row_of(), row_of(index=1, **cut)]})
        assert export(folder, tmp_path / "ids", include=["truncated"])["rows_out"] == 2
        meta = export(folder, tmp_path / "text", "modelopt", include=["truncated"])
        words = "1 row cut by length stay out: as text, modelopt would learn to end there"
        assert (meta["rows_out"], words in meta["notes"]) == (1, True)

    @pytest.mark.parametrize("name", ["train.jsonl", "train-00003-of-00009.jsonl"])
    def test_a_file_of_unknown_origin_is_kept(self, run: Path, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_text("mine")
        with pytest.raises(UsageError, match="no export of this run"):
            export(run, tmp_path / "train.jsonl")
        assert (tmp_path / name).read_text() == "mine"
        export(run, tmp_path / "train.jsonl", force=True)
        assert len(records(tmp_path / "train.jsonl")) == 6

    def test_another_runs_export_is_kept(self, run: Path, tmp_path: Path) -> None:
        other = tmp_path / "other"
        run_folder(other, {"B6": [row_of()]})
        out = tmp_path / "train.jsonl"
        export(other, out)
        before = out.read_bytes()
        with pytest.raises(UsageError, match="an export of another run"):
            export(run, out)
        assert out.read_bytes() == before

    def test_an_export_that_a_crash_left_half_published_is_its_own(
        self, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out = tmp_path / "out" / "train.jsonl"
        replace = Path.replace

        def crash(self: Path, target: Path) -> Path:
            if str(target).endswith("00001-of-00002.jsonl"):
                raise OSError("no space")
            return replace(self, target)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "replace", crash)
            with pytest.raises(OSError, match="no space"):
                export(run, out, limits=ShardLimits(rows=3))
        assert json.loads((out.parent / "train.jsonl.meta.json").read_bytes())["complete"] is False
        export(run, out)
        assert names(out.parent) == {"train.jsonl", "train.jsonl.meta.json"}

    @pytest.mark.parametrize("name", ["run.json", "B6/rows.jsonl", "B6/train.jsonl", "B6", "."])
    def test_the_runs_own_files_are_never_overwritten(self, run: Path, name: str) -> None:
        before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
        with pytest.raises(UsageError, match="outside the run's own ones"):
            export(run, run / name, force=True)
        assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


class TestNothing:
    def test_an_empty_selection_writes_no_file(self, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        run_folder(folder, {"B6": [row_of(flags=["refusal"]), row_of(index=1, flags=["refusal"])]})
        with pytest.raises(UsageError, match="nothing to export: 2 refusal"):
            export(folder, tmp_path / "out" / "a.jsonl")
        assert names(tmp_path / "out") == set()

    def test_a_run_without_rows(self, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        run_folder(folder, {"B6": []})
        with pytest.raises(UsageError, match="no rows yet"):
            export(folder, tmp_path / "a.jsonl")

    def test_an_unknown_dataset_or_format(self, run: Path, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"--only B9(.|\n)*It has B6, B3"):
            export(run, tmp_path / "a.jsonl", only=("B9",))
        with pytest.raises(UsageError, match=r"'medusa'(.|\n)*Known: specforge"):
            export(run, tmp_path / "a.jsonl", "medusa")


def test_datasets_that_the_manifest_lost_go_out_by_name_only(run: Path, tmp_path: Path) -> None:
    record = json.loads((run / "run.json").read_bytes())
    record["manifest"]["datasets"] = record["manifest"]["datasets"][:1]
    (run / "run.json").write_text(json.dumps(record))
    meta = export(run, tmp_path / "a.jsonl")
    assert list(meta["datasets"]) == ["B6"]
    assert any("B3 is not in the manifest any more" in note for note in meta["notes"])
    assert export(run, tmp_path / "b.jsonl", only=("B3",))["rows_out"] == 2


def test_a_file_that_reads_back_otherwise_is_not_published(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoilt(path: Path, form: Any) -> Any:
        path.write_bytes(path.read_bytes().rpartition(b'{"input_ids"')[0])
        return read_back(path, form)

    monkeypatch.setattr(job, "read_back", spoilt)
    with pytest.raises(EaglegenError, match=r"5 rows .* were read back"):
        export(run, tmp_path / "out" / "a.jsonl")
    assert names(tmp_path / "out") == set()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace('"loss_mask":[0', '"loss_mask":[2', 1),
        lambda text: text.replace('"loss_mask":[0,', '"loss_mask":[', 1),
        lambda text: text[:-10] + "\n",
    ],
)
def test_reading_back_finds_a_bad_record(
    run: Path, tmp_path: Path, spoil: Callable[[str], str]
) -> None:
    out = tmp_path / "a.jsonl"
    export(run, out)
    out.write_text(spoil(out.read_text()))
    with pytest.raises(EaglegenError, match=r"a\.jsonl"):
        read_back(out, FORMATS["speculators"])


def test_rows_that_are_no_unicode_stay_out_of_every_file(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    half = row_of("half \ud83d", index=1, completion_ids=None, exactness="mismatch")
    run_folder(folder, {"B6": [row_of(), half]})
    meta = export(folder, tmp_path / "a.jsonl", "eagle", include=("mismatch",))
    assert meta["left_out"] == {"not_unicode": 1}


def test_a_live_run_says_so_and_gives_its_whole_lines(run: Path, tmp_path: Path) -> None:
    with (run / "B6" / "rows.jsonl").open("a") as file:
        file.write('{"id": "B6/01')
    meta = export(run, tmp_path / "a.jsonl", live=True)
    assert (meta["live"], meta["rows_in"], meta["left_out"]) == (True, 6, {})
    assert meta["notes"][0].startswith("the run is live")


def test_two_processes_write_what_one_writes(run: Path, tmp_path: Path) -> None:
    manifest = open_runs([run]).manifest
    shared = Request(run, format_named("modelopt"), tmp_path / "shared.jsonl")
    with workers(partial(make_kit, manifest.endpoint), 2) as work:
        meta = export_run(shared, manifest, work)
    alone = export(run, tmp_path / "alone.jsonl", "modelopt")
    assert shared.out.read_bytes() == (tmp_path / "alone.jsonl").read_bytes()
    assert meta["files"][0]["sha256"] == alone["files"][0]["sha256"]
