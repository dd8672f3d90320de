"""The front end of scripts: progress lines on stderr, JSON lines on stdout (DESIGN §5)."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from engine.clock import iso, local_hms
from engine.commands import Drain, Stop
from engine.format import UNKNOWN, coarse, compact, duration, money, safe_text
from engine.frame import dataset_status, status
from engine.jsonlines import dump_line
from engine.runner import EngineThread
from engine.snapshot import DatasetView, JournalEntry, Snapshot

_POLL_S = 0.25
_LOUD = frozenset({"command", "state", "verdict", "provider", "disk", "note"})


def watch(run: EngineThread, *, interval_s: float, as_json: bool) -> int:
    """Report a run until it ends; SIGINT and SIGTERM drain, a second one stops."""
    with draining_signals(run):
        return _report(run, interval_s, Reporter(as_json=as_json, out=_until_closed(run)))


def _report(run: EngineThread, interval_s: float, reporter: Reporter) -> int:
    due = 0.0
    while not run.join(_POLL_S):
        snapshot = run.snapshot()
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
        self._err = err or _write_stderr
        self._told = 0

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
    families follow, and unreadable rows as one more of them, so that the shape stays one.
    """
    average = view.mean_completion_tokens
    budget = f"/{compact(view.token_budget)}" if view.token_budget else ""
    verdicts = "".join(f" {line}" for line in _verdicts(view))
    return (
        f"{local_hms(at)} {view.name} {view.ok + view.failed}/{view.prompts} "
        f"({view.ok} ok, {view.failed} failed, {view.attempt_errors} err) "
        f"{view.rows_per_s:.1f} req/s "
        f"avg_comp={'?' if average is None else f'{average:.0f}'}tok "
        f"tot={compact(view.completion_tokens)}{budget} ~${_dollars(view.cost_usd)} "
        f"ETA={coarse(view.eta_s)}{verdicts}"
    )


def closing_line(snapshot: Snapshot) -> str:
    """The last line of narration: how it ended, and what stands on disk."""
    rows = sum(view.rows for view in snapshot.datasets)
    why = f": {safe_text(snapshot.reason)}" if snapshot.reason else ""
    unknown = snapshot.cost_unknown_attempts
    also = f", {unknown} requests of unknown cost" if unknown else ""
    if snapshot.twice_attempts:
        also += (
            f", up to about {money(snapshot.twice_usd)} may be paid twice "
            f"({snapshot.twice_attempts} replies never seen)"
        )
    return (
        f"{safe_text(snapshot.run)} {snapshot.state}{why}. "
        f"{rows} rows in {safe_text(snapshot.output)}, "
        f"cost {money(snapshot.cost_usd)}{also}, {duration(snapshot.elapsed_s)} "
        f"(exit {snapshot.exit_code})"
    )


def _twice(snapshot: Snapshot) -> dict[str, Any]:
    """What may have been paid twice, where that is more than nothing."""
    if not snapshot.twice_attempts:
        return {}
    return {"twice_attempts": snapshot.twice_attempts, "twice_usd": snapshot.twice_usd}


@contextmanager
def draining_signals(run: EngineThread) -> Iterator[None]:
    """SIGINT and SIGTERM drain; the second one stops; the third leaves at once."""
    count = 0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal count
        del frame
        count += 1
        name = signal.Signals(number).name
        if count == 1:
            run.send(Drain(), origin=name)
            _write_stderr(f"{name}: draining; once more stops and cancels what is in flight\n")
        elif count == 2:  # noqa: PLR2004 - the second signal
            run.send(Stop(), origin=name)
            _write_stderr(f"{name}: stopping\n")
        else:
            run.abandon()

    earlier = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def _dollars(usd: float | None) -> str:
    """A plain number for scripts to read: `14.2`, `0.0043`, or `?`."""
    if usd is None:
        return UNKNOWN
    return f"{usd:.1f}" if usd >= 1 else f"{usd:.4f}"


def _verdicts(view: DatasetView) -> Iterator[str]:
    seen = set()
    for line in view.errors:
        word = f"{line.family}:{line.verdict or line.count}"
        if word not in seen:
            seen.add(word)
            yield word
    if view.invalid:
        yield f"invalid_row:{view.invalid}"


def _until_closed(run: EngineThread) -> Callable[[bytes], None]:
    """Write data until its reader goes away; then drain, since nobody takes the data any more."""
    closed = False

    def write(data: bytes) -> None:
        nonlocal closed
        if closed:
            return
        try:
            _write_stdout(data)
        except OSError:
            closed = True
            run.send(Drain(), origin="stdout")
            _write_stderr("stdout is closed: draining\n")

    return write


def _write_stdout(data: bytes) -> None:
    _write(1, data)


def _write_stderr(text: str) -> None:
    with suppress(OSError):  # a run goes on when nobody listens to its narration any more
        _write(2, text.encode("utf-8", "backslashreplace"))


def _write(descriptor: int, data: bytes) -> None:
    """Write past Python's buffers: a signal handler may interrupt this and write too."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:  # the terminal or pipe was made non-blocking by who shares it
            select.select([], [descriptor], [])
