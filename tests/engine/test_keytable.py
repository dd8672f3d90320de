"""Compact tables hold what a dictionary would."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from engine.disk.keytable import (
    Columns,
    Occurrences,
    generation_number,
    prompt_number,
    request_number,
)

NUMBERS = st.integers(0, 20) | st.integers(0, (1 << 64) - 1)


@given(st.lists(st.dictionaries(NUMBERS, st.integers(0, 255)), max_size=5))
def test_columns_hold_what_was_merged(batches: list[dict[int, int]]) -> None:
    columns, want = Columns("B"), dict[int, int]()
    for batch in batches:
        columns.merge(batch)
        want |= batch
    assert list(columns.keys) == sorted(want)
    assert dict(zip(columns.keys, columns.values, strict=True)) == want
    for key in want:
        assert columns.values[columns.find(key)] == want[key]
        assert (columns.find(key ^ 1) >= 0) == ((key ^ 1) in want)


@given(st.lists(st.binary(min_size=8, max_size=8) | st.sampled_from([bytes(8), b"\xff" * 8])))
def test_occurrences_count_like_a_dictionary(keys: list[bytes]) -> None:
    counts, want = Occurrences(), dict[bytes, int]()
    for key in keys:
        assert counts.get(key, 0) == want.get(key, 0)
        counts[key] = want[key] = want.get(key, 0) + 1
    assert len(counts) == len(want)


def test_occurrences_grow_and_are_filled_again_from_their_columns() -> None:
    counts = Occurrences()
    keys = [(n * 0x9E3779B97F4A7C15 % (1 << 64)).to_bytes(8) for n in range(5000)]
    for key in keys:
        counts[key] = 2
    again = Occurrences.unfilled(len(counts))
    for mine, theirs in zip(again.columns(), counts.columns(), strict=True):
        mine.extend(theirs)
    assert len(again) == 5000
    assert all(again.get(key, 0) == 2 for key in keys)
    assert again.get(b"12345678", 0) == 0
    again[keys[0]] = 3
    assert again.get(keys[0], 0) == 3


def test_numbers_tell_prompts_turns_and_attempts_apart() -> None:
    numbers = array("Q")
    for occurrence in range(20):
        prompt = prompt_number(f"{7:016x}.{occurrence}")
        for turn in range(20):
            generation = generation_number(prompt, turn)
            numbers.extend(request_number(generation, attempt) for attempt in range(20))
    assert len(set(numbers)) == 8000
