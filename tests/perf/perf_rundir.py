"""Run directories as earlier sessions leave them, of any size.

`python perf_rundir.py FOLDER BASE_URL TOKENIZER PROMPTS DONE ROW_BYTES` makes one with its source.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from engine.disk.ledger import ATTEMPTS, ROWS, SENT
from engine.disk.rundir import claim
from engine.feed.prompts import Prompt
from engine.feed.sources import PromptFeed
from engine.manifest import Manifest, load_manifest

NAME = "B6_ultrachat"
AT = "2026-11-30T14:03:22.125Z"
_BATCH = 1000
_FAULT_EVERY = 5
"""Every so many prompts one attempt failed before the row came."""


@dataclass(frozen=True, slots=True)
class Size:
    """How large a run directory is to be."""

    prompts: int
    done: int
    """How many of them have their row, from the first."""
    row_bytes: int = 600


def write_source(path: Path, prompts: int) -> None:
    """One-turn prompts of some 300 bytes, no two alike."""
    body = "please explain in some detail how this works, and give an example. " * 4
    with path.open("wb") as file:
        for number in range(prompts):
            file.write(orjson.dumps({"prompt": f"Question {number}: {body}"}) + b"\n")


def write_manifest(folder: Path, prompts: int, base_url: str, tokenizer: str) -> Path:
    """A manifest of one dataset beside its source."""
    path = folder / "manifest.toml"
    path.write_text(
        f"""\
[run]
name = "resume"
output = "run"
[endpoint]
base_url = "{base_url}"
model = "moonshotai/kimi-k2.5"
tokenizer = "{tokenizer}"
[limits]
concurrency = 512
[[datasets]]
name = "{NAME}"
source = "{NAME}.jsonl"
prompts = {prompts}
"""
    )
    return path


def write_run(manifest: Manifest, folder: Path, size: Size) -> None:
    """The files of a run that ended with so many prompts done."""
    dataset = folder / NAME
    folder.mkdir(parents=True, exist_ok=True)
    claim(folder, manifest)
    dataset.mkdir(exist_ok=True)
    with (
        (dataset / ROWS).open("wb") as rows,
        (dataset / SENT).open("wb") as sent,
        (dataset / ATTEMPTS).open("wb") as attempts,
    ):
        for prompt in _prompts(manifest, size.done):
            faults = int(prompt.index % _FAULT_EVERY == 0)
            identifier = prompt.id(0)
            for attempt in range(1, faults + 2):
                sent.write(_line({"id": identifier, "attempt": attempt, "at": AT}))
            if faults:
                attempts.write(_line(_fault(identifier)))
            rows.write(_line(_row(prompt, faults + 1, size.row_bytes)))


def _prompts(manifest: Manifest, count: int) -> Iterator[Prompt]:
    feed = PromptFeed(manifest, manifest.datasets[0], stop=count)
    while batch := feed.batch(_BATCH):
        yield from (item for item in batch if isinstance(item, Prompt))


def _row(prompt: Prompt, attempts: int, row_bytes: int) -> dict[str, Any]:
    """A row: what is beyond the least size is a third text and two thirds ids, as in real ones."""
    spare = max(0, row_bytes - 600)
    ids = [10_000 + n % 90_000 for n in range(spare * 2 // 3 // 6)] or None
    return {
        "id": prompt.id(0),
        "prompt_hash": prompt.hash,
        "dataset": NAME,
        "index": prompt.index,
        "turn": 0,
        "messages": [{"role": "user", "content": "Explain." + "x" * (spare // 6)}],
        "tools": None,
        "reasoning": None,
        "content": "It is so." + "y" * (spare // 6),
        "tool_calls": None,
        "prompt_ids": None,
        "completion_ids": ids,
        "exactness": "unverified",
        "flags": [],
        "finish_reason": "stop",
        "native_finish_reason": "stop",
        "model": "moonshotai/kimi-k2.5",
        "provider": "SiliconFlow",
        "generation_id": f"gen-{prompt.index:010d}",
        "usage": {
            "prompt_tokens": 60,
            "completion_tokens": 1200 + prompt.index % 900,
            "reasoning_tokens": None,
            "cost": 0.0031,
        },
        "attempts": attempts,
        "started_at": AT,
        "latency_s": 20.0 + prompt.index % 50,
    }


def _fault(identifier: str) -> dict[str, Any]:
    return {
        "id": identifier,
        "attempt": 1,
        "family": "rate_limit",
        "scope": "provider",
        "provider": "SiliconFlow",
        "status": 429,
        "message": "Rate limit exceeded",
        "generation_id": None,
        "cost": None,
        "sent": True,
        "started_at": AT,
        "latency_s": 0.4,
    }


def _line(record: dict[str, Any]) -> bytes:
    return orjson.dumps(record) + b"\n"


def make(folder: Path, base_url: str, tokenizer: str, size: Size) -> None:
    """Source, manifest and run directory."""
    folder.mkdir(parents=True, exist_ok=True)
    write_source(folder / f"{NAME}.jsonl", size.prompts)
    path = write_manifest(folder, size.prompts, base_url, tokenizer)
    if size.done:
        write_run(load_manifest(path), folder / "run", size)


if __name__ == "__main__":
    make(Path(sys.argv[1]), *sys.argv[2:4], Size(*map(int, sys.argv[4:7])))
