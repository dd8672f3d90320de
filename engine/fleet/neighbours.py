"""Refuses a folder where another run has been dealt the same prompts: they would be paid twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from engine.disk.rundir import RUN, is_held, read_json
from engine.errors import IdentityError

_SHARD: Final = re.compile(r"shard-(\d+)-of-(\d+)")
_ELSEWHERE: Final = "or choose another output folder (--output DIR): its prompts are paid anew"


def shard_folder(index: int, count: int) -> str:
    """The folder of one shard, inside the run's output folder."""
    return f"shard-{index}-of-{count}"


def shards_in(root: Path) -> list[tuple[int, int, Path]]:
    """(index, count, folder) of every shard that has begun in an output folder, by index."""
    return sorted(_shards(root))


def place_of(root: Path, index: int, count: int) -> Path:
    """A shard's folder where `root` was asked for: inside it, or itself where it is a shard's."""
    record = read_json(root / RUN)
    itself = isinstance(record, dict) and record.get("shard") is not None
    return (
        root
        if itself or _SHARD.fullmatch(root.absolute().name)
        else root / shard_folder(index, count)
    )


def has_asked(folder: Path) -> bool:
    """Whether a run directory may hold anything paid: rows, requests, or a process at work."""
    files = (path for name in ("sent", "rows") for path in folder.glob(f"*/{name}.jsonl"))
    return any(path.stat().st_size for path in files) or is_held(folder)


def check_whole(folder: Path) -> None:
    """Raise IdentityError where a run directory holds the shards of a run."""
    for _, count, shard in _paid(folder)[:1]:
        raise IdentityError(
            f"{folder} holds shards of a run dealt to {count}; its prompts would be paid twice "
            f"(the first is {shard.name})",
            hint=f"Go on with --shard I/{count}, I from 1 to {count}, {_ELSEWHERE}.",
        )


def check_shard(root: Path, count: int) -> None:
    """Raise IdentityError where an output folder holds a whole run, or other shards than these."""
    if (root / RUN).exists():
        raise IdentityError(
            f"{root} holds a run that is not sharded; its prompts would be paid twice",
            hint=f"Go on with it without --shard, {_ELSEWHERE}.",
        )
    shards = _paid(root)
    ours = any(other == count for _, other, _ in shards)
    for _, other, folder in shards:
        if other != count:
            go_on = f"Go on with --shard I/{other}, I from 1 to {other}, {_ELSEWHERE}."
            move = f"The other shards are dealt to {count}: move {folder} to another place."
            raise IdentityError(
                f"{root} holds {folder.name}; dealt to {count}, its prompts would be paid twice",
                hint=move if ours else go_on,
            )


def _paid(root: Path) -> list[tuple[int, int, Path]]:
    return [shard for shard in shards_in(root) if has_asked(shard[2])]


def _shards(root: Path) -> Iterator[tuple[int, int, Path]]:
    if not root.is_dir():
        return
    for folder in root.iterdir():
        match = _SHARD.fullmatch(folder.name)
        if match and (folder / RUN).exists():
            yield int(match[1]), int(match[2]), folder
