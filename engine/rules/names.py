"""Names that become folders, and paths as a manifest writes them."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.rules.problem import Problem

_FOLDER = re.compile(r"[A-Za-z0-9._-]+")
_LONGEST = 100
_NAME_BYTES, _PATH_BYTES = 255, 4000
"""Of Linux's and macOS's file systems; the run's own file names come on top."""
_RUN_FILES = frozenset(
    {"run.json", "run.lock", "status.json", "control.sock", "events.jsonl", "history.jsonl"}
)


def check_folder_name(name: str) -> None:
    """Raise ValueError where a dataset's name cannot be a folder of its own everywhere."""
    if not name or not _FOLDER.fullmatch(name):
        raise ValueError(
            "a dataset's name becomes a folder: letters, digits, '.', '_' and '-' only"
        )
    if not name[0].isalnum() or name.endswith("."):
        raise ValueError(
            "a dataset's name becomes a folder: it begins with a letter or digit, and does not "
            "end with a dot"
        )
    if len(name) > _LONGEST:
        raise ValueError(f"has {len(name)} characters; at most {_LONGEST} make a folder's name")
    if name.lower() in _RUN_FILES:
        raise ValueError(f"{name} is a file of the run directory; choose another name")


def doubled_names(names: Sequence[str]) -> Iterator[Problem]:
    """Names that are one folder, on file systems that do not tell case apart too."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        other = first.setdefault(name.lower(), index)
        if other == index:
            continue
        if names[other] == name:
            words = f"two datasets are named {name}"
        else:
            words = (
                f"{names[other]} and {name} differ only in case, and are one folder on some "
                "systems; choose another name"
            )
        yield Problem((index, "name"), words)


def check_text(text: str) -> str:
    """The text, or ValueError where it holds characters that no name or path should."""
    if any(unicodedata.category(char) == "Cc" for char in text):
        raise ValueError("holds a control character")
    return text


def check_path(text: str) -> str:
    """The path as written, or ValueError where it can be none; `~` must be somebody's home."""
    parts = expanded(check_text(text)).parts
    longest = max((len(os.fsencode(part)) for part in parts), default=0)
    if longest > _NAME_BYTES or len(os.fsencode(text)) > _PATH_BYTES:
        raise ValueError(
            f"is too long for a file system ({_NAME_BYTES} bytes for a name, {_PATH_BYTES} in all)"
        )
    return text


def expanded(text: str) -> Path:
    """The path with `~` and `~name` replaced by the home folder; raises ValueError."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        user = text.partition("/")[0]
        raise ValueError(f"{user} is nobody's home folder; write ./{user} for a file") from None
