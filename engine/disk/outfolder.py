"""Whether a run directory can be made or used where it is wanted, in words, before anything is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from engine.errors import UsageError
from engine.rules.names import check_text, expanded

_SHOWN = 80
HINT = "Choose another output folder (--output DIR)."


def wanted_folder(option: Path | None, default: Path) -> Path:
    """The folder of `--output` (with `~` for a home folder), else the default."""
    if option is None:
        return default
    try:
        return expanded(check_text(str(option)))
    except ValueError as error:
        raise UsageError(f"--output: {error}") from None


def check_folder(folder: Path) -> None:
    """Raise UsageError where the folder cannot be the run's."""
    if words := obstacle(folder):
        raise UsageError(words, hint=HINT)


def check_parts(folder: Path, names: Iterable[str]) -> None:
    """Raise UsageError where something else than a folder has a dataset's name in there.

    The run would wait for a disk that takes its files, and it never would.
    """
    for name in names:
        place = folder / name
        if os.path.lexists(place) and not place.is_dir():
            raise UsageError(f"{place} is in the way: the dataset {name} needs a folder", hint=HINT)


def obstacle(folder: Path) -> str:
    """What stands in the way of writing to this folder; empty where nothing does."""
    ground = folder.absolute()
    try:
        while not os.path.lexists(ground) and ground != ground.parent:
            _look(ground)
            ground = ground.parent
        if not ground.is_dir():
            kind = "a broken link" if ground.is_symlink() else "a file"
            if ground == folder.absolute():
                return f"{folder} is {kind}; a run needs a folder"
            return f"{folder} cannot be made: {ground} is {kind}"
    except (OSError, ValueError) as error:
        return f"{_short(folder)} cannot be a run directory: {_reason(error)}"
    if os.access(ground, os.W_OK | os.X_OK):
        return ""
    if ground == folder.absolute():
        return f"{folder} cannot be written to: no permission"
    return f"{folder} cannot be made: no permission to write to {ground}"


def _look(path: Path) -> None:
    """Raise what `lexists` keeps to itself, but that there is nothing."""
    with suppress(FileNotFoundError, NotADirectoryError):
        path.lstat()


def _short(folder: Path) -> str:
    """A path that is too long for the system is too long for a message."""
    text = str(folder)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def _reason(error: OSError | ValueError) -> str:
    text = error.strerror if isinstance(error, OSError) else str(error)
    return (text or type(error).__name__).lower()
