"""Which rows go out by default, and what `--include` adds."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import UsageError
from engine.export.selection import GRADES, Selection, selection_of
from engine.wire.reply import FLAGS


def reason(*includes: str, grade: str = "matched", tokens: bool = True, **row: Any) -> str | None:
    whole = {"finish_reason": "stop", "flags": []} | row
    return selection_of(includes, None).reason(whole, grade, tokens=tokens)


@pytest.mark.parametrize(
    ("grade", "expected"),
    [
        ("engine", None),
        ("matched", None),
        ("ambiguous", "ambiguous"),
        ("mismatch", "mismatch"),
        ("unverified", "unverified"),
    ],
)
def test_only_sure_rows_go_out(grade: str, expected: str | None) -> None:
    assert reason(grade=grade) == expected
    assert reason(grade, grade=grade) is None


@pytest.mark.parametrize("flag", FLAGS)
def test_flagged_rows_stay_unless_their_flag_is_included(flag: str) -> None:
    assert reason(flags=[flag]) == flag
    assert reason(flag, flags=[flag]) is None
    assert reason(flag, flags=[flag, "new_flag"]) == "new_flag"
    assert reason("ambiguous", flags=[flag]) == flag


def test_rows_cut_by_length_go_out_as_ids_only() -> None:
    cut: dict[str, Any] = {"finish_reason": "length", "flags": ["truncated"]}
    assert reason(**cut) == "length"
    assert reason("length", **cut) is None
    assert reason("length", **cut, tokens=False) == "length"
    assert reason("truncated", **cut) is None, "the flag means the same rows"
    assert reason("truncated", **cut, tokens=False) == "length"
    both = cut | {"flags": ["truncated", "reasoning_only"]}
    assert reason("length", **both) == "reasoning_only"


def test_finish_reasons() -> None:
    assert reason(finish_reason="tool_calls") is None
    assert reason(finish_reason="abort") == "finish_abort"


def test_an_unknown_word_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError, match=r"--include ambigous(.|\n)*Did you mean ambiguous"):
        selection_of(["ambigous"], None)


def test_the_sidecar_names_what_was_selected() -> None:
    assert Selection().record() == {
        "grades": ["engine", "matched"],
        "flags": [],
        "finish_reasons": ["stop", "tool_calls"],
        "max_length": None,
    }
    wide = selection_of([*GRADES, "refusal", "length"], 4096).record()
    assert wide == {
        "grades": list(GRADES),
        "flags": ["refusal"],
        "finish_reasons": ["stop", "tool_calls", "length"],
        "max_length": 4096,
    }
