"""Numbers as people read them, and outside text that cannot hurt a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from engine import format as fmt


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1k"),
        (9_960, "9.9k"),
        (999_999, "999k"),
        (1_000_000, "1M"),
        (4_960_000, "4.9M"),
        (9_999_999, "9.9M"),
        (10_000_000, "10M"),
        (12_450_000, "12.4M"),
        (123_456_789, "123M"),
        (1_200_000_000, "1.2B"),
    ],
)
def test_a_large_number_is_short_and_never_rounded_up(number: int, text: str) -> None:
    assert fmt.compact(number) == text


@pytest.mark.parametrize(
    ("usd", "text"),
    [(None, "$?"), (0.0, "$0.00"), (0.004, "<$0.01"), (10.7, "$10.70"), (1204.5, "$1,204.50")],
)
def test_money_has_two_digits_and_says_when_it_is_unknown(usd: float | None, text: str) -> None:
    assert fmt.money(usd) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (None, "?/s"),
        (0.0, "0.0/s"),
        (0.004, "<0.01/s"),
        (0.25, "0.25/s"),
        (19.64, "19.6/s"),
        (123.4, "123/s"),
        (1812.0, "1,812/s"),
    ],
)
def test_a_rate_has_the_digits_that_tell_something(rate: float | None, text: str) -> None:
    assert fmt.rate(rate) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, "?"),
        (0, 10, "0%"),
        (1, 100_000, "<0.1%"),
        (958, 15_436, "6.2%"),
        (996, 10_000, "10%"),
        (3_900, 15_000, "26%"),
        (14_999, 15_000, "99%"),
        (15_000, 15_000, "100%"),
        (10_000_412, 10_000_000, "100%"),
    ],
)
def test_nothing_and_everything_are_only_shown_where_they_are_exact(
    part: int, whole: int, text: str
) -> None:
    assert fmt.percent(part, whole) == text


@pytest.mark.parametrize(
    ("seconds", "text", "coarse"),
    [
        (None, "?", "?"),
        (0.4, "0s", "0s"),
        (59.9, "59s", "59s"),
        (550, "9m 10s", "9m"),
        (4320, "1h 12m", "1h"),
        (187_200, "2d 04h", "2d"),
        (-3, "0s", "0s"),
    ],
)
def test_a_span_has_two_units_and_an_age_one(seconds: float | None, text: str, coarse: str) -> None:
    assert fmt.duration(seconds) == text
    assert fmt.coarse(seconds) == coarse


def test_an_age_is_said_in_words() -> None:
    assert [fmt.ago(seconds) for seconds in (None, 0.2, 45, 250)] == [
        "?",
        "just now",
        "45s ago",
        "4m ago",
    ]


def test_a_count_agrees_with_its_noun() -> None:
    assert fmt.plural(1, "prompt") == "1 prompt"
    assert fmt.plural(15_000, "prompt") == "15,000 prompts"
    assert fmt.plural(2, "entry", "entries") == "2 entries"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [/brackets] {too}", "plain [/brackets] {too}"),
        ("two\nlines\r\n\ttab", "two\\nlines\\r\\n\\ttab"),
        ("\x1b[31mred\x1b[0m\x07", "\\e[31mred\\e[0m\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("safe\u202eevil", "safe\\u202eevil"),
        ("zero\u200bwidth\ufeff", "zero\\u200bwidth\\ufeff"),
        ("lone \udc80", "lone \\udc80"),
        ("heart \u2764\ufe0f", "heart \u2764"),
        ("e\u0301 and e\u0301\u0302\u0303", "\xe9 and \xe9\u0302"),
        ("no\xa0break\u3000wide", "no break wide"),
        ("\U0001f469\u200d\U0001f680", "\U0001f469\\u200d\U0001f680"),
        ("שלום 世界", "שלום 世界"),
    ],
)
def test_text_from_outside_becomes_one_harmless_line(text: str, shown: str) -> None:
    assert fmt.safe_text(text) == shown


def test_every_character_has_the_width_that_the_screen_library_gives_it() -> None:
    wrong = [
        hex(code)
        for code in range(0x110000)
        if fmt.width(safe := fmt.safe_text("a" + chr(code))) != cell_len(safe)
    ]
    assert wrong == []


@given(st.text(), st.integers(0, 40))
def test_cut_text_is_harmless_and_never_wider_than_asked(text: str, cells: int) -> None:
    shown = fmt.safe_text(text, cells)
    assert fmt.width(shown) == cell_len(shown) <= cells
    assert not any(unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for char in shown)


@given(st.text(), st.integers(0, 40), st.booleans())
def test_padded_text_is_exactly_as_wide_as_asked(text: str, cells: int, right: bool) -> None:
    assert fmt.width(fmt.pad(fmt.safe_text(text), cells, right=right)) == cells


def test_a_very_long_text_is_not_read_to_its_end() -> None:
    shown = fmt.safe_text("x" * 1_000_000)
    assert len(shown) < 3000
    assert shown.endswith("…")
