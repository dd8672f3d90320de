"""Where an export's files go: nothing is overwritten but an earlier export of the same run.

`<out>.meta.json` says whose export lies there. It is written as incomplete before the first file
takes its place and completed after the last, so that a crash leaves no file without an owner.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import orjson

from engine.disk.ledger import ATTEMPTS, FAILURES, ROWS, SENT
from engine.disk.rundir import EVENTS, HISTORY, LOCK, RUN, STATUS, read_json, write_atomically
from engine.errors import UsageError
from engine.export.chat_template import SUFFIX
from engine.export.shards import shards_at

_RUN_FILES: Final = frozenset({RUN, LOCK, STATUS, EVENTS, HISTORY, ROWS, SENT, FAILURES, ATTEMPTS})


def meta_path(out: Path) -> Path:
    """The sidecar of an output."""
    return out.with_name(f"{out.name}.meta.json")


def template_path(out: Path) -> Path:
    """The chat template beside an output."""
    return out.with_name(f"{out.name}{SUFFIX}")


def check_output(
    out: Path, folder: Path, run: dict[str, Any], form: str, *, force: bool
) -> list[Path]:
    """The data files of an earlier export that will be replaced.

    Raises UsageError where writing would destroy something else; `run` and `form` say whose
    export it is, and in which format.
    """
    inside = folder.resolve() in out.resolve().parents
    if out.is_dir() or (inside and (out.name in _RUN_FILES or (out.parent / ROWS).exists())):
        raise UsageError(f"--out {out}: name a new file, outside the run's own ones")
    data = [path for path in (out, *shards_at(out)) if path.exists()]
    there = [*data, meta_path(out)] if meta_path(out).exists() else data
    if there and not force and (whose := _whose(read_json(meta_path(out)), run, form)):
        raise UsageError(
            f"{there[0]} is there already, and is {whose}",
            hint="Choose another --out, or overwrite it with --force.",
        )
    return data


def _whose(meta: Any, run: dict[str, Any], form: str) -> str:
    """Whose files lie there, in words; empty where they are this export's own."""
    if not isinstance(meta, dict):
        return "no export of this run"
    if meta.get("run") != run:
        return "an export of another run"
    if meta.get("format") != form:
        return f"an export for {meta.get('format')}, not for {form}"
    return ""


def make_parent(out: Path) -> bool:
    """Make the folder that the files go to; whether it was missing. Raises UsageError."""
    missing = not out.parent.exists()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {out}: the folder cannot be made: {error.strerror}") from None
    return missing


def publish(
    out: Path, places: Sequence[tuple[Path, Path]], template: str | None, meta: dict[str, Any]
) -> None:
    """Move finished files to their places, and remove what an earlier export left there."""
    write_atomically(meta_path(out), _json({**meta, "complete": False}))
    for temporary, final in places:
        temporary.replace(final)
    kept = {final for _, final in places}
    for path in (out, *shards_at(out)):
        if path not in kept:
            with suppress(FileNotFoundError):
                path.unlink()
    if template is None:
        template_path(out).unlink(missing_ok=True)
    else:
        write_atomically(template_path(out), template.encode())
    write_atomically(meta_path(out), _json({**meta, "complete": True}))


def _json(record: dict[str, Any]) -> bytes:
    return orjson.dumps(record, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
