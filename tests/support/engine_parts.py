"""Small whole parts of a run for the engine's tests: manifests, prompts, jobs, faults, replies."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from engine.feed.prompts import Prompt, make_prompt
from engine.manifest import Manifest, parse_manifest
from engine.schedule import Job
from engine.wire.reply import Reply
from engine.wire.usage import Usage

MODEL = "moonshotai/kimi-k2.5"
HEAD = f"""\
[run]
name = "story"
output = "out"

[endpoint]
base_url = "http://127.0.0.1:8787/api/v1"
model = "{MODEL}"
"""
DATASET = """
[[datasets]]
name = "B6_ultrachat"
source = "b6.jsonl"
prompts = 3
"""


def manifest_of(text: str = HEAD + DATASET, folder: Path = Path()) -> Manifest:
    """A manifest that lies in `folder`."""
    return parse_manifest(text, folder / "manifest.toml")


def dataset_text(name: str, prompts: int, **more: Any) -> str:
    """One `[[datasets]]` table; its source is `<name>.jsonl`."""
    lines = [f"name = {json.dumps(name)}", f'source = "{name}.jsonl"', f"prompts = {prompts}"]
    lines += [f"{key} = {_toml(value)}" for key, value in more.items()]
    return "\n".join(["", "[[datasets]]", *lines, ""])


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


def write_rows(path: Path, rows: Iterable[Any]) -> Path:
    """A jsonl source of these rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def prompt_of(
    row: Any = "Hi", *, dataset: str = "B6", index: int = 0, turns: Any = "all"
) -> Prompt:
    """A prompt from a row, or from the text of its only user turn."""
    row = {"prompt": row} if isinstance(row, str) else row
    return make_prompt(row, dataset=dataset, index=index, turns=turns, occurrences={})


def job_of(row: Any = "Hi", *, dataset: str = "B6", index: int = 0, turns: Any = "all") -> Job:
    """A job at its first turn."""
    prompt = prompt_of(row, dataset=dataset, index=index, turns=turns)
    return Job(prompt, prompt.turns[0])


def reply_of(content: str = "Hello.", **more: Any) -> Reply:
    """A finished answer."""
    fields: dict[str, Any] = {
        "finish_reason": "stop",
        "model": MODEL,
        "provider": "SiliconFlow",
        "generation_id": "gen-1",
        "usage": Usage(10, 5, None, 0.001),
    }
    return Reply(content=content, **{**fields, **more})
