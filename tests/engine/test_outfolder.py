"""Where a run cannot be written is said before anything is sent, by `run` and by `check`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from check_desk import look, sources

from engine.disk.outfolder import check_folder, obstacle, wanted_folder
from engine.errors import ExitCode, UsageError
from engine.manifest import load_manifest
from engine.plan import Options, make_plan

ROWS = [{"prompt": "Hi"}]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("")
    return path


def test_a_folder_that_can_be_made_or_used_has_nothing_in_its_way(tmp_path: Path) -> None:
    assert obstacle(tmp_path) == ""
    assert obstacle(tmp_path / "new" / "and" / "newer") == ""
    (tmp_path / "link").symlink_to(tmp_path)
    assert obstacle(tmp_path / "link" / "new") == ""


def test_a_file_is_in_the_way(file: Path) -> None:
    assert obstacle(file) == f"{file} is a file; a run needs a folder"
    below = file / "a" / "b"
    assert obstacle(below) == f"{below} cannot be made: {file} is a file"


def test_a_broken_link_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    assert "is a broken link" in obstacle(tmp_path / "link")


def test_a_name_that_no_system_takes_is_said_in_short(tmp_path: Path) -> None:
    words = obstacle(tmp_path / ("a" * 300) / "b")
    assert words.endswith("characters) cannot be a run directory: file name too long")
    assert len(words) < 200
    assert "null byte" in obstacle(Path("a\0b"))


def test_a_place_without_permission_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    assert obstacle(tmp_path) == f"{tmp_path} cannot be written to: no permission"
    assert obstacle(tmp_path / "a" / "b").endswith(f"no permission to write to {tmp_path}")
    with pytest.raises(UsageError) as caught:
        check_folder(tmp_path)
    assert "--output" in caught.value.hint


def test_a_tilde_in_the_option_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert wanted_folder(Path("~/runs"), Path("out")) == Path("/home/me/runs")
    assert wanted_folder(None, Path("out")) == Path("out")
    with pytest.raises(UsageError, match="--output: ~nobody-has-this-name is nobody's"):
        wanted_folder(Path("~nobody-has-this-name/x"), Path("out"))


@pytest.mark.parametrize("place", ["file", "file/below", "a" * 300])
def test_run_and_check_refuse_alike(tmp_path: Path, file: Path, place: str) -> None:
    manifest = sources(tmp_path, ("A", ROWS))
    output = file.parent / place
    with pytest.raises(UsageError) as caught:
        make_plan(load_manifest(manifest), Options(output=output))
    assert caught.value.exit_code is ExitCode.USAGE
    report = look(manifest, output=output, offline=True)
    said = [finding.text for finding in report.findings if finding.topic == "output"]
    assert said == [caught.value.message]
    assert report.exit_code is ExitCode.USAGE


def test_a_file_with_a_datasets_name_is_in_the_way(tmp_path: Path) -> None:
    manifest = sources(tmp_path, ("A", ROWS))
    output = tmp_path / "runs"
    output.mkdir()
    (output / "A").write_text("")
    words = f"{output / 'A'} is in the way: the dataset A needs a folder"
    with pytest.raises(UsageError) as caught:
        make_plan(load_manifest(manifest), Options(output=output))
    assert caught.value.message == words
    report = look(manifest, output=output, offline=True)
    assert [f.text for f in report.findings if f.topic == "output"] == [words]
