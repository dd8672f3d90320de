"""What this user's machine remembers between commands: recent runs, and when each was looked at.

Two JSON files in the user's state folder. Losing them loses nothing but convenience, so that no
fault of theirs ever reaches a run.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson
import platformdirs

from engine.disk.rundir import read_json, write_atomically

RECENT, SEEN = "recent.json", "seen.json"
_KEPT = 40


@dataclass(frozen=True, slots=True)
class Recent:
    """A run that was started on this machine."""

    folder: str
    """The run directory, absolute."""
    manifest: str
    """The manifest's path, absolute; empty where it cannot be started again."""
    name: str
    started_at: float
    """Epoch seconds of the latest start."""
    options: dict[str, Any] = field(default_factory=dict)
    """What the command line had added, for the next start."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run had come to when it was last looked at."""

    at: float
    rows: int
    errors: int


def remember(run: Recent) -> None:
    """Put a run in front of the recent ones."""

    def change(kept: dict[str, Any]) -> dict[str, Any]:
        others = {folder: value for folder, value in kept.items() if folder != run.folder}
        return dict([(run.folder, asdict(run)), *others.items()][:_KEPT])

    _change(RECENT, change)


def recent() -> list[Recent]:
    """The runs that were started here and are still on disk, the latest first."""
    found = []
    for value in _read(RECENT).values():
        with suppress(TypeError):
            found.append(Recent(**value))
    return [run for run in found if Path(run.folder).is_dir()]


def look(folder: Path, seen: Seen) -> None:
    """Remember what the run had come to when its screen was left."""
    name = str(folder.resolve())

    def change(kept: dict[str, Any]) -> dict[str, Any]:
        others = {other: value for other, value in kept.items() if other != name}
        return dict([(name, asdict(seen)), *others.items()][:_KEPT])

    _change(SEEN, change)


def last_look(folder: Path) -> Seen | None:
    """What the run had come to when this user last left its screen; None: never."""
    try:
        return Seen(**_read(SEEN)[str(folder.resolve())])
    except (KeyError, TypeError):
        return None


def _folder() -> Path:
    return platformdirs.user_state_path("eaglegen-tui", appauthor=False)


def _read(name: str) -> dict[str, Any]:
    with suppress(OSError):
        kept = read_json(_folder() / name)
        if isinstance(kept, dict):
            return kept
    return {}


def _change(name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    with suppress(OSError, TypeError):
        folder = _folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(folder / name, orjson.dumps(change(_read(name))))
