"""Rows and run directories as the engine writes them, made at once, for what reads them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from engine_parts import dataset_text, manifest_of
from kimi_cases import vocabulary

from engine.audits.survey import Kit
from engine.export.catalogue import FORMATS
from engine.export.example import Example
from engine.manifest import Endpoint, Manifest
from engine.tokens.grades import Graded
from engine.tokens.layouts import answer_of_row
from engine.tokens.template import render_prompt, with_declared_tools

K25 = "kimi-k2.5"
TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Tells the weather.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
CALL = {
    "id": "functions.weather:0",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Oslo"}'},
}
SECTION = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0"
    '<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>'
)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str | None, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def system(text: str) -> dict[str, Any]:
    return {"role": "system", "content": text}


def kit_of(
    *, thinking: bool = True, tools_mode: Any = "raw", tokenizer: Any = K25, codes: Any = ...
) -> Kit:
    """What reading a run's rows takes, with the real vocabulary."""
    endpoint = Endpoint(
        base_url="http://127.0.0.1:9/v1",
        model="m",
        tokenizer=tokenizer,
        thinking=thinking,
        tools_mode=tools_mode,
    )
    known = vocabulary() if tokenizer != "none" else None
    return Kit(endpoint, known if codes is ... else codes)


def row_of(
    content: str | None = "It is 4.",
    reasoning: str | None = "Two and two.",
    *,
    messages: Iterable[Mapping[str, Any]] = (user("2+2?"),),
    kit: Kit | None = None,
    dataset: str = "B6",
    index: int = 0,
    turn: int = 0,
    tools: list[Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A row of a verbatim host whose count is right; `more` overrides its fields."""
    kit = kit or kit_of()
    served = list(messages)
    raw = tools is not None and kit.endpoint.tools_mode == "raw"
    if raw:
        served = list(with_declared_tools(served, tools, variant=kit.endpoint.tokenizer))
    digest = hashlib.sha256(json.dumps([dataset, index, served]).encode()).hexdigest()
    row: dict[str, Any] = {
        "id": f"{dataset}/{digest[:16]}.0#{turn}",
        "prompt_hash": digest,
        "dataset": dataset,
        "index": index,
        "turn": turn,
        "messages": served,
        "tools": tools,
        "reasoning": reasoning,
        "content": content,
        "tool_calls": None,
        "prompt_ids": None,
        "completion_ids": None,
        "exactness": "unverified",
        "flags": [],
        "finish_reason": "stop",
        "native_finish_reason": "stop",
        "model": "m",
        "provider": "SiliconFlow",
        "generation_id": "gen-1",
        "usage": {"prompt_tokens": None, "completion_tokens": None, "reasoning_tokens": None},
        "attempts": 1,
        "started_at": "2026-11-30T14:03:22.125Z",
        "latency_s": 1.0,
    }
    row.update(more)
    if kit.codes is not None and "completion_ids" not in more:
        _encode(row, kit, tools if kit.endpoint.tools_mode == "api" else None)
    row.update(more)
    return row


def _encode(row: dict[str, Any], kit: Kit, tools: list[Any] | None) -> None:
    reasoned = f"{row['reasoning']}</think>" if row["reasoning"] is not None else ""
    if kit.endpoint.thinking and row["reasoning"] is None:
        reasoned = "</think>" if row["finish_reason"] != "length" else ""
    end = "" if row["finish_reason"] == "length" else "<|im_end|>"
    prompt = render_prompt(row["messages"], tools=tools, **kit.reading)
    row["prompt_ids"] = vocabulary().encode(prompt)
    row["completion_ids"] = vocabulary().encode(f"{reasoned}{row['content'] or ''}{end}")
    row["usage"] |= {
        "prompt_tokens": len(row["prompt_ids"]),
        "completion_tokens": len(row["completion_ids"]),
        "cost": 0.001,
    }
    row["exactness"] = "matched"


def example_of(row: dict[str, Any], kit: Kit | None = None, exactness: Any = None) -> Example:
    """The row as an example with the ids and the grade that stand in it."""
    graded = Graded(row["completion_ids"], exactness or row["exactness"])
    return Example(kit or kit_of(), row, answer_of_row(row), graded)


def made(name: str, row: dict[str, Any], kit: Kit | None = None, limit: int | None = None) -> Any:
    """The record of a row in a format."""
    return FORMATS[name].make(example_of(row, kit), limit)


def manifest(
    folder: Path, datasets: Mapping[str, int], *, endpoint: str = 'tokenizer = "kimi-k2.5"'
) -> Manifest:
    """A manifest of these datasets with their prompt totals."""
    head = f"""\
[run]
name = "story"
output = "out"
[endpoint]
base_url = "http://127.0.0.1:8787/api/v1"
model = "moonshotai/kimi-k2.5"
{endpoint}
"""
    tables = "".join(dataset_text(name, prompts) for name, prompts in datasets.items())
    return manifest_of(head + tables, folder)


def run_folder(
    folder: Path,
    rows: Mapping[str, Iterable[dict[str, Any]]],
    *,
    prompts: int = 100,
    endpoint: str = 'tokenizer = "kimi-k2.5"',
) -> Manifest:
    """A run directory that holds these rows, as if each had taken one request."""
    folder.mkdir(parents=True, exist_ok=True)
    made = manifest(folder, dict.fromkeys(rows, prompts), endpoint=endpoint)
    record = {
        "schema": 1,
        "identity": made.identity(),
        "manifest": made.model_dump(mode="json"),
        "versions": {},
    }
    (folder / "run.json").write_text(json.dumps(record))
    for name, given in rows.items():
        dataset = folder / name
        dataset.mkdir()
        listed = list(given)
        sent = [{"id": r["id"], "attempt": 1, "at": r["started_at"]} for r in listed]
        for file, records in (("rows", listed), ("sent", sent)):
            text = "".join(json.dumps(record) + "\n" for record in records)
            (dataset / f"{file}.jsonl").write_text(text)
    return made
