"""Reads a run directory as a user's script would: by the contract's names, with nothing of ours."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

Record = dict[str, Any]


class RunFiles:
    """The files of one run directory (DESIGN §6); a file that is not there holds nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def lines(self, name: str) -> list[Record]:
        """The records of one JSON-lines file; fails where a line is not whole."""
        path = self.folder / name
        text = path.read_bytes() if path.exists() else b""
        assert text.endswith(b"\n") or not text, f"{path} ends on a torn line"
        return [json.loads(line) for line in text.splitlines()]

    def whole_lines(self, name: str) -> list[Record]:
        """The records of a file that is being written: without the line that is not yet whole."""
        path = self.folder / name
        text = path.read_bytes() if path.exists() else b""
        return [json.loads(line) for line in text[: text.rfind(b"\n") + 1].splitlines()]

    @property
    def datasets(self) -> list[str]:
        """The datasets that have a folder."""
        return sorted(path.name for path in self.folder.iterdir() if path.is_dir())

    def all(self, kind: str) -> list[Record]:
        """The records of `rows`, `sent`, `attempts` or `failures` of every dataset."""
        return [r for name in self.datasets for r in self.lines(f"{name}/{kind}.jsonl")]

    def status(self) -> Record:
        """status.json."""
        record: Record = json.loads((self.folder / "status.json").read_bytes())
        return record

    def events(self, kind: str) -> list[Record]:
        """The journal's entries of one kind."""
        return [entry for entry in self.lines("events.jsonl") if entry["kind"] == kind]

    def answers(self) -> dict[str, tuple[Any, ...]]:
        """What a run has to reproduce whatever happened to it: per row id the text of its turn."""
        return {
            row["id"]: (row["messages"], row["reasoning"], row["content"])
            for row in self.all("rows")
        }


def assert_settled(files: RunFiles) -> None:
    """Requests = rows + attempts, and no row twice."""
    ids = [row["id"] for row in files.all("rows")]
    assert len(ids) == len(set(ids)), "a row is doubled"
    sent = Counter((r["id"], r["attempt"]) for r in files.all("sent"))
    ended = Counter((r["id"], r["attempts"]) for r in files.all("rows"))
    ended.update((r["id"], r["attempt"]) for r in files.all("attempts"))
    assert sent == ended
    assert set(sent.values()) <= {1}, "an attempt's number was used twice"


def assert_accounted(files: RunFiles) -> None:
    """As `assert_settled`, and status.json agrees: its prompts add up, its rows are on disk."""
    assert_settled(files)
    for view in files.status()["datasets"]:
        parts = ("ok", "failed", "invalid", "in_flight", "left")
        assert view["prompts"] == sum(view[part] for part in parts)
        assert view["rows"] == len(files.lines(f"{view['name']}/rows.jsonl"))
