"""What `eaglegen-tui init` writes: a commented manifest, sample prompts, `.env`, `.gitignore`."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from engine.errors import UsageError

_FILES = {
    "manifest.toml": "manifest.toml",
    "prompts/sample.jsonl": "sample.jsonl",
    ".env": "env.txt",
    ".gitignore": "gitignore.txt",
}
"""File to write, and the data file that it is made of: packaging drops names such as `.env`."""


def write_starter(folder: Path) -> list[Path]:
    """Write the four files into `folder`, which is made where needed, and return their paths.

    Raises UsageError, with nothing written, where one of them exists already: a manifest that
    was edited or a key that was entered must never be lost. `.env` is readable by its owner
    only.
    """
    targets = {folder / name: data for name, data in _FILES.items()}
    existing = [target for target in targets if os.path.lexists(target)]
    if existing:
        names = ", ".join(str(target) for target in existing)
        raise UsageError(f"already there: {names}", hint="Choose another folder, or move it away.")
    try:
        for target, data in targets.items():
            _write(target, files("tui.starter").joinpath("data", data).read_bytes())
    except OSError as error:
        place = error.filename or folder
        raise UsageError(f"cannot write {place}: {error.strerror}") from None
    return list(targets)


def _write(target: Path, content: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = 0o600 if target.name == ".env" else 0o666  # less the umask; keys are nobody else's
    # O_EXCL: a file that appeared since the check is not overwritten either
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
