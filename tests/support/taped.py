"""Run directories as the engine leaves them, written from given snapshots without an engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from scripted_run import busy

from engine.clock import iso
from engine.disk.jsonlines import dump, dump_line
from engine.disk.rundir import EVENTS, HISTORY, RUN, STATUS
from engine.past.history import Historian
from engine.view.frame import status
from engine.view.snapshot import Snapshot

START = 1_796_047_400.0
"""2026-11-30T14:03:20Z."""
STEP = 10.0
MANIFEST = {
    "manifest": {
        "endpoint": {"base_url": "https://openrouter.ai/api/v1", "tokenizer": "kimi-k2.5"},
        "sampling": {"temperature": 1.0, "top_p": 0.95, "max_tokens": 8192},
    }
}


def moving(points: int, start: float = START, pid: int = 4711) -> list[Snapshot]:
    """Snapshots of six busy datasets, one each ten seconds."""
    made = (busy(start, place * STEP) for place in range(points))
    return [replace(snapshot, pid=pid) for snapshot in made]


def ended(snapshot: Snapshot, **more: Any) -> Snapshot:
    """The same as a run's last."""
    return replace(snapshot, state="done", in_flight=0, exit_code=0, **more)


def write_run(
    folder: Path,
    *sessions: Iterable[Snapshot],
    events: Iterable[Mapping[str, Any]] = (),
    run: Mapping[str, Any] = MANIFEST,
) -> Path:
    """Write run.json, history.jsonl, events.jsonl and status.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RUN).write_bytes(dump(dict(run)))
    last = None
    with (folder / HISTORY).open("wb") as file:
        for session in sessions:
            historian = Historian()
            for last in session:
                file.write(dump_line(historian.line(last)))
    (folder / EVENTS).write_bytes(b"".join(map(dump_line, events)))
    if last is not None:
        (folder / STATUS).write_bytes(dump(status(last)))
    return folder


def event(at: float, kind: str, text: str, **more: Any) -> dict[str, Any]:
    """One line of events.jsonl, at `at` seconds from START."""
    return {"at": iso(START + at), "kind": kind, "dataset": None, "text": text, **more}


def break_lines(path: Path, *lines: bytes) -> None:
    """Put lines of nobody's before what is there."""
    path.write_bytes(b"".join(line + b"\n" for line in lines) + path.read_bytes())
