"""Grades from shapes are those of `FinalGrades`, which encodes every text in both passes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
from distorting_hosts import SIX, Host, rows
from kimi_cases import VARIANT, vocabulary

from engine.audits.regrade import Learned, Regrader, settle, shape_of
from engine.tokens.final import FinalGrades, final_grades
from engine.tokens.layouts import answer_of_row
from engine.tokens.readings import NO_EVIDENCE, Readings

HOW: dict[str, Any] = {"thinking": True, "variant": VARIANT}


def readings_of(row: dict[str, Any]) -> Readings:
    return Readings(answer_of_row(row), vocabulary(), **HOW)


def learned(row: dict[str, Any]) -> Learned:
    if row.get("exactness") == "engine":
        return Learned(row["provider"], "engine", NO_EVIDENCE, None, None)
    readings = readings_of(row)
    shape = shape_of(readings, row["completion_ids"])
    return Learned(row["provider"], None, readings.evidence, shape, None)


def regraded(given: list[dict[str, Any]]) -> tuple[list[Any], Regrader]:
    regrader = Regrader(thinking=True)
    for row in given:
        regrader.fold(learned(row))
    verdicts = regrader.verdicts()
    graded = [
        settle(row, answer_of_row(row), verdict, vocabulary(), **HOW)
        for row, verdict in zip(given, verdicts, strict=True)
    ]
    return graded, regrader


@pytest.mark.parametrize(
    ("hosts", "number", "split_share"),
    [(SIX, 4200, 0.0), (SIX, 1800, 0.05), (SIX[1:2], 2300, 0.02), (SIX[3:4], 900, 0.0)],
    ids=["six", "resplit", "spaced", "trimmed"],
)
def test_every_row_gets_the_grade_and_the_ids_of_two_full_passes(
    hosts: tuple[Host, ...], number: int, split_share: float
) -> None:
    given = []
    for place, (row, ids) in enumerate(rows(hosts, number, split_share=split_share)):
        # what stands in the file may be right, another reading's, or missing
        stored = (ids, ids[:-1], None)[place % 3]
        given.append({**row, "completion_ids": stored, "exactness": "ambiguous"})
    expected = [graded for _, graded in final_grades(lambda: given, vocabulary(), **HOW)]
    found, regrader = regraded(given)
    assert found == expected
    full = FinalGrades(vocabulary(), **HOW)
    full.learn(given)
    assert {name: asdict(p) for name, p in regrader.profiles().items()} == {
        name: asdict(p) for name, p in full.profiles().items()
    }


def test_rows_with_ids_from_the_server_keep_them() -> None:
    row, ids = next(rows(SIX, 1, split_share=1.0))
    given = [{**row, "completion_ids": ids, "exactness": "engine"}]
    found, _ = regraded(given)
    assert (found[0].ids, found[0].exactness) == (ids, "engine")


def test_texts_that_cannot_be_encoded_are_a_mismatch_without_ids() -> None:
    row, _ = next(rows(SIX, 1, split_share=0.0))
    given = [{**row, "content": "half \ud83d a pair", "completion_ids": None, "exactness": ""}]
    found, _ = regraded(given)
    assert (found[0].ids, found[0].exactness) == (None, "mismatch")


def test_memory_is_a_number_a_row_and_few_shapes() -> None:
    given = [
        {**row, "completion_ids": ids, "exactness": ""}
        for row, ids in rows(SIX, 1500, split_share=0.05)
    ]
    _, regrader = regraded(given)
    assert len(regrader._rows) == 1500
    assert regrader._rows.itemsize <= 8
    assert len(regrader._keys) < 300
