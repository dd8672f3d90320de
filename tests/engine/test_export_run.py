"""From real runs to training files: the ids that go out are those that the model sampled."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_desk import Desk
from export_cases import kit_of
from export_runs import distorted, served
from jinja_generation import render
from kimi_cases import vocabulary

from engine.audits.verify import verify_run
from engine.audits.workers import Inline
from engine.export.catalogue import FORMATS
from engine.export.job import Request, export_run
from engine.export.selection import selection_of
from engine.fleet.runs import open_runs
from engine.tokens import kimi
from engine.tokens.tool_declaration import declare_tools

Record = dict[str, Any]
TEXT_FORMATS = ["specforge-text", "torchspec", "modelopt", "automodel"]


def export(
    desk: Desk, to: str, name: str = "out.jsonl", **more: Any
) -> tuple[Record, list[Record]]:
    """(the sidecar, the records) of an export of a desk's run."""
    folder, out = desk.files.folder, desk.folder / "exports" / to / name
    selection = selection_of(more.pop("include", ()), more.pop("max_length", None))
    request = Request(folder, FORMATS[to], out, selection, **more)
    meta = export_run(request, open_runs([folder]).manifest, Inline(kit_of()))
    paths = [out.with_name(file["name"]) for file in meta["files"]]
    return meta, [json.loads(line) for path in paths for line in path.read_text().splitlines()]


def by_text(record: Record) -> str:
    return vocabulary().decode(record["input_ids"])


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with distorted(tmp_path_factory.mktemp("distorted")) as (desk, _):
        yield desk


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The same model asked the same, on a server that returns what it sampled."""
    with served(tmp_path_factory.mktemp("truth"), "vllm", singles=800) as (desk, _):
        yield desk


def test_every_provider_is_graded_by_its_own_ways(desk: Desk) -> None:
    folder = desk.files.folder
    report = verify_run(folder, open_runs([folder]).manifest, Inline(kit_of()), live=False)
    assert report.fault_count == 0, report.faults
    profiles = {name: provider.profile for name, provider in report.providers.items()}
    assert (profiles["Spaced"], profiles["Trimmed"]) == ("spaced", "trimmed")
    words = {name: provider.prompt_words for name, provider in report.providers.items()}
    assert words["Inline"] == "adds 18 prompt tokens: the old default system prompt"
    assert not words["Verbatim"]
    for name in ("Verbatim", "Spaced", "Inline", "Details"):
        tally = report.providers[name].tally
        assert tally.sure > 0.95 * tally.rows, name
    assert {part.name: part.prompts_with_rows for part in report.datasets} == {
        part.name: part.prompts for part in report.datasets
    }


def test_what_goes_out_as_matched_is_what_was_sampled(desk: Desk, truth: Desk) -> None:
    _, sampled = export(truth, "speculators", include=("length",))
    known = {tuple(record["input_ids"]) for record in sampled}
    meta, found = export(desk, "speculators", only=("A_single", "D_last"))
    assert meta["rows_out"] > 500
    assert [record for record in found if tuple(record["input_ids"]) not in known] == []


def test_ids_and_masks_are_prompt_and_completion(desk: Desk) -> None:
    _, theirs = export(desk, "specforge")
    _, ours = export(desk, "speculators")
    texts = {record["text"] for record in export(desk, "specforge-text")[1]}
    assert len(theirs) == len(ours) == len(texts)
    for wide, narrow in zip(theirs, ours, strict=True):
        assert wide["input_ids"] == narrow["input_ids"]
        start = narrow["loss_mask"].index(1)
        assert wide["input_ids"][start - 1] == kimi.THINK
        assert wide["loss_mask"] == [
            *narrow["loss_mask"][: start - 1],
            1,
            *narrow["loss_mask"][start:],
        ]
        assert wide["input_ids"][-1] == kimi.IM_END
        assert by_text(wide) in texts


def test_rows_cut_by_length_go_out_as_ids_without_an_end(desk: Desk) -> None:
    whole, _ = export(desk, "specforge", "whole.jsonl", only=("F_cut",))
    cut = whole["left_out"]["length"]
    assert cut > 4
    wide, found = export(desk, "specforge", only=("F_cut",), include=("length", "reasoning_only"))
    assert wide["rows_out"] == whole["rows_out"] + cut == len(found)
    assert sum(record["input_ids"][-1] != kimi.IM_END for record in found) == cut


@pytest.mark.parametrize("to", TEXT_FORMATS)
def test_texts_encode_to_the_ids_again(desk: Desk, to: str) -> None:
    meta, found = export(desk, to)
    sequences = {tuple(record["input_ids"]) for record in export(desk, "speculators")[1]}
    assert meta["resplit_rows"] == 0
    for record in found:
        text = rendered(desk, to, record)
        assert tuple(vocabulary().encode(text)) in sequences
    expected = {"torchspec": {"tools"}, "specforge-text": set(), "modelopt": set()}
    stayed = set(meta["left_out"]) - {"ambiguous", "mismatch", "length"}
    assert stayed <= expected.get(to, set()) | {"renders_otherwise"}


def rendered(desk: Desk, to: str, record: Record) -> str:
    """What the trainer makes of a record."""
    if to == "specforge-text":
        return str(record["text"])
    if to == "torchspec":
        return torchspec_text(record["conversations"])
    template = (desk.folder / "exports" / to / "out.jsonl.chat_template.jinja").read_text()
    tools = json.loads(record.get("tools", "[]"))
    declared = declare_tools(tools) if tools else None
    text, _ = render(template, record["messages"], tools=tools or None, tools_ts_str=declared)
    return text


def torchspec_text(conversation: list[dict[str, str]]) -> str:
    """TorchSpec's rule for turns without thoughts in their history (facts/training-formats.md)."""
    parts = []
    for turn in conversation:
        role, content = turn["role"], turn["content"]
        marker = role if role in {"user", "assistant"} else "system"
        if role == "assistant" and not content.startswith("<think>"):
            content = f"<think></think>{content}"
        parts.append(f"<|im_{marker}|>{role}<|im_middle|>{content}<|im_end|>")
    return "".join(parts)


