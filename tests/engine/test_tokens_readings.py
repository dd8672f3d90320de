"""Readings and grades of single rows: the golden replies, every layout, and hostile input."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kimi_cases import golden, graded, ids, read, vocabulary

from engine.tokens.grades import grade
from engine.tokens.layouts import answer_of_row
from engine.tokens.profiles import Profile
from engine.tokens.tool_calls import native_section

SPACED = Profile(reading="spaced", decisive=300)
VERBATIM = Profile(reading="verbatim", decisive=300)
TRIMMER = Profile(trims=True, decisive=300)
END = "<|im_end|>"
SECTION = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0<|tool_call_argument_begin|>"
    '{"tz": "UTC"}<|tool_call_end|><|tool_calls_section_end|>'
)


def case_grade(case: dict[str, Any], **known: Any) -> Any:
    return graded(
        case["api_content"],
        case["api_reasoning"],
        count=case["completion_tokens"],
        finish=case["finish_reason"],
        thinking=case["thinking"],
        **known,
    )


def test_golden_replies_alone() -> None:
    cases = golden("kimi_k25_responses.jsonl")
    assert cases
    for case in cases:
        result = case_grade(case)
        assert (case["name"], result.exactness) == (case["name"], case["expect"])
        assert result.ids == case["completion_ids"], case["name"]


def test_golden_replies_of_a_provider_known_to_space() -> None:
    for case in golden("kimi_k25_responses.jsonl"):
        result = case_grade(case, profile=SPACED)
        settled = case["expect"] == "ambiguous" and case["truth_reading"] == "unspaced"
        assert result.exactness == ("matched" if settled else case["expect"]), case["name"]
        assert result.ids == case["completion_ids"], case["name"]


R, C = "Let me think.", "It is 2"


@pytest.mark.parametrize(
    ("reasoning", "content", "finish", "native"),
    [
        (R, C, "stop", f"{R}</think>{C}{END}"),
        (None, f"{R}</think>{C}", "stop", f"{R}</think>{C}{END}"),
        (None, f"<think>{R}</think>{C}", "stop", f"{R}</think>{C}{END}"),
        (None, f"\n<think>{R}</think>{C}", "stop", f"{R}</think>{C}{END}"),
        ("", f"{R}</think>{C}", "stop", f"{R}</think>{C}{END}"),
        (f"<think>{R}</think>", C, "stop", f"{R}</think>{C}{END}"),
        (R, f"</think>{C}", "stop", f"{R}</think>{C}{END}"),
        (R, f"<think>{R}</think>{C}", "stop", f"{R}</think>{C}{END}"),
        (R, f"{C}{END}", "stop", f"{R}</think>{C}{END}"),
        (None, C, "stop", f"</think>{C}{END}"),
        (R, "", "stop", f"{R}</think>{END}"),
        (R, None, "stop", f"{R}{END}"),
        (R, None, "length", R),
        (R, C, "length", f"{R}</think>{C}"),
        (None, f"<think>{R}", "length", R),
        (None, R, "length", R),
        (R, SECTION, "stop", f"{R}</think>{SECTION}{END}"),
        (R, SECTION, "stop", f"{R}{SECTION}{END}"),
        (None, f"{R}{SECTION}", "stop", f"{R}{SECTION}{END}"),
        (f"{R}{SECTION}", "", "stop", f"{R}{SECTION}{END}"),
        (R, SECTION[:-40], "length", f"{R}</think>{SECTION[:-40]}"),
        (R, "see [BOS] there", "stop", f"{R}</think>see [BOS] there{END}"),
    ],
)
def test_each_layout_is_read(
    reasoning: str | None, content: str | None, finish: str, native: str
) -> None:
    sampled = ids(native)
    result = graded(content, reasoning, count=len(sampled), finish=finish)
    assert result.exactness == "matched"
    assert result.ids == sampled


@pytest.mark.parametrize(
    ("content", "reasoning", "native"),
    [
        (C, None, f"{C}{END}"),
        (f"<think></think>{C}", None, f"{C}{END}"),
        (C, R, f"{R}</think>{C}{END}"),
        (SECTION, None, f"{SECTION}{END}"),
    ],
)
def test_thinking_off(content: str, reasoning: str | None, native: str) -> None:
    result = graded(content, reasoning, count=len(ids(native)), thinking=False)
    assert (result.exactness, result.ids) == ("matched", ids(native))


@pytest.mark.parametrize(
    ("content", "reasoning", "native"),
    [
        (C, R, f"<think>{R}</think>{C}{END}"),
        (f"<think>{R}</think>{C}", None, f"<think>{R}</think>{C}{END}"),
        (f"{R}</think>{C}", None, f"<think>{R}</think>{C}{END}"),
        (C, None, f"{C}{END}"),
    ],
)
def test_k2_thinking_writes_the_opening_tag_itself(
    content: str, reasoning: str | None, native: str
) -> None:
    result = graded(content, reasoning, count=len(ids(native)), variant="kimi-k2-thinking")
    assert (result.exactness, result.ids) == ("matched", ids(native))


def test_spaces_inside_a_tool_section_show_in_the_count() -> None:
    spaced = (
        " I look. <|tool_calls_section_begin|> <|tool_call_begin|> functions.now:0 "
        "<|tool_call_argument_begin|> {} <|tool_call_end|> <|tool_calls_section_end|>"
    )
    native = (
        "Ok.</think>I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.now:0"
        f"<|tool_call_argument_begin|>{{}}<|tool_call_end|><|tool_calls_section_end|>{END}"
    )
    for profile in (Profile(), SPACED, VERBATIM):
        result = graded(spaced, " Ok. ", count=len(ids(native)), profile=profile)
        assert (result.exactness, result.ids) == ("matched", ids(native))


CALLS = [
    {
        "id": "functions.now:0",
        "type": "function",
        "function": {"name": "now", "arguments": '{"tz": "UTC"}'},
    }
]


def test_tool_calls_of_the_api_give_the_ids_of_the_raw_section() -> None:
    assert native_section(CALLS) == SECTION
    native = ids(f"{R}</think>{C}{SECTION}{END}")
    for calls, content in ((CALLS, C), (None, f"{C}{SECTION}"), (CALLS, f"{C}{SECTION}")):
        result = graded(content, R, count=len(native), calls=calls, finish="tool_calls")
        assert (result.exactness, result.ids) == ("matched", native)


@pytest.mark.parametrize(
    "call",
    [
        {"id": "call_1", "function": {"name": "now", "arguments": '{"tz": "UTC"}'}},
        {"function": {"name": "now", "arguments": '{"tz": "UTC"}'}},
        {"id": "functions.now:0", "function": {"name": "now", "arguments": {"tz": "UTC"}}},
    ],
)
def test_rebuilt_ids_of_tool_calls_are_a_guess(call: dict[str, Any]) -> None:
    native = ids(f"{R}</think>{SECTION}{END}")
    result = graded(None, R, count=len(native), calls=[call])
    assert (result.exactness, result.ids) == ("ambiguous", native)


def test_rebuilt_ids_go_on_counting_the_conversations_calls() -> None:
    row = {
        "content": None,
        "reasoning": R,
        "tool_calls": [{"function": {"name": "now", "arguments": "{}"}}],
        "messages": [{"role": "assistant", "tool_calls": CALLS}],
    }
    assert answer_of_row(row).earlier_calls == 1
    text = vocabulary().decode(grade(read_row(row)).ids or [])
    assert "functions.now:1" in text


def read_row(row: dict[str, Any]) -> Any:
    answer = answer_of_row(row)
    readings = read(answer.content, answer.reasoning)
    return type(readings)(answer, vocabulary(), thinking=True, variant="kimi-k2.5")


@pytest.mark.parametrize("calls", [["x"], [{}], [{"id": "a", "function": {"name": "now"}}], "xy"])
def test_malformed_tool_calls_are_never_matched(calls: Any) -> None:
    result = graded(C, R, count=len(ids(f"{R}</think>{C}{END}")), calls=calls)
    assert result.exactness in {"ambiguous", "mismatch"}


# what a count cannot prove


def test_a_row_that_may_have_ended_right_after_its_reasoning_is_ambiguous() -> None:
    native = ids(f"{R}</think>")
    assert graded("", R, count=len(native), finish="length").exactness == "ambiguous"


def test_a_space_at_a_cut_may_be_all_that_is_left_of_the_closing_tag() -> None:
    native = ids(f"{R}</think>")
    assert len(native) == len(ids(f"{R} "))
    for profile in (Profile(), SPACED):
        result = graded("", f" {R} ", count=len(native), finish="length", profile=profile)
        assert result.exactness == "ambiguous"


def test_an_answer_without_any_reasoning_is_ambiguous_where_one_token_lacks() -> None:
    assert graded(C, None, count=len(ids(f"{C}{END}"))).exactness == "ambiguous"


def test_a_trimmed_newline_is_a_guess() -> None:
    native = ids(f"{R}</think>\n\n{C}{END}")
    result = graded(C, R, count=len(native))
    assert (result.exactness, result.ids) == ("ambiguous", native)


def test_a_trimmer_is_believed_only_where_no_newline_can_hide() -> None:
    hides = ids(f"{R}</think>{C}{END}")  # "think." and "think.\n" are as long
    assert graded(C, R, count=len(hides)).exactness == "matched"
    assert graded(C, R, count=len(hides), profile=TRIMMER).exactness == "ambiguous"
    shows = ids(f"I think so</think>Two apples{END}")
    result = graded("Two apples", "I think so", count=len(shows), profile=TRIMMER)
    assert (result.exactness, result.ids) == ("matched", shows)


def test_a_spacing_provider_is_not_believed_to_have_kept_its_spaces() -> None:
    # " 2" is two tokens: a native "2" with one token too many has the count of " 2".
    native = ids(f"{C}</think>2 apples{END}")
    alone = graded(" 2 apples", f" {C}", count=len(native) + 1)
    assert alone.exactness == "matched"
    for profile in (SPACED, Profile(leans_spaced=True)):
        known = graded(" 2 apples", f" {C}", count=len(native) + 1, profile=profile)
        assert known.exactness == "ambiguous"


def test_an_uncounted_end_needs_a_profile() -> None:
    native = ids(f"{R}</think>{C}{END}")
    count = len(native) - 1
    assert graded(C, R, count=count).exactness == "mismatch"
    uncounted = Profile(counts_end=False)
    assert graded(C, R, count=count, profile=uncounted).ids == native
    assert graded(C, R, count=count, profile=uncounted).exactness == "matched"
    assert graded(C, R, count=len(native), profile=uncounted).exactness != "matched"
    disputed = Profile(end_disputed=True)
    assert graded(C, R, count=count, profile=disputed).exactness == "ambiguous"
    cut = ids(f"{R}</think>{C}")
    for profile in (Profile(), uncounted, disputed):
        result = graded(C, R, count=len(cut), finish="length", profile=profile)
        assert (result.exactness, result.ids) == ("matched", cut)


# bad input


@pytest.mark.parametrize("count", [None, 0, -5, True, 3.0, "20"])
def test_without_a_count_nothing_is_verified(count: Any) -> None:
    result = graded(C, R, count=count)
    assert (result.exactness, result.ids) == ("unverified", ids(f"{R}</think>{C}{END}"))


def test_an_absurd_count_is_a_mismatch() -> None:
    assert graded(C, R, count=10**12).exactness == "mismatch"


@pytest.mark.parametrize("place", ["reasoning", "content", "arguments"])
def test_lost_characters_are_never_matched(place: str) -> None:
    texts = {"reasoning": R, "content": C, "arguments": "{}"}
    texts[place] += "\ufffd"
    calls = [{"id": "functions.f:0", "function": {"name": "f", "arguments": texts["arguments"]}}]
    best = graded(texts["content"], texts["reasoning"], calls=calls).ids or []
    for count in (None, len(best), len(best) + 1):
        result = graded(texts["content"], texts["reasoning"], count=count, calls=calls)
        assert result.exactness == "mismatch"


@pytest.mark.parametrize(
    ("content", "reasoning"), [("\ud83d", R), (C, "a\udfffb"), (f"{R}\ud800</think>x", None)]
)
def test_lone_surrogates_have_no_ids(content: str, reasoning: str | None) -> None:
    for count in (None, 1, 20):
        result = graded(content, reasoning, count=count)
        assert (result.exactness, result.ids) == ("mismatch", None)


def test_a_stop_token_within_an_answer_was_typed_not_sampled() -> None:
    text = f"{R}</think>the token {END} ends it"
    typed = [*ids(f"{R}</think>"), *vocabulary().encode_plain(f"the token {END} ends it"), 163586]
    content = f"the token {END} ends it"
    assert graded(content, R, count=len(typed)).ids == typed
    assert graded(content, R, count=len(typed)).exactness == "matched"
    assert graded(content, R, count=len(ids(text)) + 1).exactness != "matched"


@pytest.mark.parametrize("reasoning", [None, "", R])
@pytest.mark.parametrize("content", [None, "", " ", "\n", END, "</think>", "<think>", SECTION[:-9]])
@pytest.mark.parametrize("finish", ["stop", "length", "tool_calls"])
def test_odd_answers_get_a_grade_and_ids_of_the_count_where_matched(
    reasoning: str | None, content: str | None, finish: str
) -> None:
    for count in (None, *range(1, 40)):
        for thinking in (True, False):
            result = graded(content, reasoning, count=count, finish=finish, thinking=thinking)
            assert result.ids is not None
            if result.exactness == "matched":
                assert len(result.ids) == count


@pytest.mark.parametrize(
    "text", ["word " * 80_000, "x" * 400_000, "\n" * 400_000, "请解释\uff0c" * 100_000]
)
def test_huge_answers_get_a_grade(text: str) -> None:
    native = [*ids("</think>"), *vocabulary().encode_plain(text), 163586]
    assert graded(text, None, count=len(native)).ids == native
    assert graded(text, None, count=len(native) + 9).exactness == "mismatch"


ANY = st.lists(
    st.sampled_from([*"ab .\n中1", "<think>", "</think>", END, SECTION, "\ufffd"]), max_size=12
).map("".join)


@given(ANY, ANY | st.none(), st.integers(-1, 60) | st.none(), st.booleans(), st.booleans())
@settings(max_examples=400)
def test_matched_ids_always_have_the_count_and_decode_to_the_text(
    content: str, reasoning: str | None, count: int | None, thinking: bool, cut: bool
) -> None:
    finish = "length" if cut else "stop"
    for profile in (Profile(), SPACED, VERBATIM, TRIMMER):
        result = graded(
            content, reasoning, count=count, finish=finish, thinking=thinking, profile=profile
        )
        if result.exactness != "matched":
            continue
        assert result.ids is not None
        assert len(result.ids) == count
        assert (result.ids[-1] == 163586) == (not cut)
        shown = vocabulary().decode(result.ids).replace(" ", "").replace(END, "")
        # blank reasoning, and what stands before an opening tag, may be the host's own
        inline = content.lstrip() if content.lstrip().startswith("<think>") else content
        thought = reasoning if reasoning and reasoning.strip() else ""
        for given_text in (inline, thought):
            for part in given_text.replace(" ", "").replace(END, "\x00").split("\x00"):
                assert part.replace("<think>", "").replace("</think>", "") in (
                    shown.replace("<think>", "").replace("</think>", "")
                )
