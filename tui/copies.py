"""Saves what `y` copies where the user's other programs can find it."""

from __future__ import annotations

import re
from pathlib import Path

import platformdirs

from engine.clock import local_hms

CLIPBOARD_BYTES = 74_000
"""What terminals take by OSC 52: xterm and tmux drop what is longer than 100,000 in base64."""
_STRANGE = re.compile(r"[^A-Za-z0-9._-]+")


def save(text: str, name: str, at: float) -> Path:
    """Write the text to a file named after the dataset and the time; raises OSError."""
    folder = platformdirs.user_state_path("eaglegen-tui", appauthor=False) / "copies"
    folder.mkdir(parents=True, exist_ok=True)
    safe = _STRANGE.sub("_", name)[:60] or "run"
    path = folder / f"{safe}-{local_hms(at).replace(':', '')}.txt"
    path.write_text(text, encoding="utf-8", errors="replace")
    return path
