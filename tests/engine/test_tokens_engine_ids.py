"""Ids that a server returned: kept as `engine` where they decode to its text."""

from __future__ import annotations

import pytest
from kimi_cases import VARIANT, ids, vocabulary

from engine.tokens.engine_ids import ids_decode_to_text, with_final_end
from engine.tokens.layouts import Answer

R, C = "I see.\n", "Two apples"
NATIVE = ids(f"{R}</think>{C}<|im_end|>")
CALLS = [{"id": "functions.f:0", "function": {"name": "f", "arguments": "{}"}}]
SECTION = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
    "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"
)


def decodes(given: list[int], answer: Answer, variant: str = VARIANT) -> bool:
    return ids_decode_to_text(given, answer, vocabulary().decode, thinking=True, variant=variant)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(C, R),
        Answer(f" {C}", f" {R} "),
        Answer(C, R.strip()),
        Answer(f"{R}</think>{C}", None),
        Answer(f"<think>{R}</think>{C}", None),
    ],
)
def test_ids_of_the_text_are_accepted_however_it_was_distorted(answer: Answer) -> None:
    assert decodes(NATIVE, answer)
    assert decodes(NATIVE[:-1], answer)


@pytest.mark.parametrize(
    "given",
    [
        [],
        NATIVE[1:],
        NATIVE[:-2],
        [*NATIVE, 999_999],
        [-1, *NATIVE],
        ids(f"{R}</think>{C}s<|im_end|>"),
        ids(f"{R}{C}<|im_end|>"),
        ids(f"{C}<|im_end|>"),
    ],
)
def test_ids_of_another_text_are_not(given: list[int]) -> None:
    assert not decodes(given, Answer(C, R))


def test_splits_that_are_not_canonical_decode_all_the_same() -> None:
    split = [token for letter in C for token in vocabulary().encode(letter)]
    assert decodes([*ids(f"{R}</think>"), *split, 163586], Answer(C, R))


def test_special_tokens_that_the_text_leaves_out_do_not_matter() -> None:
    assert decodes([*NATIVE[:-1], 163587, 163586], Answer(C, R))
    shown = ids(f"{R}</think>{C}<|im_user|>")
    assert decodes([*shown, 163586], Answer(f"{C}<|im_user|>", R))


def test_a_cut_character_decodes_to_the_servers_own_replacement() -> None:
    cut = ids("smile \U0001f600")[:-1]
    assert decodes(cut, Answer(None, vocabulary().decode(cut), None, "length"))


def test_tool_calls_are_compared_with_the_section() -> None:
    native = ids(f"{R}</think>{SECTION}<|im_end|>")
    assert decodes(native, Answer(None, R, CALLS, "tool_calls"))
    assert decodes(native, Answer(SECTION, R))
    assert not decodes(native, Answer(None, R))


def test_k2_thinking_returns_the_opening_tag() -> None:
    native = ids(f"<think>{R}</think>{C}<|im_end|>")
    assert decodes(native, Answer(C, R), "kimi-k2-thinking")
    assert not decodes(native, Answer(C, R))


@pytest.mark.parametrize(
    ("count", "finish", "given", "expected"),
    [
        (None, "stop", NATIVE[:-1], NATIVE),
        (len(NATIVE), "stop", NATIVE[:-1], NATIVE),
        (len(NATIVE) - 1, "stop", NATIVE[:-1], NATIVE[:-1]),
        (len(NATIVE), "stop", NATIVE, NATIVE),
        (None, "length", NATIVE[:-1], NATIVE[:-1]),
        (None, "stop", [*NATIVE[:-1], 163585], [*NATIVE[:-1], 163585]),
        (None, "stop", [], []),
    ],
)
def test_the_end_is_added_only_where_it_was_written(
    count: int | None, finish: str, given: list[int], expected: list[int]
) -> None:
    assert with_final_end(given, Answer(C, R, None, finish, count)) == expected
