"""JSON lines: everything that was paid for can be written and read again, torn ends are mended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.disk.jsonlines import dump, dump_line, load_line, read_lines, repair_tail

JSON: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),  # lone surrogates too
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(JSON)
def test_any_value_survives_and_takes_one_line(value: Any) -> None:
    line = dump_line({"v": value})
    assert line.count(b"\n") == 1
    assert load_line(line) == {"v": value}


@pytest.mark.parametrize("text", ["\ud83d", "a\udfffb", "\x00\x1f", "\u2028", "👋", "\\ud83d"])
def test_odd_text_is_kept_to_the_character(text: str) -> None:
    assert load_line(dump({"t": text})) == {"t": text}


def test_numbers_beyond_64_bits_and_deep_nesting_are_kept() -> None:
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    assert load_line(dump({"n": 2**70})) == {"n": 2**70}
    assert json.loads(dump(deep)) == deep


def test_reading_gives_byte_offsets_and_passes_over_unreadable_lines(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes('{"a":"ü"}\nbroken\n[1]\n\n{"a":2}\n{"a":'.encode())
    found = list(read_lines(path))
    assert [record for _, record in found] == [{"a": "ü"}, {"a": 2}]
    for offset, record in found:
        with path.open("rb") as file:
            file.seek(offset)
            assert load_line(file.readline()) == record
    assert list(read_lines(tmp_path / "none.jsonl")) == []


@pytest.mark.parametrize(
    ("before", "after", "torn"),
    [
        (b"", b"", b""),
        (b'{"a":1}\n', b'{"a":1}\n', b""),
        (b'{"a":1}', b'{"a":1}\n', b""),
        (b'{"a":1}\n{"a":2}', b'{"a":1}\n{"a":2}\n', b""),
        (b'{"a":1}\n{"a":', b'{"a":1}\n', b'{"a":'),
        (b'{"a":', b"", b'{"a":'),
        (b'{"a":1}\n12', b'{"a":1}\n', b"12"),
        (b'{"a":1}\n\0\0\0\0', b'{"a":1}\n', b"\0\0\0\0"),
        (b'{"a":1}\n\0\0\0\n', b'{"a":1}\n', b"\0\0\0\n"),
        (b'{"a":1}\n{"a":"\xc3', b'{"a":1}\n', b'{"a":"\xc3'),
    ],
)
def test_a_torn_tail_is_moved_aside_and_a_whole_line_gets_its_end(
    tmp_path: Path, before: bytes, after: bytes, torn: bytes
) -> None:
    path = tmp_path / "f.jsonl"
    path.write_bytes(before)
    assert repair_tail(path) == torn
    assert path.read_bytes() == after
    aside = tmp_path / "f.jsonl.torn"
    assert aside.exists() == bool(torn)
    if torn:
        assert aside.read_bytes() == torn.removesuffix(b"\n") + b"\n"
    assert repair_tail(path) == b""


def test_a_torn_line_longer_than_a_read_block_is_found_and_kept_beside_earlier_ones(
    tmp_path: Path,
) -> None:
    path = tmp_path / "f.jsonl"
    good = dump_line({"a": "x" * 200_000})
    for _ in range(2):
        path.write_bytes(good + good[:150_000])
        assert len(repair_tail(path)) == 150_000
        assert path.read_bytes() == good
    assert (tmp_path / "f.jsonl.torn").read_bytes() == (good[:150_000] + b"\n") * 2


def test_a_missing_file_needs_no_repair(tmp_path: Path) -> None:
    assert repair_tail(tmp_path / "none.jsonl") == b""
    assert list(tmp_path.iterdir()) == []


def test_a_line_nested_beyond_reason_is_no_record_and_no_crash() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        load_line(b"[" * 100_000)
