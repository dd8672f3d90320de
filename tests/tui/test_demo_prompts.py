from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.feed.prompts import make_prompt
from tui.demo.forms import make_row
from tui.demo.prompts import DemoDataset, write_sources
from tui.demo.templates import Family, deal, read_family

STORY = {
    "B3_code": 3383,
    "B4_maths": 1891,
    "B5_summaries": 2500,
    "B6_ultrachat": 15000,
    "B7_tools": 10000,
    "B8_languages": 5000,
}
SHEETS = ("code", "maths", "summaries", "chat", "tools", "languages")


def rows_of(dataset: DemoDataset) -> Iterator[dict[str, Any]]:
    with dataset.source.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts(item)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> list[DemoDataset]:
    return write_sources(tmp_path_factory.mktemp("full"), 1.0)


def test_the_full_demo_has_the_storys_totals(full: list[DemoDataset]) -> None:
    assert {dataset.name: dataset.prompts for dataset in full} == STORY
    for dataset in full:
        assert sum(1 for _ in rows_of(dataset)) == dataset.prompts


def test_every_row_is_readable_and_no_two_are_alike_but_for_the_deliberate_doubles(
    full: list[DemoDataset],
) -> None:
    for dataset in full:
        occurrences: dict[bytes, int] = {}
        generations = 0
        for index, row in enumerate(rows_of(dataset)):
            prompt = make_prompt(
                row, dataset=dataset.name, index=index, turns="all", occurrences=occurrences
            )
            generations += len(prompt.turns)
        doubles = sorted(count for count in occurrences.values() if count > 1)
        assert doubles == ([2, 2] if dataset.name == "B6_ultrachat" else []), dataset.name
        assert generations == dataset.generations


def test_the_rows_show_every_form_that_the_reader_accepts(full: list[DemoDataset]) -> None:
    forms: Counter[str] = Counter()
    for dataset in full:
        for row in rows_of(dataset):
            forms.update(list(row))
            forms[f"tools as {type(row.get('tools')).__name__}"] += 1
            forms[f"turns {len(row.get('turns', ()))}"] += 1
            forms["system message"] += row.get("messages", [{}])[0].get("role") == "system"
            forms["system from"] += row.get("conversations", [{}])[0].get("from") == "system"
    expected = (
        *("messages", "conversations", "prompt", "question", "instruction", "input", "turns"),
        *("system", "system message", "system from", "id", "uuid", "question_id", "turns 2"),
        *("tools as list", "tools as str"),
    )
    assert all(forms[form] >= 30 for form in expected), forms


def test_no_slot_is_left_open_and_no_text_is_ragged(full: list[DemoDataset]) -> None:
    ragged = re.compile(r"\A\s|\s\Z|\{[a-z_]+\[")
    sheets = [tomllib.loads(sheet(name)) for name in SHEETS]
    slots = {slot for s in sheets for raw in s["family"] for slot in raw.get("slots", {})}
    left = re.compile(r"\{(" + "|".join(slots - {"user"}) + r")\}")
    for dataset in full:
        for row in rows_of(dataset):
            for text in texts({key: row[key] for key in row if key != "tools"}):
                assert not ragged.search(text), text
                assert not left.search(text), text


def test_a_smaller_scale_is_the_beginning_of_a_larger_one(
    full: list[DemoDataset], tmp_path: Path
) -> None:
    for small, large in zip(write_sources(tmp_path, 0.01), full, strict=True):
        assert small.prompts == round(STORY[small.name] * 0.01)
        assert large.source.read_bytes().startswith(small.source.read_bytes())


def test_the_files_are_the_same_every_time(tmp_path: Path) -> None:
    digests = [
        [sha256(d.source.read_bytes()).hexdigest() for d in write_sources(tmp_path / run, 0.02)]
        for run in ("one", "two")
    ]
    assert digests[0] == digests[1]


def test_each_dataset_keeps_at_least_one_prompt(tmp_path: Path) -> None:
    assert [dataset.prompts for dataset in write_sources(tmp_path, 1e-6)] == [1] * 6


@pytest.mark.parametrize("scale", [0, -1, 1.5, float("nan"), float("inf")])
def test_a_scale_that_is_no_share_is_refused(tmp_path: Path, scale: float) -> None:
    with pytest.raises(UsageError, match="share"):
        write_sources(tmp_path / "none", scale)
    assert not (tmp_path / "none").exists()


def sheet(name: str) -> str:
    return files("tui.demo").joinpath("data", f"{name}.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SHEETS)
def test_a_data_file_has_no_filler_twice_and_none_unused(name: str) -> None:
    raw = tomllib.loads(sheet(name))
    pools = raw.get("pools", {})
    used: set[str] = set()
    for entry in raw["family"]:
        family = read_family(entry, pools)
        used |= set(family.slots)
        assert set(entry.get("slots", {})) <= set(family.slots), f"{family.name}: unused slot"
        for slot, fillers in family.slots.items():
            assert len({str(filler) for filler in fillers}) == len(fillers), f"{family.name}/{slot}"
        assert len(entry["turns"]) == 1 or entry["form"] in {"messages", "conversations", "turns"}
    assert set(pools) <= used


def test_a_family_repeats_no_combination() -> None:
    family = read_family(
        {
            "name": "all",
            "form": "prompt",
            "turns": ["{a}{thing[x]}{n}"],
            "slots": {
                "a": list("abcdef"),
                "thing": [{"x": "p"}, {"x": "q"}],
                "n": {"from": 1, "to": 9, "step": 4},
            },
        },
        {},
    )
    made = [said.turns[0] for said in family.conversations()]
    assert len(made) == len(set(made)) == family.size == 36


@given(st.lists(st.integers(1, 40), min_size=1, max_size=6), st.data())
def test_a_deal_is_even_as_far_as_the_families_reach(sizes: list[int], data: st.DataObject) -> None:
    families = [
        read_family(
            {"name": f"f{i}", "form": "prompt", "turns": ["{n}"]}, {"n": {"from": 1, "to": size}}
        )
        for i, size in enumerate(sizes)
    ]
    total = data.draw(st.integers(1, sum(sizes)))
    dealt = [(family.name, said.turns[0]) for family, said in deal(families, total)]
    assert len(set(dealt)) == len(dealt) == total
    counts = Counter(name for name, _ in dealt)
    fair = [counts[f.name] for f in families if counts[f.name] < f.size]
    assert max(fair, default=0) - min(fair, default=0) <= 1


def test_more_prompts_than_combinations_are_refused() -> None:
    family = read_family({"name": "one", "form": "prompt", "turns": ["{n}"]}, {"n": ["a", "b"]})
    with pytest.raises(ValueError, match="2 combinations"):
        list(deal([family], 3))


def test_a_row_names_only_tools_that_exist(full: list[DemoDataset]) -> None:
    tools = json.loads(files("tui.demo").joinpath("data", "tools.json").read_text("utf-8"))
    schemas = {tool["function"]["name"]: tool for tool in tools}
    raw = tomllib.loads(sheet("tools"))
    named = {name for entry in raw["family"] for name in entry.get("tools", ())}
    assert named == set(schemas), "every schema is used, every name has one"
    family: Family = read_family(
        {"name": "t", "form": "messages", "turns": ["hi"], "tools": ["scale"]}, {}
    )
    row = make_row(family, next(family.conversations()), 0, schemas)
    assert row["tools"] == [schemas["scale"]]
    assert sum("tools" in r for d in full for r in rows_of(d)) > 5000
