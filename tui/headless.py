"""The front end of scripts: progress lines on stderr, JSON lines on stdout (DESIGN §5)."""

from __future__ import annotations

import errno
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from engine.clock import iso, local_hms
from engine.commands import Drain, Stop
from engine.disk.jsonlines import dump_line
from engine.format import UNKNOWN, closed, coarse, compact, duration, money, plural, safe_text
from engine.handle import OwnRun
from engine.view.frame import dataset_status, status
from engine.view.snapshot import DatasetView, JournalEntry, Snapshot
from tui.draw.words import estimated
from tui.signals import INTERRUPTED, routed

_POLL_S = 0.25
_FORCE_S = 2.0
"""How long the orderly way out may take once everything is left behind."""
_DRAINING = "draining; once more stops and cancels what is in flight"
_LEAVING = "leaving before anything was sent"
_LOUD = frozenset({"command", "state", "verdict", "provider", "disk", "note"})


def watch(run: OwnRun, *, interval_s: float, as_json: bool, lost: Callable[[], None]) -> int:
    """Report a run until it ends; SIGINT and SIGTERM drain, a second one stops.

    `lost` is called when the terminal turns out to be gone: it takes the descriptors away from it.
    """
    with draining_signals(run):
        out, err = _until_closed(run, lost), _narrating(lost)
        return _report(run, interval_s, Reporter(as_json=as_json, out=out, err=err))


def _report(run: OwnRun, interval_s: float, reporter: Reporter) -> int:
    due = 0.0
    while not run.join(_POLL_S):
        snapshot = run.snapshot()
        reporter.starting(snapshot, interval_s)
        reporter.journal(snapshot)
        if snapshot.elapsed_s >= due and reporter.progress(snapshot):
            due = snapshot.elapsed_s + interval_s
    reporter.journal(run.snapshot())
    reporter.summary(run.snapshot())
    return run.exit_code


class Reporter:
    """Writes what a snapshot says; remembers what of the journal was told."""

    def __init__(
        self,
        *,
        as_json: bool,
        out: Callable[[bytes], Any] | None = None,
        err: Callable[[str], Any] | None = None,
    ) -> None:
        self._as_json = as_json
        self._out = out or _write_stdout
        self._err = err or _quietly
        self._told = 0
        self._told_start = False

    def starting(self, snapshot: Snapshot, after_s: float) -> None:
        """Say once why there is nothing to report yet, where that takes long."""
        if snapshot.state == "starting" and snapshot.elapsed_s >= after_s and not self._told_start:
            self._told_start = True
            at = local_hms(snapshot.heartbeat_at)
            self._err(f"{at} state: starting: {safe_text(snapshot.reason)}\n")

    def progress(self, snapshot: Snapshot) -> bool:
        """One line for each dataset that is being worked on; False where there is none yet."""
        working = [v for v in snapshot.datasets if v.state in {"running", "paused"} or v.in_flight]
        for view in working:
            self._err(progress_line(view, snapshot.heartbeat_at) + "\n")
            if self._as_json:
                self._json("progress", snapshot.heartbeat_at, dataset_status(view))
        return bool(working)

    def journal(self, snapshot: Snapshot) -> None:
        """What was journalled since the last call."""
        new = snapshot.journal_total - self._told
        self._told = snapshot.journal_total
        for entry in snapshot.journal[-new:] if new > 0 else ():
            self._tell(entry)

    def summary(self, snapshot: Snapshot) -> None:
        """The end: every dataset, the reason, the money."""
        for view in snapshot.datasets:
            self._err(progress_line(view, snapshot.heartbeat_at) + f" [{ending(view)}]\n")
        self._err(closing_line(snapshot) + "\n")
        if self._as_json:
            self._out(dump_line({"event": "summary", **status(snapshot), **_twice(snapshot)}))

    def _tell(self, entry: JournalEntry) -> None:
        if entry.kind in _LOUD:
            self._err(f"{local_hms(entry.at)} {entry.kind}: {safe_text(entry.text)}\n")
        if self._as_json:
            self._json(entry.kind, entry.at, {"dataset": entry.dataset, "text": entry.text})

    def _json(self, event: str, at: float, record: dict[str, Any]) -> None:
        self._out(dump_line({"event": event, "at": iso(at), **record}))


def ending(view: DatasetView) -> str:
    """How a dataset stands when the run has ended."""
    if view.state == "done" and view.pilot is not None:
        return f"pilot of {view.pilot} done, {view.left} left: run without --limit"
    return "stopped" if view.state in {"running", "paused"} else view.state


def progress_line(view: DatasetView, at: float) -> str:
    """The story's log line, with the dataset's name and the manifest's total in front.

    `ok` and `failed` are prompts and sum to the first number; `err` counts failed attempts. Error
    families follow, and unreadable rows as one more of them, so that the shape stays one. Where the
    total is not the manifest's (a shard, --allow-short), `of` and the manifest's stand behind it.
    """
    average = view.mean_completion_tokens
    budget = f"/{compact(view.token_budget)}" if view.token_budget else ""
    verdicts = "".join(f" {line}" for line in _verdicts(view))
    asked = "" if view.manifest_prompts is None else f" of {view.manifest_prompts}"
    return (
        f"{local_hms(at)} {view.name} {view.ok + view.failed}/{view.prompts}{asked} "
        f"({view.ok} ok, {view.failed} failed, {view.attempt_errors} err) "
        f"{view.rows_per_s:.1f} req/s "
        f"avg_comp={'?' if average is None else f'{average:.0f}'}tok "
        f"tot={compact(view.completion_tokens)}{budget} ~${_dollars(view.cost_usd)} "
        f"ETA={coarse(view.eta_s)}{verdicts}"
    )