def test_strict_formats_hold_alternating_turns_only(desk: Desk) -> None:
    _, eagle = export(desk, "eagle")
    for record in eagle:
        roles = [turn["from"] for turn in record["conversations"]]
        assert roles == ["human", "gpt"] * (len(roles) // 2)
    meta, slim = export(desk, "angelslim")
    for record in slim:
        roles = [turn["role"] for turn in record["conversations"]]
        rest = roles[1:] if roles[0] == "system" else roles
        assert rest == ["user", "assistant"] * (len(rest) // 2)
    assert meta["datasets"]["B_turns"]["rows_out"] > 0
    assert {record["id"].partition("/")[0] for record in eagle} == {"A_single", "D_last", "F_cut"}


def test_a_conversation_is_one_row_for_each_generation(desk: Desk) -> None:
    _, found = export(desk, "torchspec", only=("B_turns",))
    lengths = {len(record["conversations"]) for record in found}
    assert lengths == {3, 5}
    for record in found:
        history = [t["content"] for t in record["conversations"][:-1] if t["role"] == "assistant"]
        assert not any("think>" in content for content in history)


def test_tool_calls_come_out_native_and_parsed(desk: Desk) -> None:
    _, found = export(desk, "automodel", only=("C_tools",))
    called = [record for record in found if record["messages"][-1]["tool_calls"]]
    assert called
    for record in called:
        for call in record["messages"][-1]["tool_calls"]:
            assert call["function"]["name"] == "weather"
            json.loads(call["function"]["arguments"])
    _, turns = export(desk, "modelopt", only=("C_tools",))
    assert all(record["messages"][0]["role"] == "tool_declare" for record in turns)


@pytest.mark.parametrize("api", ["vllm", "sglang"])
def test_a_servers_own_ids_go_out_as_they_are(tmp_path: Path, api: str) -> None:
    host = {"non_canonical": 0.5, "artefact": "spaced"}
    with served(tmp_path, api, host=host, singles=40) as (desk, _):
        rows = {row["id"]: row for row in desk.files.all("rows")}
        meta, found = export(desk, "speculators", include=("length", "reasoning_only"))
        assert {row["exactness"] for row in rows.values()} == {"engine"}
        assert meta["rows_out"] == len(rows)
        assert {tuple(record["input_ids"]) for record in found} == {
            (*row["prompt_ids"], *row["completion_ids"]) for row in rows.values()
        }
        texts, _ = export(desk, "specforge-text")
        assert texts["resplit_rows"] > 5
        assert any("other ids than were sampled" in note for note in texts["notes"])


def test_without_thinking_the_empty_block_is_prompt(tmp_path: Path) -> None:
    with served(tmp_path, "vllm", singles=10, thinking=False) as (desk, _):
        folder = desk.files.folder
        kit = kit_of(thinking=False)
        request = Request(folder, FORMATS["specforge"], desk.folder / "a.jsonl")
        export_run(request, open_runs([folder]).manifest, Inline(kit))
        for line in (desk.folder / "a.jsonl").read_text().splitlines():
            record = json.loads(line)
            start = record["loss_mask"].index(1)
            assert record["input_ids"][start : start + 2] == [kimi.THINK, kimi.END_THINK]
