"""Pieces: special tokens are hard boundaries, and encoding in parts equals encoding the whole."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kimi_cases import vocabulary

from engine.tokens import kimi
from engine.tokens.pieces import PieceEncoder, split, unspaced

ADDED = [kimi.NAMED_SPECIALS[token] for token in kimi.ADDED_IDS]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
# Texts in which whitespace, Han, punctuation and letters meet in every way.
MIXED = st.text(
    st.sampled_from(list(" \n\r\tabS Z1.,!*'-中国\uff0c。〇々⺀é\u00a0\u2003\x1c\x85\u3000")),
    max_size=60,
)
PROSE = st.lists(
    st.sampled_from(["The", "cat", "12", "345", "foo.", "中国\uff0c", "好。", "**x**", "\n\n", "`"])
).map(" ".join)
PIECES = st.one_of(MIXED, PROSE, TEXT)


def with_tokens(pieces: list[str], tokens: list[str]) -> str:
    return "".join(a + b for a, b in zip(pieces, [*tokens, ""], strict=True))


@st.composite
def completions(draw: st.DrawFn) -> str:
    tokens = draw(st.lists(st.sampled_from(ADDED), max_size=4))
    return with_tokens([draw(PIECES) for _ in range(len(tokens) + 1)], tokens)


@given(completions())
@settings(max_examples=300)
def test_joined_pieces_equal_the_whole(text: str) -> None:
    assert PieceEncoder(vocabulary()).ids(split(text)) == vocabulary().encode(text)


@given(PIECES, st.sampled_from(["", " ", "\n", "\n\n"]), st.sampled_from(["", " ", "\n", "\n\n"]))
@settings(max_examples=600)
def test_edges_encoded_again_equal_the_whole_encoded_again(
    text: str, before: str, after: str
) -> None:
    encoder = PieceEncoder(vocabulary())
    for variant in (text, before + text, text + after, before + text + after, text.strip()):
        assert encoder.piece(variant) == vocabulary().encode_plain(variant)
        assert encoder.length([variant]) == len(vocabulary().encode_plain(variant))


@pytest.mark.parametrize(
    "text",
    ["word and " * 4000, "请解释投机解码\uff0c并举例说明。" * 3000, "x" * 60_000, "a b " * 120_000],
)
def test_long_pieces_equal_the_whole(text: str) -> None:
    encoder = PieceEncoder(vocabulary())
    for variant in (text, f" {text}", f"{text}\n\n"):
        assert encoder.piece(variant) == vocabulary().encode_plain(variant)


def test_a_variant_pays_for_its_edges_only() -> None:
    class Counting:
        """The vocabulary, counting the characters it is given."""

        def __init__(self) -> None:
            self.characters = 0

        def encode(self, text: str) -> list[int]:
            self.characters += len(text)
            return vocabulary().encode(text)

        def encode_plain(self, text: str) -> list[int]:
            self.characters += len(text)
            return vocabulary().encode_plain(text)

    counting = Counting()
    encoder = PieceEncoder(counting)
    text = "The quick brown fox jumps over the lazy dog. " * 150 + "Done"
    encoder.piece(f" {text} ")
    whole = counting.characters
    encoder.piece(text)
    encoder.piece(f"{text}\n")
    assert counting.characters - whole < 40


@given(completions())
def test_an_engines_spaces_come_off_again(text: str) -> None:
    parts = split(text)
    # What a slow tokenizer prints: every added token and every piece between, joined by spaces.
    shown = " ".join(part for part in ("<think>", *parts) if part).removeprefix("<think>")
    assert unspaced(split(shown)) == parts


def test_texts_without_an_engines_spaces_stay_as_they_are() -> None:
    parts = split("a</think>b<|tool_calls_section_begin|><|tool_call_begin|>c")
    assert unspaced(parts) == parts
