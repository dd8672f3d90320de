"""What run.json has to be: the identity that a resume is held to, and the manifest (DESIGN §6)."""

from __future__ import annotations

from typing import Any, Final

_SECTIONS: Final = ("run", "endpoint", "limits")


def run_problem(record: Any) -> str:
    """What is wrong with a JSON value as a run's record; empty where it is one."""
    if not isinstance(record, dict):
        return "it holds no object"
    identity = record.get("identity")
    if not isinstance(identity, dict) or not _objects(identity.get("datasets")):
        return "it holds no identity of a run"
    return _manifest_problem(record.get("manifest")) or _shard_problem(record.get("shard"))


def _objects(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(inner, dict) for inner in value.values())


def _manifest_problem(manifest: Any) -> str:
    if not isinstance(manifest, dict):
        return "it holds no manifest"
    if not all(isinstance(manifest.get(name, {}), dict) for name in _SECTIONS):
        return "its manifest is none"
    datasets = manifest.get("datasets")
    named = isinstance(datasets, list) and all(
        isinstance(dataset, dict) and isinstance(dataset.get("name"), str) for dataset in datasets
    )
    return "" if named else "its manifest names no datasets"


def _shard_problem(shard: Any) -> str:
    if shard is None:
        return ""
    if not isinstance(shard, dict) or not isinstance(shard.get("prompts"), dict):
        return "its shard is none"
    index: Any = shard.get("index")
    count: Any = shard.get("count")
    numbers = (index, count, *shard["prompts"].values())
    if not all(type(number) is int and number >= 0 for number in numbers):
        return "its shard is none"
    return "" if index in range(1, count + 1) else f"its shard is number {index} of {count}"
