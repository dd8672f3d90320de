"""The run directory: its lock, its identity, and its files' names (DESIGN §6)."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import orjson

from engine.disk.runrecord import run_problem
from engine.errors import IdentityError, RunHeldError, UsageError
from engine.manifest import Manifest

RUN, LOCK, STATUS = "run.json", "run.lock", "status.json"
EVENTS, HISTORY = "events.jsonl", "history.jsonl"
_TRIES, _TRY_EVERY_S = 5, 0.02
_PACKAGES = ("eaglegen-tui", "httpx", "httpx-aiohttp", "aiohttp", "tiktoken", "textual")


@contextmanager
def hold(folder: Path, started_at: str) -> Iterator[Callable[[], bool]]:
    """Hold the run's lock for as long as the context lasts; RunHeldError names the holder.

    Yields whether the folder is still this run's: one that was removed and taken by another run
    must not be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be used as the run directory: {error}") from None
    try:
        if not _take(descriptor):
            raise RunHeldError(f"{folder}: {_holder(folder)} is doing this run")
        mine = {"host": socket.gethostname(), "pid": os.getpid(), "started_at": started_at}
        os.ftruncate(descriptor, 0)
        os.write(descriptor, orjson.dumps(mine, option=orjson.OPT_APPEND_NEWLINE))
        yield partial(_is_same, folder / LOCK, os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    """Lock for good. `is_held` of another process has the lock for an instant: try again then."""
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(_TRY_EVERY_S)
        else:
            return True
    return False


def _is_same(path: Path, ours: os.stat_result) -> bool:
    """Whether the lock at `path` is ours; where there is none, nobody else has the folder."""
    try:
        return os.path.samestat(path.stat(), ours)
    except OSError:
        return True


def is_held(folder: Path) -> bool:
    """Whether a live process on this host holds the run."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def claim(
    folder: Path, manifest: Manifest, shard: dict[str, Any] | None = None
) -> dict[str, Any] | None:
    """Check the identity of what is there and write run.json anew.

    Returns the run.json of the session before, None where the run begins; raises IdentityError.
    `shard` holds `index` (from 1), `count`, and `prompts`, the whole's total of each dataset.
    """
    path = folder / RUN
    earlier = _read_run(path)
    identity = manifest.identity()
    if earlier is not None:
        _check_shard(folder, earlier.get("shard"), shard)
        differences = list(differs(earlier["identity"], identity))
        if differences:
            raise IdentityError(
                f"{folder} holds a run with another identity:\n  " + "\n  ".join(differences),
                hint="Restore these values, or choose another output folder (--output DIR).",
            )
        identity["datasets"] = earlier["identity"]["datasets"] | identity["datasets"]
    record = {
        "schema": 1,
        "identity": identity,
        "manifest": manifest.model_dump(mode="json"),
        "versions": _versions(),
    }
    if shard is not None:
        earlier_totals = ((earlier or {}).get("shard") or {}).get("prompts") or {}
        record["shard"] = {**shard, "prompts": {**earlier_totals, **shard["prompts"]}}
    write_atomically(path, orjson.dumps(record, option=orjson.OPT_INDENT_2))
    return earlier


def _check_shard(folder: Path, earlier: dict[str, Any] | None, now: dict[str, Any] | None) -> None:
    """Another shard has other prompts: neither rows nor totals would be this one's."""
    there, here = _shard_words(earlier), _shard_words(now)
    if there != here:
        raise IdentityError(
            f"{folder} holds {there}, and this is {here}",
            hint="Give each shard a folder of its own: without --output they get one each.",
        )


def _shard_words(shard: dict[str, Any] | None) -> str:
    return (
        "a run that is not sharded"
        if shard is None
        else f"shard {shard['index']} of {shard['count']}"
    )


def differs(earlier: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    """What distinguishes two identities, a sentence each; datasets may be added or left out."""
    for key in ("model", "tokenizer", "thinking", "tools_mode", "extra_body"):
        if earlier.get(key) != now.get(key):
            yield f"{key}: was {_json(earlier.get(key))}, now {_json(now.get(key))}"
    for name, mine in now["datasets"].items():
        theirs = earlier["datasets"].get(name, mine)
        for key in ("turns", "sampling"):
            if theirs.get(key) != mine.get(key):
                yield f"{name}.{key}: was {_json(theirs.get(key))}, now {_json(mine.get(key))}"


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file so that a reader sees the old or the new one, never a part."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_bytes(data)
    temporary.replace(path)


def read_json(path: Path) -> Any:
    """A JSON file's value, or None where there is none that can be read."""
    try:
        return orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None


def _read_run(path: Path) -> dict[str, Any] | None:
    if not path.exists():
        if any(path.parent.glob("*/rows.jsonl")):
            raise IdentityError(
                f"{path} is missing, but there are rows beside it: whose they are is unknown",
                hint="Restore it from a backup, or choose another output folder (--output DIR).",
            )
        return None
    record = read_json(path)
    if problem := run_problem(record):
        raise IdentityError(
            f"{path} is not readable as a run's record ({problem}): its identity is unknown",
            hint="Restore it from a backup, or choose another output folder (--output DIR).",
        )
    known: dict[str, Any] = record
    return known


def _holder(folder: Path) -> str:
    holder = read_json(folder / LOCK)
    if not isinstance(holder, dict) or "pid" not in holder:
        return "another process"
    since = f" (since {holder['started_at']})" if "started_at" in holder else ""
    return f"process {holder['pid']} on {holder.get('host', 'an unknown host')}{since}"


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
