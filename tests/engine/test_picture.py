"""A snapshot over the wire and back: nothing is lost, and other versions' fields do no harm."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_run import SCENES, busy

from engine.link.picture import from_wire, to_line
from engine.view.frame import status
from engine.view.snapshot import DatasetView, JournalEntry, Series, Snapshot

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize("scene", SCENES)
def test_every_scene_comes_back_as_it_was(scene: str) -> None:
    snapshot = SCENES[scene]()
    line = to_line(snapshot)
    assert line.count(b"\n") == 1
    assert from_wire(json.loads(line)) == snapshot


def test_the_line_is_status_json_and_a_screen() -> None:
    snapshot = busy(1e9, 60)
    record = json.loads(to_line(snapshot))
    screen = record.pop("screen")
    assert record == json.loads(json.dumps(status(snapshot)))
    assert screen["datasets"][0]["rate"]["values"]


@given(
    st.builds(
        lambda view, text, at, values, code: replace(
            busy(1e9, 5),
            datasets=(view,),
            reason=text,
            journal=(JournalEntry(at, "note", text, None),),
            rate=Series(at, 5.0, tuple(values)),
            exit_code=code,
        ),
        st.builds(
            DatasetView,
            name=st.text(max_size=20),
            state=st.sampled_from(["queued", "running", "budget"]),
            prompts=st.integers(0, 10**9),
            cost_usd=st.none() | finite,
            exactness=st.dictionaries(st.text(max_size=5), st.integers(0, 9), max_size=3),
        ),
        st.text(max_size=50),
        finite,
        st.lists(st.none() | finite, max_size=20),
        st.none() | st.integers(0, 130),
    )
)
def test_any_snapshot_comes_back_as_it_was(snapshot: Snapshot) -> None:
    assert from_wire(json.loads(to_line(snapshot))) == snapshot


def test_a_lone_surrogate_does_not_end_the_line() -> None:
    snapshot = replace(busy(1e9, 5), reason="cut \ud83d here")
    assert from_wire(json.loads(to_line(snapshot))).reason == "cut ? here"


def test_fields_of_a_newer_version_are_left_out() -> None:
    snapshot = busy(1e9, 5)
    record = json.loads(to_line(snapshot))
    record["screen"]["weather"] = "fine"
    record["screen"]["datasets"][0]["mood"] = 1
    assert from_wire(record) == snapshot


@pytest.mark.parametrize("record", [{}, {"screen": {}}, {"screen": None}, {"screen": {"run": 1}}])
def test_what_is_no_snapshot_is_refused(record: dict[str, object]) -> None:
    with pytest.raises((KeyError, ValueError)):
        from_wire(record)
