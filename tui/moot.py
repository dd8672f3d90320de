"""Whether a question on the screen still stands: what it asks may have come about meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from engine.commands import Command, Drain, RetryFailed, Skip, Unskip
from engine.view.snapshot import DatasetView, Snapshot
from tui.draw import words

_OVER = frozenset({"done", "budget", "skipped"})


def moot(command: Command | None, snapshot: Snapshot) -> str:
    """Why there is nothing to ask any more; empty while the question stands.

    `command` is what yes would send; None for a question about the run as a whole.
    """
    if snapshot.exit_code is not None:
        return "the run has ended"
    if isinstance(command, Drain) and snapshot.state == "draining":
        return "the run is draining already"
    check = _CHECKS.get(type(command))
    name = getattr(command, "dataset", None)
    view = next((one for one in snapshot.datasets if one.name == name), None)
    return "" if check is None or view is None else check(view)


def _skip(view: DatasetView) -> str:
    word = words.dataset_state(view).text.lower()
    return f"{words.label(view)} is {word}" if view.state in _OVER else ""


def _unskip(view: DatasetView) -> str:
    return "" if view.state == "skipped" else f"{words.label(view)} is not skipped"


def _retry(view: DatasetView) -> str:
    return "" if view.failed else f"{words.label(view)} has no failed prompts"


_CHECKS: dict[type, Callable[[DatasetView], str]] = {
    Skip: _skip,
    Unskip: _unskip,
    RetryFailed: _retry,
}
