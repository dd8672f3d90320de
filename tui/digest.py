"""What happened to a run since it was last looked at, in one line."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

from engine import format as fmt
from engine.clock import local_hm
from engine.disk.jsonlines import load_line
from engine.disk.rundir import EVENTS
from engine.view.snapshot import Snapshot
from tui.memory import Seen

_TAIL = 1 << 20
"""Bytes of the journal that are read: days of it."""
_COUNTED = (("command", "order"), ("verdict", "verdict change"))


def seen_now(snapshot: Snapshot) -> Seen:
    """What the run has come to now."""
    rows = sum(view.rows for view in snapshot.datasets)
    errors = sum(view.attempt_errors for view in snapshot.datasets)
    return Seen(snapshot.heartbeat_at, rows, errors)


def digest(snapshot: Snapshot, seen: Seen | None, journal: list[dict[str, Any]]) -> str:
    """Rows, errors and what was decided; since the last look, or else since the run's start.

    `journal` holds events.jsonl's newest records. Counts that went back (another run lies in the
    folder now) are told from the start.
    """
    now = seen_now(snapshot)
    if seen is not None and (seen.rows > now.rows or seen.errors > now.errors):
        seen = None
    since = snapshot.started_at if seen is None else seen.at
    before = Seen(since, 0, 0) if seen is None else seen
    past = fmt.duration(max(0.0, snapshot.heartbeat_at - since))
    head = f"since the start {past} ago" if seen is None else f"since you looked {past} ago"
    rows, errors = now.rows - before.rows, now.errors - before.errors
    parts = [fmt.plural(rows, "row"), fmt.plural(errors, "failed attempt")]
    parts += _events([entry for entry in journal if _at(entry) > since])
    return f"{head}: {', '.join(parts)}"


def read_journal(folder: Path) -> list[dict[str, Any]]:
    """The newest records of a run's journal; none where it cannot be read."""
    try:
        with (folder / EVENTS).open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _TAIL))
            lines = file.read().splitlines()
    except OSError:
        return []
    return [record for line in lines if isinstance(record := _record(line), dict)]


def _events(entries: list[dict[str, Any]]) -> list[str]:
    kinds = Counter(entry.get("kind") for entry in entries)
    told = [fmt.plural(kinds[kind], word) for kind, word in _COUNTED if kinds[kind]]
    states = [entry for entry in entries if entry.get("kind") == "state"]
    if states:
        last = states[-1]
        told.append(f"at {local_hm(_at(last))} {fmt.safe_text(str(last.get('text')), 60)}")
    return told


def _at(entry: dict[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(entry.get("at"))).timestamp()
    except ValueError:
        return 0.0


def _record(line: bytes) -> Any:
    try:
        return load_line(line)
    except ValueError:
        return None
