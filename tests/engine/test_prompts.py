"""Source rows as prompts: every accepted form, its turns, its content hash, its doubles."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from engine_parts import prompt_of
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.disk.jsonlines import dump
from engine.feed.prompts import (
    Prompt,
    RowError,
    make_prompt,
    normalise,
    served_messages,
)

SHARED = Path(__file__).parents[2].parent / "shared"
TOOL = {"type": "function", "function": {"name": "read", "parameters": {}}}
CALL = {"id": "functions.read:0", "type": "function", "function": {"name": "read"}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


@pytest.mark.parametrize(
    ("row", "messages"),
    [
        ({"messages": [user("a")]}, [user("a")]),
        ({"conversations": [user("a"), assistant("b")]}, [user("a"), assistant("b")]),
        ({"conversations": [{"from": "human", "value": "a"}]}, [user("a")]),
        (
            {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]},
            [user("a"), assistant("b")],
        ),
        ({"messages": [{"from": "User", "content": "a"}]}, [user("a")]),
        (
            {"messages": [{"role": "developer", "content": "s"}, user("a")]},
            [system("s"), user("a")],
        ),
        ({"prompt": "a"}, [user("a")]),
        ({"prompt": [user("a")]}, [user("a")]),
        ({"question": "a"}, [user("a")]),
        ({"instruction": "a"}, [user("a")]),
        ({"instruction": "a", "input": "b"}, [user("a\n\nb")]),
        ({"instruction": "a", "input": ""}, [user("a")]),
        ({"instruction": "a", "input": None}, [user("a")]),
        ({"turns": ["a", "b"]}, [user("a"), user("b")]),
        ({"prompt": "a", "system": "s"}, [system("s"), user("a")]),
        ({"messages": [system("own"), user("a")], "system": "s"}, [system("own"), user("a")]),
        ({"turns": ["a"], "system": ""}, [user("a")]),
        # rows of data sets with mixed columns hold null where a column does not apply
        ({"messages": None, "prompt": None, "question": "a"}, [user("a")]),
        ({"conversations": None, "prompt": None, "instruction": "a"}, [user("a")]),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}]}]}, [user("a")]),
        ({"messages": [{"role": "user", "content": ["a", "b"]}]}, [user("ab")]),
        ({"prompt": "  a\n"}, [user("  a\n")]),
        ({"question_id": 81, "category": "x", "turns": ["a"], "reference": ["z"]}, [user("a")]),
    ],
)
def test_every_accepted_form_becomes_messages(row: Any, messages: list[Any]) -> None:
    assert normalise(row) == (messages, None)


def test_what_else_the_model_is_given_stays_with_its_message() -> None:
    row = {
        "messages": [
            {"role": "user", "content": "a", "name": "Ann", "weight": 3},
            {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning": "hm"},
            {"role": "function", "content": "r", "tool_call_id": CALL["id"]},
        ]
    }
    messages, _ = normalise(row)
    assert messages == [
        {"role": "user", "content": "a", "name": "Ann"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [CALL],
            "reasoning_content": "hm",
        },
        {"role": "tool", "content": "r", "tool_call_id": CALL["id"]},
    ]


@pytest.mark.parametrize(
    ("tools", "normal"),
    [
        ([TOOL], [TOOL]),
        (json.dumps([TOOL]), [TOOL]),
        ([{"name": "read", "parameters": {}}], [TOOL]),
        (None, None),
        ([], None),
        ("", None),
        ("[]", None),
    ],
)
def test_tools_are_a_list_or_a_json_string(tools: Any, normal: Any) -> None:
    assert normalise({"prompt": "a", "tools": tools}) == ([user("a")], normal)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("text", "the row is text, not an object"),
        (["a"], "the row is a list, not an object"),
        (None, "the row is null, not an object"),
        (7, "the row is a number, not an object"),
        (True, "the row is a boolean, not an object"),
        ({}, "none of messages, conversations, turns, prompt, question, instruction"),
        ({"text": "a"}, "none of messages"),
        ({"messages": "a"}, "messages is text, not a list"),
        ({"turns": {"0": "a"}}, "turns is an object, not a list"),
        ({"messages": []}, "no user message"),
        ({"turns": []}, "no user message"),
        ({"messages": [assistant("a")]}, "no user message"),
        ({"messages": ["a"]}, "a message is text, not an object"),
        ({"messages": [{"role": "narrator", "content": "a"}]}, "unknown role 'narrator'"),
        ({"messages": [{"content": "a"}]}, "unknown role None"),
        ({"messages": [{"role": "user", "content": ""}]}, "a user message is empty"),
        (
            {"messages": [{"role": "user", "content": None}]},
            "the content of a user message is null",
        ),
        ({"messages": [user("a"), {"role": "assistant", "content": None}]}, "is null, not text"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "images are not"),
        ({"prompt": ""}, "prompt is empty"),
        ({"prompt": " \n"}, "prompt is empty"),
        ({"prompt": 3}, "prompt is a number, not text"),
        ({"question": {"a": 1}}, "question is an object, not text"),
        ({"turns": ["a", ""]}, "a turn is empty"),
        ({"turns": ["a", 5]}, "a turn is a number, not text"),
        ({"prompt": "a", "tools": "[{"}, "tools is not valid JSON"),
        ({"prompt": "a", "tools": {"name": "x"}}, "tools is not a list of objects"),
        ({"prompt": "a", "tools": ["x"]}, "tools is not a list of objects"),
    ],
)
def test_a_row_that_is_no_prompt_says_why(row: Any, words: str) -> None:
    with pytest.raises(RowError) as caught:
        normalise(row)
    assert words in str(caught.value)


def test_a_hostile_role_cannot_reach_a_terminal() -> None:
    with pytest.raises(RowError) as caught:
        normalise({"messages": [{"role": "\x1b[31m" + "x" * 9999, "content": "a"}]})
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 120


# --- the hash ---------------------------------------------------------------------------------

CANONICAL = (
    '{"messages":[{"content":"Du bist höflich.","role":"system"},'
    '{"content":"Grüß Gott 👋\\n","role":"user"}],"tools":null}'
)


def test_the_hash_is_sha256_of_the_canonical_json_written_by_hand() -> None:
    prompt = prompt_of({"system": "Du bist höflich.", "prompt": "Grüß Gott 👋\n"})
    digest = hashlib.sha256(CANONICAL.encode()).hexdigest()
    assert prompt.hash == digest
    # from `printf %s "$CANONICAL" | sha256sum`
    assert digest == "bc5ef023c9ab6886e8fa255ecb4b4277c899e4ca93a139a7671c478b0d0bc3fd"
    assert prompt.key == digest[:16] + ".0"
    assert prompt.id(2) == f"B6/{digest[:16]}.0#2"


def test_the_hash_covers_tools_and_tool_calls_with_sorted_keys() -> None:
    tool = '{"function":{"name":"read","parameters":{}},"type":"function"}'
    text = '{"messages":[{"content":"a","role":"user"}],"tools":[' + tool + "]}"
    backwards = {"function": {"parameters": {}, "name": "read"}, "type": "function"}
    prompt = prompt_of({"tools": [backwards], "prompt": "a"})
    assert prompt.hash == hashlib.sha256(text.encode()).hexdigest()


def test_the_hash_knows_content_only() -> None:
    rows: list[Any] = [
        {"messages": [user("a"), user("b")]},
        {"turns": ["a", "b"], "question_id": 7, "category": "x"},
        {"conversations": [{"from": "human", "value": "a"}, {"value": "b", "from": "human"}]},
        {"id": "other", "turns": ["a", "b"], "tools": "[]"},
    ]
    prompts = [
        prompt_of(row, index=index, turns=turns, dataset=f"D{index}")
        for index, row in enumerate(rows)
        for turns in ("all", "first", "last")
    ]
    assert len({prompt.hash for prompt in prompts}) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"turns": ["a"]},
        {"turns": ["a", "b "]},
        {"turns": ["b", "a"]},
        {"turns": ["a", "b"], "system": "s"},
        {"turns": ["a", "b"], "tools": [TOOL]},
        {"messages": [user("a"), assistant(""), user("b")]},
    ],
)
def test_other_content_has_another_hash(other: Any) -> None:
    assert prompt_of(other).hash != prompt_of({"turns": ["a", "b"]}).hash


def test_lone_surrogates_can_be_hashed_and_served() -> None:
    prompt = prompt_of("broken \ud83d emoji")
    text = '{"messages":[{"content":"broken \ud83d emoji","role":"user"}],"tools":null}'
    assert prompt.hash == hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    assert json.loads(dump(served_messages(prompt, 0, [])))[0]["content"] == "broken \ud83d emoji"


@settings(deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c"]), max_size=30), st.randoms())
def test_exact_doubles_are_numbered_and_any_order_gives_the_same_keys(
    texts: list[str], random: Any
) -> None:
    def keys(rows: list[str]) -> list[str]:
        seen: dict[bytes, int] = {}
        return [
            make_prompt({"prompt": r}, dataset="D", index=i, turns="all", occurrences=seen).key
            for i, r in enumerate(rows)
        ]

    moved = list(texts)
    random.shuffle(moved)
    assert sorted(keys(texts)) == sorted(keys(moved))
    assert len(set(keys(texts))) == len(texts)
    for text in set(texts):
        numbers = [
            key.partition(".")[2] for key, t in zip(keys(texts), texts, strict=True) if t == text
        ]
        assert numbers == [str(number) for number in range(len(numbers))]


# --- turns ------------------------------------------------------------------------------------

CHAT = {
    "messages": [
        system("s"),
        assistant("greeting"),
        user("u0"),
        assistant("theirs 0"),
        user("u1"),
        assistant("theirs 1"),
        user("u2"),
    ]
}


def test_all_answers_each_user_turn_on_top_of_our_own_answers() -> None:
    prompt = prompt_of(CHAT, turns="all")
    assert prompt.turns == (0, 1, 2)
    before = [system("s"), assistant("greeting"), user("u0")]
    assert served_messages(prompt, 0, []) == before
    assert served_messages(prompt, 1, ["ours 0"]) == [*before, assistant("ours 0"), user("u1")]
    assert served_messages(prompt, 2, ["ours 0", "ours 1"]) == [
        *before,
        assistant("ours 0"),
        user("u1"),
        assistant("ours 1"),
        user("u2"),
    ]


def test_first_answers_the_first_user_turn_only() -> None:
    prompt = prompt_of(CHAT, turns="first")
    assert prompt.turns == (0,)
    assert served_messages(prompt, 0, []) == [system("s"), assistant("greeting"), user("u0")]


def test_last_keeps_the_sources_own_history() -> None:
    prompt = prompt_of({"messages": [*CHAT["messages"], assistant("theirs 2")]}, turns="last")
    assert prompt.turns == (2,)
    assert served_messages(prompt, 2, []) == CHAT["messages"]


@pytest.mark.parametrize("turns", ["all", "first", "last"])
def test_a_single_turn_is_the_same_in_every_mode(turns: str) -> None:
    prompt = prompt_of({"messages": [user("a"), assistant("b")]}, turns=turns)
    assert prompt.turns == (0,)
    assert served_messages(prompt, 0, []) == [user("a")]


TOOL_CHAT = [
    user("read it"),
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "content": "text", "tool_call_id": CALL["id"]},
]


@pytest.mark.parametrize("turns", ["all", "first", "last"])
def test_a_row_with_tool_messages_is_done_as_last(turns: str) -> None:
    row = {"messages": [*TOOL_CHAT, assistant("done"), user("and now?"), assistant("bye")]}
    prompt = prompt_of(row, turns=turns)
    assert (prompt.mode, prompt.turns) == ("last", (1,))
    assert served_messages(prompt, 1, []) == row["messages"][:-1]


@pytest.mark.parametrize("turns", ["all", "first", "last"])
def test_an_open_tool_chain_stays_open(turns: str) -> None:
    prompt = prompt_of({"messages": TOOL_CHAT}, turns=turns)
    assert prompt.turns == (0,)
    assert served_messages(prompt, 0, []) == TOOL_CHAT


def test_a_closed_tool_chain_is_asked_at_its_last_user_turn() -> None:
    prompt = prompt_of({"messages": [*TOOL_CHAT, assistant("done")]})
    assert served_messages(prompt, 0, []) == [user("read it")]


def test_mt_bench_asks_both_turns_of_a_real_row() -> None:
    prompt = prompt_of({"turns": ["Write.", "Rewrite."], "question_id": 81})
    assert prompt.turns == (0, 1)
    assert served_messages(prompt, 1, ["Text."]) == [
        user("Write."),
        assistant("Text."),
        user("Rewrite."),
    ]


MESSAGES = st.lists(
    st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["system", "user", "assistant", "tool"]),
        st.text(min_size=1).filter(lambda text: bool(text.strip())),
    ),
    min_size=1,
    max_size=8,
)


@settings(deadline=None)
@given(MESSAGES, st.sampled_from(["all", "first", "last"]))
def test_whatever_is_served_ends_on_what_is_to_be_answered(rows: Any, turns: str) -> None:
    if not any(message["role"] == "user" for message in rows):
        with pytest.raises(RowError):
            prompt_of({"messages": rows}, turns=turns)
        return
    prompt: Prompt = prompt_of({"messages": rows}, turns=turns)
    users = [m["content"] for m in rows if m["role"] == "user"]
    for count, turn in enumerate(prompt.turns):
        served = served_messages(prompt, turn, [f"ours {i}" for i in range(count)])
        assert served[-1]["role"] in {"user", "tool"}
        asked = [m["content"] for m in served if m["role"] == "user"]
        assert asked == users[: turn + 1]
        ours = [m for m in served if m["role"] == "assistant" and m["content"].startswith("ours")]
        assert len(ours) >= (count if prompt.mode == "all" else 0)


@pytest.mark.parametrize(
    ("name", "rows", "generations"),
    [
        ("humaneval", 80, 80),
        ("sum", 80, 80),
        ("mt_bench", 80, 160),
        ("synthetic_conversations_1k", 1000, 1000),
        ("sample_conversations", 1001, 1001),
        ("tool_use_conversation", 1, 1),
    ],
)
def test_the_real_sets_are_read_whole(name: str, rows: int, generations: int) -> None:
    path = SHARED / "prompts" / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip("the shared prompt sets are not beside this checkout")
    turns = {"synthetic_conversations_1k": "last", "sample_conversations": "first"}.get(name, "all")
    prompts = [prompt_of(json.loads(line), turns=turns) for line in path.read_text().splitlines()]
    assert len(prompts) == rows
    assert sum(len(prompt.turns) for prompt in prompts) == generations
