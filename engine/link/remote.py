"""A run that another process does, through its control socket: a RunHandle for `attach`."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.commands import Command, to_wire
from engine.disk.jsonlines import dump_line, load_line
from engine.disk.rundir import RUN, STATUS, is_held, read_json
from engine.errors import EaglegenError, RunUnreachableError, UsageError
from engine.link.picture import from_wire
from engine.link.socketplace import find
from engine.view.gone import ENDED, at_rest
from engine.view.snapshot import Snapshot

CONNECT_S, ANSWER_S = 5.0, 10.0


def ask(folder: Path, command: Command) -> str:
    """Send one command and wait for the answer in words; raises EaglegenError."""
    with _connect(folder) as peer:
        try:
            peer.sendall(dump_line(to_wire(command)))
            with peer.makefile("rb") as lines:
                answer = _parse(lines.readline())
        except OSError as error:
            raise _unreachable(folder, error) from None
    if not answer.get("ok"):
        raise UsageError(str(answer.get("error") or "the run gave no reason"))
    return str(answer.get("said") or "done")


class RemoteRun:
    """Follows one run until it ends or its process is gone; raises RunUnreachableError at once."""

    def __init__(self, folder: Path, *, hz: float = 2.0, read_only: bool = False) -> None:
        self._folder = folder
        self._read_only = read_only
        self._peer = _connect(folder)
        try:
            self._peer.sendall(dump_line({"command": "subscribe", "hz": hz}))
            self._lines = self._peer.makefile("rb")
            self._snapshot = _snapshot(self._lines.readline())
        except OSError as error:
            self._peer.close()
            raise _unreachable(folder, error) from None
        except RunUnreachableError:
            self._peer.close()
            raise
        self._peer.settimeout(None)
        self._ended = threading.Event()
        self._left = False
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
        self._left = True
        with suppress(OSError):
            self._peer.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads
        self._thread.join(CONNECT_S)
        self._lines.close()
        self._peer.close()

    def _ask(self, command: Command, future: Future[str]) -> None:
        try:
            future.set_result(ask(self._folder, command))
        except EaglegenError as error:
            future.set_exception(error)

    def _follow(self) -> None:
        why = ""
        try:
            while line := self._lines.readline():
                self._snapshot = _snapshot(line)
        except (OSError, ValueError):
            pass  # closed by us, or cut: what was seen last stays
        except RunUnreachableError as error:
            why = error.message
        finally:
            if self._snapshot.exit_code is None and not self._left:
                self._snapshot = _gone(self._snapshot, self._folder, why)
            self._ended.set()


def _gone(snapshot: Snapshot, folder: Path, why: str) -> Snapshot:
    """The last that was seen of a run whose process has left without its last snapshot."""
    held = _still_held(folder)
    record = read_json(folder / STATUS)
    status = record if isinstance(record, dict) else {}
    if not why and status.get("state") in ENDED:
        state, reason = status["state"], str(status.get("reason") or "")
        return replace(at_rest(snapshot), state=state, reason=reason)
    if why:
        reason = f"this screen has lost the run: {why}"
    elif held:
        reason = "its process has closed the connection; attach again"
    else:
        reason = "its process is gone; `run` with its manifest goes on where it ended"
        snapshot = at_rest(snapshot)
    return replace(snapshot, state="stopped", reason=reason)


def _still_held(folder: Path) -> bool:
    """Whether a process holds the run; one that dies closes its files one after the other."""
    pause = threading.Event()
    for _ in range(20):
        if not is_held(folder):
            return False
        pause.wait(0.05)
    return True


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
            hint="It may be starting, or stopped; `status` reads its files instead.",
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
    except (KeyError, ValueError):
        raise RunUnreachableError("the run's process speaks another version's language") from None
