"""Whole lines in pieces: nothing is lost or cut where pieces meet, and no bad line is a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from export_cases import row_of
from hypothesis import given
from hypothesis import strategies as st

from engine.audits.rowlines import Piece, lines, parse_row, pieces, read_at, whole_end


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=30)),
    st.integers(1, 40),
)
def test_pieces_hold_every_line_once(tmp_path_factory: Any, texts: list[str], size: int) -> None:
    path = tmp_path_factory.mktemp("lines") / "rows.jsonl"
    data = "".join(text + "\n" for text in texts).encode()
    path.write_bytes(data + b'{"torn')
    assert whole_end(path) == len(data)
    found = [item for piece in pieces(path, len(data), size) for item in lines(piece)]
    assert [line for _, line in found] == [text.encode() for text in texts]
    for offset, line in found:
        assert data[offset : offset + len(line) + 1] == line + b"\n"


def test_a_file_without_a_whole_line_has_no_end(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert whole_end(path) == 0
    path.write_bytes(b"x" * 200_000)
    assert whole_end(path) == 0
    assert list(pieces(path, 0)) == []
    path.write_bytes(b"\n" + b"x" * 200_000)
    assert whole_end(path) == 1


def test_what_is_appended_later_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"1\n2\n")
    end = whole_end(path)
    path.write_bytes(b"1\n2\n3\n")
    assert [line for p in pieces(path, end, 1) for _, line in lines(p)] == [b"1", b"2"]


def test_rows_are_read_again_at_their_places(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [row_of(index=n) for n in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    places = [(at, len(line)) for at, line in lines(Piece(path, 0, whole_end(path)))]
    assert list(read_at(path, [places[2], places[0]])) == [rows[2], rows[0]]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": None}, "id is missing"),
        ({"id": "B6/xyz.0#0"}, "is no id"),
        ({"id": "B6/0123456789abcdef.0"}, "is no id"),
        ({"id": "B7/0123456789abcdef.0#0"}, "another dataset"),
        ({"usage": None}, "usage is missing"),
        ({"messages": "Hi"}, "messages is missing"),
        ({"messages": ["Hi"]}, "a message is no object"),
        ({"completion_ids": "1 2"}, "completion_ids is missing"),
        ({"flags": None}, "flags is missing"),
    ],
)
def test_lines_that_are_no_rows_say_why(change: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_row(json.dumps(row_of() | change).encode(), "B6")


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"id": "\xe2\x82"}'])
def test_other_lines_are_refused_too(line: bytes) -> None:
    with pytest.raises(ValueError, match=r"no JSON|no row"):
        parse_row(line, "B6")


def test_lone_surrogates_that_were_paid_for_are_read() -> None:
    line = json.dumps(row_of(content="half \ud83d", completion_ids=None)).encode()
    assert parse_row(line, "B6")["content"] == "half \ud83d"
