"""What a run says of its manifest by itself: `check` is not always asked first."""

from __future__ import annotations

from pathlib import Path

from check_desk import look, of, sources

from engine.manifest import load_manifest
from engine.plan import Options, make_plan

ROWS = [{"prompt": "Hi"}]


def test_run_and_check_name_a_misspelt_parameter_alike(tmp_path: Path) -> None:
    sampling = {"temperatur": 1.0, "max_tokens": 10}
    manifest = sources(tmp_path, ("A", ROWS), ("B", ROWS), sampling=sampling)
    words = "temperatur is no known request parameter and would be ignored"
    assert make_plan(load_manifest(manifest), Options()).notes == (
        f"{words}. Did you mean temperature?",
    )
    assert [f.text for f in of(look(manifest, offline=True), "parameters")] == [words]


def test_nothing_is_said_of_parameters_that_are_known(tmp_path: Path) -> None:
    sampling = {"temperature": 1.0, "max_tokens": 10, "vendor_extra": 1}
    manifest = sources(tmp_path, ("A", ROWS), sampling=sampling)
    assert make_plan(load_manifest(manifest), Options()).notes == ()
