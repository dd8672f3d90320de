"""What `check` says of prompt sources, offline: rows, turns, doubles, tokens."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from check_desk import KIMI, PROMPTS, failures, look, one, sources
from e2e_desk import Desk
from hypothesis import given
from hypothesis import strategies as st

from engine.checks.findings import Level
from engine.checks.tokens import PromptCounter
from engine.feed.prompts import make_prompt, served_messages
from engine.manifest import Endpoint
from engine.tokens.reader import TokenReader
from engine.tokens.vocabulary import load_vocabulary

VOCABULARY = load_vocabulary("kimi-k2.5")
TALK = {
    "messages": [
        {"role": "user", "content": "Who are you?"},
        {"role": "assistant", "content": "Somebody."},
        {"role": "user", "content": "And what else?"},
    ]
}
CHAIN = {
    "messages": [
        {"role": "user", "content": "What is 1+2?"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "functions.add:0",
                    "type": "function",
                    "function": {"name": "add", "arguments": '{"a":1,"b":2}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "functions.add:0", "content": "3"},
    ],
    "tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}],
}


def prompt_of(row: Any) -> Any:
    return make_prompt(row, dataset="A", index=0, turns="all", occurrences={})


def test_a_short_source_fails_with_both_numbers(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    source = desk.source("a.jsonl", [{"prompt": f"Q{n}"} for n in range(7)])
    manifest = desk.manifest({"name": "A", "source": source, "prompts": 12})
    report = look(manifest, offline=True)
    finding = one(report, "rows")
    assert finding.level is Level.FAIL
    assert "12" in finding.text
    assert "7" in finding.text
    assert "--allow-short" in finding.fix
    assert report.exit_code == 2
    assert look(manifest, offline=True, allow_short=True).exit_code == 0


def test_rows_beyond_the_prompt_total_are_left_out(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    source = desk.source("a.jsonl", [{"prompt": f"Q{n}"} for n in range(30)])
    report = look(desk.manifest({"name": "A", "source": source, "prompts": 12}), offline=True)
    assert one(report, "rows").text == "12 of 30 rows; the last 18 are left out"
    assert report.scans[0].rows == 12


def test_a_pilot_looks_at_the_first_rows_only(tmp_path: Path) -> None:
    manifest = sources(tmp_path, ("A", [{"prompt": f"Q{n}"} for n in range(30)]))
    report = look(manifest, offline=True, limit=4)
    assert (report.scans[0].rows, report.scans[0].left) == (4, 4)
    assert "looked at the first 4" in one(report, "rows").text


def test_unreadable_rows_are_named_by_line_and_reason(tmp_path: Path) -> None:
    rows: list[Any] = [{"prompt": "Fine?"}, b"{torn", {"other": 1}, b"", {"prompt": "Fine too?"}]
    desk = Desk(tmp_path)
    source = desk.source("a.jsonl", rows)
    report = look(desk.manifest({"name": "A", "source": source, "prompts": 4}), offline=True)
    finding = one(report, "unreadable")
    assert finding.level is Level.WARN
    assert finding.text.startswith("2 rows of 4 unreadable: line 2: not valid JSON")
    assert "line 3: none of messages" in finding.text
    assert report.scans[0].readable == 2


def test_only_the_first_unreadable_rows_are_named_one_by_one(tmp_path: Path) -> None:
    report = look(sources(tmp_path, ("A", [{"x": 1}] * 40 + [{"prompt": "Q"}])), offline=True)
    finding = one(report, "unreadable")
    assert finding.text.count("line ") == 5
    assert "and 35 more" in finding.text


def test_a_source_without_a_readable_row_fails(tmp_path: Path) -> None:
    report = look(sources(tmp_path, ("A", [{"x": 1}, {"x": 2}])), offline=True)
    assert failures(report) == ["unreadable"]
    assert report.exit_code == 2


@pytest.mark.parametrize(("turns", "asked"), [("all", 5), ("first", 3), ("last", 3)])
def test_generations_follow_turns(tmp_path: Path, turns: str, asked: int) -> None:
    desk = Desk(tmp_path)
    source = desk.source("a.jsonl", [TALK, TALK, {"prompt": "One?"}])
    manifest = desk.manifest({"name": "A", "source": source, "prompts": 3, "turns": turns})
    assert look(manifest, offline=True).scans[0].generations == asked


def test_rows_with_tool_messages_are_done_as_last(tmp_path: Path) -> None:
    manifest = sources(tmp_path, ("A", [CHAIN, TALK]), endpoint=KIMI)
    report = look(manifest, offline=True)
    assert one(report, "tool_messages").text == "1 row with tool messages: done as `last`"
    assert report.scans[0].generations == 1 + 2


def test_doubles_inside_and_across_datasets(tmp_path: Path) -> None:
    rows = [{"prompt": "Same?"}, {"messages": [{"role": "human", "content": "Same?"}]}]
    other = [{"question": "Same?"}, {"prompt": "Same?"}, {"prompt": "Another?"}]
    report = look(sources(tmp_path, ("A", rows), ("B", other)), offline=True)
    first, second = report.scans
    assert (first.doubles, first.shared) == (1, {})
    assert (second.doubles, second.shared) == (1, {"A": 2})
    assert one(report, "shared").dataset == "B"


def test_one_missing_source_does_not_hide_the_others(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    fine = desk.source("a.jsonl", [{"prompt": "Q"}])
    manifest = desk.manifest(
        {"name": "A", "source": "nowhere.jsonl", "prompts": 1},
        {"name": "B", "source": fine, "prompts": 1},
    )
    report = look(manifest, offline=True)
    assert "no such file" in one(report, "source", "A").text
    assert one(report, "rows", "B").level is Level.OK
    assert report.exit_code == 2


def test_a_truncated_archive_fails_with_its_reason(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    text = "".join(json.dumps({"prompt": f"Q{n} {'x' * n}"}) + "\n" for n in range(500))
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(text.encode())[:-200])
    report = look(
        desk.manifest({"name": "A", "source": "a.jsonl.gz", "prompts": 500}), offline=True
    )
    assert "cannot be read on" in one(report, "source").text
    assert report.exit_code == 2


def test_hub_datasets_are_not_read_offline(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    manifest = desk.manifest({"name": "A", "source": "hf:some/set:train", "prompts": 5})
    report = look(manifest, offline=True)
    assert one(report, "source").level is Level.WARN
    assert report.exit_code == 0


def test_an_unknown_dataset_is_a_usage_error(tmp_path: Path) -> None:
    from engine.errors import UsageError

    with pytest.raises(UsageError, match="no such dataset"):
        look(sources(tmp_path, ("A", [{"prompt": "Q"}])), offline=True, only=("B",))


def test_tokens_are_estimated_without_a_vocabulary_and_said_to_be(tmp_path: Path) -> None:
    report = look(sources(tmp_path, ("A", [{"prompt": "word " * 400}])), offline=True)
    assert not report.scans[0].exact
    assert 400 < report.scans[0].tokens.first < 600
    assert "estimated" in one(report, "tokenizer").text


def test_tokens_are_those_of_the_prompt_as_served(tmp_path: Path) -> None:
    report = look(sources(tmp_path, ("A", [TALK, CHAIN]), endpoint=KIMI), offline=True, show=2)
    talk, chain = report.scans[0].shown
    reader = TokenReader(VOCABULARY)
    asked = reader.prompt(served_messages(prompt_of(TALK), 0, []))
    assert talk.prompt_ids == asked
    assert talk.prompt_text == VOCABULARY.decode(asked)
    # declared in the text, as tools_mode "raw" does it: the same ids as with the parameter
    assert chain.prompt_ids == reader.prompt(CHAIN["messages"], CHAIN["tools"])
    assert report.scans[0].tokens.first == talk.tokens + chain.tokens


def test_the_longest_prompt_is_named_by_its_index(tmp_path: Path) -> None:
    rows = [{"prompt": "short"}, {"prompt": "long " * 99}, {"prompt": "short too"}]
    tokens = look(sources(tmp_path, ("A", rows), endpoint=KIMI), offline=True).scans[0].tokens
    assert tokens.longest_index == 1
    assert tokens.longest > 99


def test_prompts_that_no_context_holds_are_counted(tmp_path: Path) -> None:
    rows = [{"prompt": "word " * 262_000}, {"prompt": "fine"}]
    manifest = sources(tmp_path, ("A", rows), endpoint=KIMI, sampling={"max_tokens": 300})
    finding = one(look(manifest, offline=True), "context")
    assert finding.level is Level.WARN
    assert finding.text.startswith("1 of 2 prompts too long for the context of 262,144")


def test_what_the_template_cannot_take_is_a_warning(tmp_path: Path) -> None:
    rows = [b'{"prompt": "\\ud800"}', {"prompt": "fine"}]
    desk = Desk(tmp_path)
    source = desk.source("a.jsonl", rows)
    manifest = desk.manifest({"name": "A", "source": source, "prompts": 2}, endpoint=KIMI)
    report = look(manifest, offline=True, show=2)
    assert "lone surrogate" in one(report, "unservable").text
    assert [served.messages[0]["content"] for served in report.scans[0].shown] == ["fine"]


ROLES = st.sampled_from(["user", "assistant", "system"])
MESSAGES = st.lists(
    st.tuples(ROLES, st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)),
    min_size=1,
    max_size=8,
)


@given(MESSAGES, st.booleans())
def test_turns_counted_one_after_the_other_are_those_encoded_whole(
    said: list[tuple[str, str]], thinking: bool
) -> None:
    row = {"messages": [{"role": r, "content": c + "."} for r, c in said] + TALK["messages"]}
    endpoint = Endpoint(base_url="http://h/v1", model="m", tokenizer="kimi-k2.5", thinking=thinking)
    prompt = prompt_of(row)
    reader = TokenReader(VOCABULARY, thinking=thinking)
    whole = [
        len(reader.prompt(served_messages(prompt, turn, [""] * turn))) for turn in prompt.turns
    ]
    assert list(PromptCounter(endpoint, VOCABULARY).measure(prompt).tokens) == whole


@pytest.mark.skipif(not PROMPTS.is_dir(), reason="needs the prompt sets in ../shared/prompts")
def test_the_real_sets_are_read_whole(tmp_path: Path) -> None:
    for path in PROMPTS.glob("*.*"):
        shutil.copy(path, tmp_path)
    report = look(tmp_path / "manifest.toml", offline=True)
    assert report.exit_code == 0
    by_name = {scan.name: scan for scan in report.scans}
    assert by_name["B6_gsm8k"].rows == 7473
    assert by_name["B5_mt_bench"].generations == 160
    assert all(scan.exact and not scan.invalid for scan in report.scans)
