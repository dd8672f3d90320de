"""What one session of a run asks differently from the one before, in words for the journal.

What may not change is the run's identity (`engine.disk.rundir.differs`); all else may (DESIGN §4).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_SECTIONS = ("run", "endpoint", "limits")
_OF_A_DATASET = ("source", "prompts", "token_budget", "max_cost_usd")


def changes(earlier: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each difference of two resolved manifests, as run.json holds them."""
    for section in _SECTIONS:
        yield from _values(section, earlier.get(section) or {}, now[section], tuple(now[section]))
    before = {dataset["name"]: dataset for dataset in earlier.get("datasets") or ()}
    after = {dataset["name"]: dataset for dataset in now["datasets"]}
    if list(before) != list(after):
        yield f"datasets: was {', '.join(before)}; now {', '.join(after)}"
    for name, dataset in after.items():
        if name in before:
            yield from _values(name, before[name], dataset, _OF_A_DATASET)


def _values(
    place: str, before: Mapping[str, Any], after: Mapping[str, Any], keys: tuple[str, ...]
) -> Iterator[str]:
    for key in keys:
        if before.get(key) != after.get(key):
            yield f"{place}.{key}: was {_json(before.get(key))}, now {_json(after.get(key))}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
