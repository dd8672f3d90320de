"""Refuses a folder where another run has been dealt the same prompts: they would be paid twice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from engine.disk.rundir import RUN
from engine.errors import IdentityError

_SHARD: Final = re.compile(r"shard-(\d+)-of-(\d+)")
_ELSEWHERE: Final = "or choose another output folder (--output DIR): its prompts are paid anew"


def shard_folder(index: int, count: int) -> str:
    """The folder of one shard, inside the run's output folder."""
    return f"shard-{index}-of-{count}"


def shards_in(root: Path) -> list[tuple[int, int, Path]]:
    """(index, count, folder) of every shard that has begun in an output folder, by index."""
    return sorted(_shards(root))


def check_whole(folder: Path) -> None:
    """Raise IdentityError where a run directory holds the shards of a run."""
    for _, count, _ in shards_in(folder)[:1]:
        raise IdentityError(
            f"{folder} holds shards of a run dealt to {count}; its prompts would be paid twice",
            hint=f"Go on with --shard I/{count}, I from 1 to {count}, {_ELSEWHERE}.",
        )


def check_shard(root: Path, count: int) -> None:
    """Raise IdentityError where an output folder holds a whole run, or other shards than these."""
    if (root / RUN).exists():
        raise IdentityError(
            f"{root} holds a run that is not sharded; its prompts would be paid twice",
            hint=f"Go on with it without --shard, {_ELSEWHERE}.",
        )
    for _, other, folder in shards_in(root):
        if other != count:
            raise IdentityError(
                f"{root} holds {folder.name}; dealt to {count}, its prompts would be paid twice",
                hint=f"Go on with --shard I/{other}, I from 1 to {other}, {_ELSEWHERE}.",
            )


def _shards(root: Path) -> Iterator[tuple[int, int, Path]]:
    if not root.is_dir():
        return
    for folder in root.iterdir():
        match = _SHARD.fullmatch(folder.name)
        if match and (folder / RUN).exists():
            yield int(match[1]), int(match[2]), folder
