"""A run that another process does, through its control socket: a RunHandle for `attach`."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.commands import Command, to_wire
from engine.errors import EaglegenError, RunUnreachableError, UsageError
from engine.jsonlines import dump_line, load_line
from engine.picture import from_wire
from engine.rundir import RUN, is_held
from engine.snapshot import Snapshot
from engine.socketplace import find

CONNECT_S, ANSWER_S = 5.0, 10.0


def ask(folder: Path, command: Command) -> str:
    """Send one command and wait for the answer in words; raises EaglegenError."""
    with _connect(folder) as peer:
        peer.sendall(dump_line(to_wire(command)))
        with peer.makefile("rb") as lines:
            answer = _parse(lines.readline())
    if not answer.get("ok"):
        raise UsageError(str(answer.get("error") or "the run gave no reason"))
    return str(answer.get("said") or "done")


class RemoteRun:
    """Follows one run until it ends or its process is gone."""

    def __init__(self, folder: Path, *, hz: float = 2.0, read_only: bool = False) -> None:
        self._folder = folder
        self._read_only = read_only
        self._peer = _connect(folder)
        self._peer.settimeout(None)
        self._peer.sendall(dump_line({"command": "subscribe", "hz": hz}))
        self._lines = self._peer.makefile("rb")
        self._snapshot = _snapshot(self._lines.readline())
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="attach", daemon=True)
        self._thread.start()

    def snapshot(self) -> Snapshot:
        """The newest snapshot; never blocks."""
        return self._snapshot

    @property
    def ended(self) -> bool:
        """True once no newer snapshot will come."""
        return self._ended.is_set()

    def send(self, command: Command) -> Future[str]:
        """Send a command on a connection of its own, in a thread of its own."""
        future: Future[str] = Future()
        if self._read_only:
            future.set_exception(UsageError("attached read-only: no command is sent"))
            return future
        threading.Thread(target=self._ask, args=(command, future), daemon=True).start()
        return future

    def close(self) -> None:
        """Leave; the run goes on."""
        self._ended.set()
        self._peer.close()

    def _ask(self, command: Command, future: Future[str]) -> None:
        try:
            future.set_result(ask(self._folder, command))
        except EaglegenError as error:
            future.set_exception(error)

    def _follow(self) -> None:
        try:
            while line := self._lines.readline():
                self._snapshot = _snapshot(line)
        except (OSError, ValueError, RunUnreachableError):
            pass  # closed by us, or cut: what was seen last stays
        finally:
            if self._snapshot.exit_code is None and not self._ended.is_set():
                self._snapshot = replace(
                    self._snapshot,
                    state="stopped",
                    reason="its process is gone; `run` goes on where it ended",
                )
            self._ended.set()


def _connect(folder: Path) -> socket.socket:
    path = find(folder)
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    peer.settimeout(CONNECT_S)
    try:
        peer.connect(str(path))
    except OSError as error:
        peer.close()
        raise _unreachable(folder, error) from None
    peer.settimeout(ANSWER_S)
    return peer


def _unreachable(folder: Path, error: OSError) -> RunUnreachableError:
    if not (folder / RUN).exists():
        return RunUnreachableError(f"{folder} is no run directory (it has no {RUN})")
    if is_held(folder):
        return RunUnreachableError(
            f"{folder}: a process does this run, but its control socket does not answer ({error})",
            hint="It may be starting; `status` reads its files instead.",
        )
    return RunUnreachableError(
        f"{folder}: no process does this run",
        hint="`status` tells how it ended; `run` with its manifest goes on.",
    )


def _parse(line: bytes) -> dict[str, Any]:
    try:
        answer = load_line(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise RunUnreachableError("the run's process left without an answer")
    return answer


def _snapshot(line: bytes) -> Snapshot:
    try:
        return from_wire(_parse(line))
    except (KeyError, TypeError) as error:
        raise RunUnreachableError(f"the run speaks another version's language: {error}") from None
