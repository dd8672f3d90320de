"""Parquet files hold the records of their function, typed whatever the rows are (extra `hf`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from export_cases import SECTION, TOOL, kit_of, made, row_of, run_folder

from engine.audits.workers import Inline
from engine.errors import UsageError
from engine.export import columns
from engine.export.catalogue import FORMATS
from engine.export.job import Request, export_run
from engine.export.shards import ShardLimits
from engine.fleet.runs import open_runs


def export(folder: Path, out: Path, **more: Any) -> dict[str, Any]:
    request = Request(folder, FORMATS["parquet"], out, **more)
    return export_run(request, open_runs([folder]).manifest, Inline(kit_of()))


def test_without_pyarrow_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    run_folder(tmp_path / "run", {"B6": [row_of()]})
    with pytest.raises(UsageError, match=r"pyarrow(.|\n)*eaglegen-tui\[hf\]"):
        export(tmp_path / "run", tmp_path / "a.parquet")


def test_rows_come_back_as_they_were_made(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed (extra hf)")
    rows = [row_of(index=n) for n in range(3)]
    rows.append(row_of(f"See.{SECTION}", index=3, tools=[TOOL], provider=None))
    run_folder(tmp_path / "run", {"B6": rows})
    meta = export(tmp_path / "run", tmp_path / "a.parquet", limits=ShardLimits(rows=3))
    paths = [tmp_path / file["name"] for file in meta["files"]]
    assert [path.name for path in paths] == [f"a-0000{n}-of-00002.parquet" for n in (0, 1)]
    found = [row for path in paths for row in parquet.read_table(path).to_pylist()]
    assert found == [made("parquet", row) for row in rows]
    schemas = {str(parquet.read_schema(path)) for path in paths}
    assert len(schemas) == 1
    assert json.loads(found[3]["tools"]) == [TOOL]
    assert sum(file["tokens"] for file in meta["files"]) == meta["tokens"]
    assert (tmp_path / "a.parquet.chat_template.jinja").exists()


def test_many_rows_are_written_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra hf)")
    monkeypatch.setattr(columns, "_GROUP", 2)
    run_folder(tmp_path / "run", {"B6": [row_of(index=n) for n in range(5)]})
    meta = export(tmp_path / "run", tmp_path / "a.parquet")
    assert meta["files"][0]["rows"] == 5
    assert [row["index"] for row in columns.read_columns(tmp_path / "a.parquet")] == list(range(5))
