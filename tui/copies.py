"""Saves what `y` copies where the user's other programs can find it."""

from __future__ import annotations

import re
from pathlib import Path

import platformdirs

from engine import format as fmt
from engine.clock import local_hms
from tui import glyphs

CLIPBOARD_BYTES = 74_000
"""What terminals take by OSC 52: xterm and tmux drop what is longer than 100,000 in base64."""
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_MAX = 16
"""Characters of a dataset's name, so that the whole path can be said on 80 columns."""


def save(text: str, name: str, at: float) -> Path:
    """Write the text to a file named after the dataset and the time; raises OSError."""
    folder = platformdirs.user_state_path("eaglegen-tui", appauthor=False) / "copies"
    folder.mkdir(parents=True, exist_ok=True)
    safe = _STRANGE.sub("_", name)[:_NAME_MAX] or "run"
    path = folder / f"{safe}-{local_hms(at).replace(':', '')}.txt"
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


def said(copied: str, path: Path, cells: int) -> str:
    """Where the copy is, in at most `cells` if it can be: a path that is cut helps nobody."""
    full, short = fmt.safe_text(str(path)), fmt.safe_text(_short(path))
    told = (f"{copied}; saved to {full}", f"{copied}; saved to {short}", f"saved to {short}", short)
    end = f"{copied}; saved to {glyphs.ELLIPSIS}/{path.parent.name}/{fmt.safe_text(path.name)}"
    return next((text for text in told if fmt.width(text) <= cells), end)


def _short(path: Path) -> str:
    """From the user's home, or from the working directory, as a shell takes it."""
    for base, start in ((Path.cwd(), ""), (Path.home(), "~/")):
        if path.is_relative_to(base):
            return start + str(path.relative_to(base))
    return str(path)