def closing_line(snapshot: Snapshot) -> str:
    """The last line of narration: how it ended, and what stands on disk."""
    rows = sum(view.rows for view in snapshot.datasets)
    usd, time = estimated(snapshot.forecast)
    why = f": {safe_text(snapshot.reason)}" if snapshot.reason else ""
    head = closed(f"{safe_text(snapshot.run)} {snapshot.state}{why}")
    unknown = snapshot.cost_unknown_attempts
    also = f", {plural(unknown, 'request')} of unknown cost" if unknown else ""
    if snapshot.twice_attempts:
        also += (
            f", {_twice_words(snapshot.twice_usd)} "
            f"({plural(snapshot.twice_attempts, 'reply', 'replies')} never seen)"
        )
    code = "" if snapshot.exit_code is None else f" (exit {snapshot.exit_code})"
    return (
        f"{head} "
        f"{rows} rows in {safe_text(snapshot.output)}, "
        f"cost {money(snapshot.cost_usd)}{usd}{also}, {duration(snapshot.elapsed_s)}{time}{code}"
    )


def _twice_words(usd: float | None) -> str:
    if usd is None:
        return "some may be paid twice, at an unknown price"
    return f"up to about {money(usd)} may be paid twice"


def _twice(snapshot: Snapshot) -> dict[str, Any]:
    """What may have been paid twice, where that is more than nothing."""
    if not snapshot.twice_attempts:
        return {}
    return {"twice_attempts": snapshot.twice_attempts, "twice_usd": snapshot.twice_usd}


@contextmanager
def draining_signals(run: OwnRun) -> Iterator[None]:
    """SIGINT and SIGTERM drain; the second one stops; the third leaves at once.

    Before the first request there is nothing to drain: the first one ends, the second leaves.
    """
    count = 0

    def handle(number: int) -> None:
        nonlocal count
        count += 1
        name = signal.Signals(number).name
        early = run.snapshot().state == "starting"
        if count == 1:
            run.send(Drain(), origin=name)
            _quietly(f"{name}: {_LEAVING if early else _DRAINING}\n")
        elif count == 2 and not early:  # noqa: PLR2004 - the second signal
            run.send(Stop(), origin=name)
            _quietly(f"{name}: stopping\n")
        else:
            leave_at_once(run)

    with routed(handle, signal.SIGINT, signal.SIGTERM):
        yield


def leave_at_once(run: OwnRun) -> None:
    """Leave the run where it is, and the process too."""
    run.abandon()
    leave_soon(INTERRUPTED)


def leave_soon(code: int) -> None:
    """See to it that the process leaves, even where a thread hangs in a read that never returns."""
    forced = threading.Timer(_FORCE_S, os._exit, (code,))
    forced.daemon = True
    forced.start()


def _dollars(usd: float | None) -> str:
    """A plain number for scripts to read: `14.2`, `0.0043`, or `?`."""
    if usd is None:
        return UNKNOWN
    return f"{usd:.1f}" if usd >= 1 else f"{usd:.4f}"


def _verdicts(view: DatasetView) -> Iterator[str]:
    seen = set()
    for line in view.errors:
        word = f"{safe_text(line.family)}:{line.verdict or line.count}"
        if word not in seen:
            seen.add(word)
            yield word
    if view.invalid:
        yield f"invalid_row:{view.invalid}"


def _until_closed(run: OwnRun, lost: Callable[[], None]) -> Callable[[bytes], None]:
    """Write data until its reader goes away; then drain, since nobody takes the data any more.

    A terminal that goes away is no reader of data: the run goes on without it.
    """
    closed = False
    write_data = _until_lost(1, lost)

    def write(data: bytes) -> None:
        nonlocal closed
        if closed:
            return
        try:
            write_data(data)
        except OSError:
            closed = True
            run.send(Drain(), origin="stdout")
            _quietly("stdout is closed: draining\n")

    return write


def _until_lost(descriptor: int, lost: Callable[[], None]) -> Callable[[bytes], None]:
    """Write; where the terminal is gone (EIO) go on with what `lost` has put in its place."""

    def write(data: bytes) -> None:
        try:
            _write(descriptor, data)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            lost()
            with suppress(OSError):
                _write(descriptor, data)

    return write


def _narrating(lost: Callable[[], None]) -> Callable[[str], None]:
    """Write narration; a run goes on when nobody listens to it any more."""
    write = _until_lost(2, lost)

    def narrate(text: str) -> None:
        with suppress(OSError):
            write(_encoded(text))

    return narrate


def _write_stdout(data: bytes) -> None:
    _write(1, data)


def _quietly(text: str) -> None:
    with suppress(OSError):
        _write(2, _encoded(text))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _write(descriptor: int, data: bytes) -> None:
    """Write past Python's buffers: a signal handler may interrupt this and write too."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # the terminal or pipe was made non-blocking by who shares it
            select.select([], [descriptor], [])
