"""The demo's six prompt files, in the shape of the story: written from templates, always alike."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

from engine.errors import UsageError
from tui.demo.forms import Row, make_row
from tui.demo.templates import deal, read_family

_STORY = {
    "B3_code": ("code", 3383),
    "B4_maths": ("maths", 1891),
    "B5_summaries": ("summaries", 2500),
    "B6_ultrachat": ("chat", 15000),
    "B7_tools": ("tools", 10000),
    "B8_languages": ("languages", 5000),
}
"""Data file and prompt total of each dataset; the totals are those of the story (DESIGN §1)."""


@dataclass(frozen=True, slots=True)
class DemoDataset:
    """One prompt file of the demo, ready for a manifest."""

    name: str
    source: Path
    prompts: int
    """Rows in the file: the manifest's prompt total."""
    generations: int
    """User turns in the file: the rows that `turns = "all"` makes."""


def write_sources(folder: Path, scale: float) -> list[DemoDataset]:
    """Write the six prompt files as jsonl, in the order in which they run.

    `scale` is the share of the story's 37,774 prompts, above 0 and at most 1; each file gets at
    least one row, and a smaller scale gives the first rows of a larger one. Raises UsageError.
    """
    if not 0 < scale <= 1:
        raise UsageError(f"scale {scale:g} is not a share: above 0, at most 1")
    folder.mkdir(parents=True, exist_ok=True)
    return [
        _write(folder, name, data, max(1, round(total * scale)))
        for name, (data, total) in _STORY.items()
    ]


def _write(folder: Path, name: str, data: str, prompts: int) -> DemoDataset:
    source = folder / f"{name}.jsonl"
    generations = 0
    with source.open("w", encoding="utf-8", newline="\n") as file:
        for row, turns in islice(_rows(data, _STORY[name][1]), prompts):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            generations += turns
    return DemoDataset(name, source, prompts, generations)


def _rows(data: str, total: int) -> Iterator[tuple[Row, int]]:
    """Rows with their number of user turns; a few occur twice where the data file says so."""
    sheet = tomllib.loads(_text(f"{data}.toml"))
    families = [read_family(raw, sheet.get("pools", {})) for raw in sheet["family"]]
    schemas = _schemas()
    earlier = dict(sheet.get("doubles", ()))
    kept: dict[int, tuple[Row, int]] = dict.fromkeys(earlier.values(), ({}, 0))
    fresh = enumerate(deal(families, total - len(earlier)))
    for place in range(total):
        if place in earlier:
            yield kept[earlier[place]]
            continue
        number, (family, said) = next(fresh)
        made = make_row(family, said, number, schemas), len(said.turns)
        if place in kept:
            kept[place] = made
        yield made


def _schemas() -> dict[str, dict[str, Any]]:
    return {tool["function"]["name"]: tool for tool in json.loads(_text("tools.json"))}


def _text(name: str) -> str:
    return files("tui.demo").joinpath("data", name).read_text(encoding="utf-8")
