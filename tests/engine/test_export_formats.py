"""What goes into each trainer's file: values, the boundaries of masks, and what stays out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from export_cases import (
    CALL,
    SECTION,
    TOOL,
    example_of,
    kit_of,
    made,
    row_of,
    said,
    system,
    user,
)
from kimi_cases import ids, shared, vocabulary

from engine.export.catalogue import FORMATS, check_record
from engine.export.example import LeftOutError
from engine.tokens import kimi

TEXTS = ["specforge-text", "torchspec", "modelopt", "eagle", "angelslim", "automodel"]
CONVERSATIONS = TEXTS[1:]
HISTORY = (user("a"), said("b"), user("c"))
RETURN = {"role": "tool", "tool_call_id": "functions.weather:0", "content": "rain"}
CHAIN = (user("Weather?"), said("Let me see.", tool_calls=[CALL], reasoning_content="Ask."), RETURN)
ANSWER = "<think>Two and two.</think>It is 4."


def why_not(name: str, row: dict[str, Any], *args: Any) -> str:
    with pytest.raises(LeftOutError) as error:
        made(name, row, *args)
    return str(error.value)


class TestTokens:
    def test_specforge_supervises_the_prefill_and_speculators_does_not(self) -> None:
        row = row_of()
        prompt, completion = row["prompt_ids"], row["completion_ids"]
        assert prompt[-1] == kimi.THINK
        assert completion[-1] == kimi.IM_END
        theirs = made("specforge", row)
        assert theirs["input_ids"] == prompt + completion
        assert theirs["loss_mask"] == [0] * (len(prompt) - 1) + [1] * (len(completion) + 1)
        assert made("speculators", row) == {
            "input_ids": prompt + completion,
            "loss_mask": [0] * len(prompt) + [1] * len(completion),
        }

    def test_without_thinking_both_tags_are_prefill(self) -> None:
        kit = kit_of(thinking=False)
        row = row_of(reasoning=None, kit=kit)
        assert row["prompt_ids"][-2:] == [kimi.THINK, kimi.END_THINK]
        assert sum(made("specforge", row, kit)["loss_mask"]) == len(row["completion_ids"]) + 2
        assert sum(made("speculators", row, kit)["loss_mask"]) == len(row["completion_ids"])

    @pytest.mark.parametrize("name", ["standard", "reasoning"])
    def test_each_turn_is_masked_as_specforges_own_parser_masks_it(self, name: str) -> None:
        case = json.loads(shared(f"golden/kimi_k2_thinking_{name}.json"))
        sequence, expected = case["input_ids"], case["loss_mask"]
        starts = [place for place, token in enumerate(sequence) if token == kimi.THINK]
        masked = [0] * len(sequence)
        for start in starts:
            end = sequence.index(kimi.IM_END, start) + 1
            ours = {
                "prompt_ids": sequence[: start + 1],
                "completion_ids": sequence[start + 1 : end],
            }
            record = made("specforge", row_of() | ours)
            assert record["input_ids"] == sequence[:end]
            for place, bit in enumerate(record["loss_mask"]):
                masked[place] |= bit
        assert masked == expected

    def test_k2_thinking_writes_its_own_tag(self) -> None:
        kit = kit_of(tokenizer="kimi-k2-thinking")
        row = row_of(kit=kit)
        row["completion_ids"] = ids("<think>Two.</think>4<|im_end|>")
        first = len(row["prompt_ids"])
        assert made("specforge", row, kit)["loss_mask"].index(1) == first
        assert made("specforge", row, kit) == made("speculators", row, kit)

    def test_a_row_cut_by_length_has_no_end(self) -> None:
        row = row_of("It is", finish_reason="length", flags=["truncated"])
        assert made("speculators", row)["input_ids"][-1] != kimi.IM_END

    @pytest.mark.parametrize("name", ["specforge", "speculators"])
    def test_longer_rows_keep_their_first_tokens(self, name: str) -> None:
        row = row_of()
        whole = made(name, row)
        cut = made(name, row, None, len(row["prompt_ids"]) + 3)
        assert cut["input_ids"] == whole["input_ids"][: len(row["prompt_ids"]) + 3]
        assert len(cut["loss_mask"]) == len(cut["input_ids"])
        assert made(name, row, None, 10_000) == whole
        assert why_not(name, row, None, 2) == "zero_mask"

    @pytest.mark.parametrize("name", ["specforge", "speculators"])
    def test_rows_without_ids_or_without_an_answer_stay_out(self, name: str) -> None:
        assert why_not(name, row_of() | {"completion_ids": None}) == "no_ids"
        assert why_not(name, row_of() | {"completion_ids": []}) == "zero_mask"

    def test_prompt_ids_that_a_row_lacks_are_rendered(self) -> None:
        row = row_of()
        assert made("specforge", row | {"prompt_ids": None}) == made("specforge", row)


class TestConversations:
    def test_one_question_and_its_answer(self) -> None:
        row = row_of()
        asked, answered = user("2+2?"), said(ANSWER)
        assert made("specforge-text", row) == {
            "id": row["id"],
            "text": (
                "<|im_user|>user<|im_middle|>2+2?<|im_end|><|im_assistant|>assistant<|im_middle|>"
                f"{ANSWER}<|im_end|>"
            ),
        }
        assert made("torchspec", row) == {"id": row["id"], "conversations": [asked, answered]}
        assert made("angelslim", row) == {"id": row["id"], "conversations": [asked, answered]}
        assert made("eagle", row) == {
            "id": row["id"],
            "conversations": [
                {"from": "human", "value": "2+2?"},
                {"from": "gpt", "value": ANSWER},
            ],
        }

    def test_model_optimizer_gets_an_id_that_can_name_a_file(self) -> None:
        row = row_of()
        record = made("modelopt", row)
        assert record["conversation_id"] == row["id"].replace("/", "__").replace("#", "-")
        assert "/" not in record["conversation_id"]
        assert record["messages"] == record["conversations"] == [user("2+2?"), said(ANSWER)]

    def test_automodel_gets_the_reasoning_as_a_field(self) -> None:
        record = made("automodel", row_of())
        answer = record["messages"][-1]
        assert (answer["reasoning_content"], answer["content"]) == ("Two and two.", "It is 4.")
        assert record["tools"] == "[]"
        assert {tuple(message) for message in record["messages"]} == {
            ("role", "content", "name", "reasoning_content", "tool_calls", "tool_call_id")
        }

    def test_the_text_comes_from_the_ids_not_from_the_host(self) -> None:
        spaced = row_of() | {"reasoning": " Two and two. ", "content": " It is 4."}
        inline = row_of() | {"reasoning": None, "content": "Two and two.</think>It is 4."}
        for name in TEXTS:
            assert made(name, spaced) == made(name, row_of()) == made(name, inline)

    def test_an_answer_without_reasoning_has_no_tags(self) -> None:
        off = kit_of(thinking=False)
        for kit in (kit_of(), off):
            row = row_of(reasoning=None, kit=kit)
            for name in ("torchspec", "modelopt"):
                key = "messages" if name == "modelopt" else "conversations"
                assert made(name, row, kit)[key][-1] == said("It is 4.")

    def test_a_system_message_is_the_end_of_eagles_run_only(self) -> None:
        row = row_of(messages=(system("Be brief."), user("2+2?")))
        assert why_not("eagle", row) == "system_message"
        expected = [system("Be brief."), user("2+2?"), said(ANSWER)]
        for name in ("torchspec", "angelslim"):
            assert made(name, row)["conversations"] == expected

    def test_history_stays_as_it_was_served(self) -> None:
        row = row_of(messages=HISTORY)
        expected = [*HISTORY, said(ANSWER)]
        assert made("torchspec", row)["conversations"] == expected
        assert [turn["from"] for turn in made("eagle", row)["conversations"]] == [
            *("human", "gpt", "human", "gpt")
        ]

    @pytest.mark.parametrize(
        "messages",
        [
            (user("a"), user("b")),
            (said("hello"), user("a")),
            (user("a"), system("b"), user("c")),
            (user("a"), said("b"), said("c"), user("d")),
        ],
    )
    def test_roles_that_do_not_alternate_stay_out_of_strict_files(self, messages: Any) -> None:
        row = row_of(messages=messages)
        assert why_not("eagle", row) == why_not("angelslim", row) == "not_alternating"

    def test_angelslim_would_drop_blank_messages(self) -> None:
        assert why_not("angelslim", row_of(messages=(user("a"), said(" "), user("c")))) == (
            "blank_message"
        )

    @pytest.mark.parametrize("name", TEXTS)
    def test_longer_conversations_stay_out(self, name: str) -> None:
        row = row_of()
        length = len(row["prompt_ids"]) + len(row["completion_ids"])
        assert made(name, row, None, length) == made(name, row)
        assert why_not(name, row, None, length - 1) == "too_long"
        assert why_not(name, row | {"completion_ids": None}, None, length) == "no_ids"


class TestTools:
    @pytest.mark.parametrize("mode", ["raw", "api"])
    def test_both_modes_give_automodel_the_same(self, mode: str) -> None:
        kit = kit_of(tools_mode=mode)
        row = row_of(f"Let me see.{SECTION}", tools=[TOOL], kit=kit)
        record = made("automodel", row, kit)
        assert [message["role"] for message in record["messages"]] == ["user", "assistant"]
        assert json.loads(record["tools"]) == [TOOL]
        answer = record["messages"][-1]
        assert (answer["content"], answer["tool_calls"]) == ("Let me see.", [CALL])
        declared = made("modelopt", row, kit)["messages"]
        assert [turn["role"] for turn in declared] == ["tool_declare", "user", "assistant"]
        assert declared[-1]["content"] == f"<think>Two and two.</think>Let me see.{SECTION}"

    @pytest.mark.parametrize("mode", ["raw", "api"])
    @pytest.mark.parametrize("name", ["torchspec", "eagle", "angelslim"])
    def test_trainers_without_tools_do_not_get_them(self, name: str, mode: str) -> None:
        kit = kit_of(tools_mode=mode)
        assert why_not(name, row_of(tools=[TOOL], kit=kit), kit) == "tools"

    @pytest.mark.parametrize(
        "section",
        [
            SECTION[:-10],
            SECTION + " ",
            SECTION.replace("functions.weather:0", "call_1"),
            SECTION.replace("<|tool_call_end|>", "<|tool_call_end|>\n"),
        ],
    )
    def test_a_section_that_would_be_rebuilt_otherwise_stays_text(self, section: str) -> None:
        row = row_of(f"See.{section}", tools=[TOOL])
        answer = made("automodel", row)["messages"][-1]
        assert (answer["content"], answer["tool_calls"]) == (f"See.{section}", [])

    def test_a_section_that_ends_the_reasoning_stays_inside_it(self) -> None:
        row = row_of() | {"completion_ids": ids(f"I need it.{SECTION}<|im_end|>")}
        for name in ("torchspec", "modelopt"):
            key = "messages" if name == "modelopt" else "conversations"
            assert made(name, row)[key][-1]["content"] == f"<think>I need it.{SECTION}"

    def test_an_open_chain_keeps_its_reasoning(self) -> None:
        row = row_of("It rains.", messages=CHAIN)
        turns = made("modelopt", row)["messages"]
        assert turns[1]["content"] == f"<think>Ask.</think>Let me see.{SECTION}"
        assert turns[2] == {"role": "tool", "content": "## Return of functions.weather:0\nrain"}
        assert why_not("torchspec", row) == "renders_otherwise"
        bare = [{k: v for k, v in m.items() if k != "reasoning_content"} for m in CHAIN]
        assert made("torchspec", row_of("It rains.", messages=bare))["conversations"][1:3] == [
            said(f"Let me see.{SECTION}"),
            {"role": "tool", "content": "## Return of functions.weather:0\nrain"},
        ]
        assert why_not("eagle", row) == why_not("angelslim", row) == "tools"

    def test_arguments_are_json_whatever_the_source_had(self) -> None:
        call = {**CALL, "function": {"name": "weather", "arguments": {"city": "Zürich"}}}
        row = row_of("It rains.", messages=(user("?"), said(None, tool_calls=[call]), RETURN))
        (given,) = made("automodel", row)["messages"][1]["tool_calls"]
        assert given["function"]["arguments"] == '{"city": "Zürich"}'

    def test_a_return_without_an_id_ends_automodels_run(self) -> None:
        nameless = {"role": "tool", "content": "rain"}
        row = row_of("It rains.", messages=(user("?"), said(None, tool_calls=[CALL]), nameless))
        assert why_not("automodel", row) == "tool_without_id"


class TestOddRows:
    def test_names_that_a_trainer_would_lose_stay_out(self) -> None:
        named = row_of(messages=({**user("2+2?"), "name": "ada"},))
        assert why_not("torchspec", named) == why_not("modelopt", named) == "names"
        assert made("automodel", named)["messages"][0]["name"] == "ada"

    def test_torchspecs_own_marker_for_images_stays_out(self) -> None:
        assert why_not("torchspec", row_of(messages=(user("See <|image|>"),))) == (
            "renders_otherwise"
        )

    def test_history_with_a_thought_in_it_stays_out_where_it_would_be_stripped(self) -> None:
        told = row_of(messages=(user("a"), said("<think>x</think>b"), user("c")))
        assert why_not("torchspec", told) == why_not("modelopt", told) == "renders_otherwise"

    def test_a_prompt_of_another_template_stays_out_of_what_renders_it_again(self) -> None:
        injected = ids("<|im_system|>system<|im_middle|>You are Kimi.<|im_end|>")
        row = row_of()
        row["prompt_ids"] = [*injected, *row["prompt_ids"]]
        for name in ("torchspec", "modelopt", "automodel"):
            assert why_not(name, row) == "renders_otherwise"
        assert "You are Kimi." in made("specforge-text", row)["text"]
        assert made("specforge", row)["input_ids"][: len(injected)] == injected

    def test_without_a_vocabulary_the_fields_are_taken_as_they_came(self) -> None:
        kit = kit_of(tokenizer="none")
        row = row_of(kit=kit)
        assert made("torchspec", row, kit)["conversations"] == [user("2+2?"), said(ANSWER)]
        assert made("eagle", row, kit)["conversations"][1]["value"] == ANSWER
        assert why_not("specforge-text", row, kit) == "no_prompt"
        assert why_not("specforge", row, kit) == "no_ids"
        plain = row_of(reasoning=None, kit=kit)
        assert made("angelslim", plain, kit)["conversations"][1] == said("It is 4.")


@pytest.mark.parametrize("name", list(FORMATS))
def test_every_record_is_one_that_reading_back_accepts(name: str) -> None:
    record = made(name, row_of())
    check_record(record, FORMATS[name])
    check_record(json.loads(json.dumps(record)), FORMATS[name])
    with pytest.raises(ValueError, match="keys"):
        check_record(record | {"more": 1}, FORMATS[name])


@pytest.mark.parametrize(
    ("given", "mask"),
    [([1, 2], [0]), ([], []), ([1, -2], [0, 1]), ([1, "2"], [0, 1]), ([1, 2], [0, 2])],
)
def test_reading_back_refuses_ids_and_masks_that_are_none(given: Any, mask: Any) -> None:
    with pytest.raises(ValueError, match=r"mask|id"):
        check_record({"input_ids": given, "loss_mask": mask}, FORMATS["specforge"])


def test_parquet_holds_ids_and_where_they_come_from() -> None:
    row = row_of(index=7, turn=1)
    record = made("parquet", row)
    assert record["input_ids"] == row["prompt_ids"] + row["completion_ids"]
    assert (record["dataset"], record["index"], record["turn"]) == ("B6", 7, 1)
    assert (record["exactness"], record["flags"]) == ("matched", [])
    assert record["messages"] == made("automodel", row)["messages"]


def test_a_text_may_encode_to_other_ids_than_were_sampled() -> None:
    row = row_of()
    assert not example_of(row, exactness="engine").resplit()
    split = vocabulary().encode("Tw") + vocabulary().encode("o and two.</think>It is 4.<|im_end|>")
    assert vocabulary().decode(split) == vocabulary().decode(row["completion_ids"])
    assert example_of(row | {"completion_ids": split}, exactness="engine").resplit()
