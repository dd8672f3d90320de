"""The recorded run that the pictures are drawn from, and how it was made small.

`tui/pictures/recorded` holds a run of the story's size against the local provider, as any run
directory holds itself: `python -m tui.picture --record RUN_DIR` made it, and `eaglegen-tui replay`
and `report` read it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.clock import iso
from engine.disk.jsonlines import dump, dump_line
from engine.disk.rundir import EVENTS, HISTORY, RUN
from engine.past.history import Historian
from engine.past.replay import Player
from engine.past.tape import SESSION, Session, Tape, read_tape
from engine.view.snapshot import Snapshot
from tui.picture import StillClock

FOLDER = Path(__file__).with_name("pictures") / "recorded"
HOST, PID = "gpu-07", 4711
OUTPUT = "runs/kimi-k25-eagle3"
ENDPOINT = "https://openrouter.ai/api/v1"
"""Instead of what the recording machine was called, and of a port that was free there."""
_EVENTS_MOST = 400


def moment(seconds: float, folder: Path = FOLDER) -> Snapshot:
    """The recorded run `seconds` after its beginning, as its screen showed it then."""
    tape = read_tape(folder)
    player = Player(tape, StillClock(0.0), speed=1.0)
    player.move(seconds)
    return replace(player.snapshot(), output=OUTPUT)


def record(run_dir: Path, folder: Path, *, every: int = 1) -> int:
    """Write a small copy of a run's story to `folder`; returns its bytes.

    Of each session, every `every`th point and the last one are kept. Prompts and answers are not
    part of a story, so that nothing of theirs is copied.
    """
    tape = read_tape(run_dir)
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        RUN: dump(_run(tape.run)),
        HISTORY: b"".join(map(dump_line, _history(tape, every))),
        EVENTS: b"".join(map(dump_line, _events(tape))),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return sum(map(len, files.values()))


def _run(run: dict[str, Any]) -> dict[str, Any]:
    manifest = run.get("manifest") or {}
    endpoint = {**(manifest.get("endpoint") or {}), "base_url": ENDPOINT}
    shown = {"run": {**(manifest.get("run") or {}), "output": OUTPUT}, "endpoint": endpoint}
    return {**run, "manifest": {**manifest, **shown}}


def _history(tape: Tape, every: int) -> Iterator[dict[str, Any]]:
    for session in tape.sessions:
        historian = Historian()
        for place in _places(session, every):
            snapshot = session.snapshot(place)
            yield historian.line(replace(snapshot, host=HOST, pid=PID, endpoint=ENDPOINT))


def _places(session: Session, every: int) -> list[int]:
    return sorted({*range(0, len(session), every), len(session) - 1})


def _events(tape: Tape) -> Iterator[dict[str, Any]]:
    """The journal with what orders and states need to be read back."""
    commands = {(mark.at, mark.text): mark.command for mark in tape.marks}
    states = {(at, name): state for name, found in tape.states.items() for at, state in found}
    for entry in tape.journal[-_EVENTS_MOST:]:
        if entry.kind == SESSION:
            continue  # whoever reads the copy finds it again
        record = {"at": iso(entry.at), "kind": entry.kind, "dataset": entry.dataset}
        record["text"] = entry.text
        if entry.kind == "command":
            record |= {"command": commands[entry.at, entry.text], "origin": entry.origin}
        elif entry.kind == "state" and (entry.at, entry.dataset) in states:
            record["state"] = states[entry.at, entry.dataset]
        yield record
