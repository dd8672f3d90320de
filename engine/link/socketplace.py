"""Where a run's control socket lies: in the run directory, or where a long path cannot be bound."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

SOCKET = "control.sock"
POINTER = "control.path"
"""A file of the run directory that names the socket where it lies elsewhere."""
_LONGEST = 100
"""Bytes of a path that every system can bind (sun_path holds 104 on some, 108 on Linux)."""


def find(folder: Path) -> Path:
    """Where a client looks for the socket of a run."""
    with suppress(OSError, ValueError):
        named = (folder / POINTER).read_text("utf-8").strip()
        if named:
            return Path(named)
    return folder / SOCKET


def bind(folder: Path) -> tuple[socket.socket, Path]:
    """A listening socket that only this user can reach (mode 0600), and where it lies.

    The caller holds the run's lock, so a socket that is already there is a dead run's. Raises
    OSError where there is no place for one.
    """
    here = folder.resolve() / SOCKET
    (folder / POINTER).unlink(missing_ok=True)
    if len(os.fsencode(here)) <= _LONGEST:
        with suppress(OSError):  # a file system without sockets (some network mounts): go elsewhere
            return _bind(here), here
    there = _runtime_folder() / f"{hashlib.sha256(os.fsencode(here)).hexdigest()[:20]}.sock"
    bound = _bind(there)
    (folder / POINTER).write_text(f"{there}\n", "utf-8")
    return bound, there


def unbind(folder: Path, path: Path) -> None:
    """Take the socket and what names it away; a disk that refuses leaves a stale one."""
    for leftover in (path, folder / POINTER):
        with suppress(OSError):
            leftover.unlink(missing_ok=True)


def _bind(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(bound.fileno(), 0o600)  # before bind: there is no moment at which it is open
        bound.bind(str(path))
        path.chmod(0o600)
        bound.listen(16)
        bound.setblocking(False)
    except OSError:
        bound.close()
        raise
    return bound


def _runtime_folder() -> Path:
    """A folder that nobody else can write to; its short path can be bound."""
    given = os.environ.get("XDG_RUNTIME_DIR")
    root = Path(given) if given else Path(tempfile.gettempdir())
    folder = root / (f"eaglegen-tui-{os.getuid()}")
    folder.mkdir(exist_ok=True, mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is not this user's alone")
    return folder
