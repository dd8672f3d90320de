"""Which lines a dataset's pane has room for: each height adds one line, and none changes places."""

from __future__ import annotations

from collections import Counter

from engine.view.snapshot import DatasetView, RunState
from tui.draw import dataset, errors
from tui.draw.paint import Line, exactly

_LIVE = (
    *("state", "prompts", "rate", "gauge", "tokens", "errors", "rows", "bar"),
    *("errors", "rate", "errors", "rate", "errors", "errors", "rate", "errors"),
)
_URGENT = (
    *("state", "prompts", "gauge", "errors", "rate", "tokens", "rows", "bar"),
    *("errors", "errors", "rate", "errors", "errors", "rate", "errors", "rate"),
)
_ENDED = ("state", "prompts", "tokens", "rows", "gauge", *["errors"] * 9)
_QUEUED = ("state", "prompts", "tokens")


def wanted(view: DatasetView) -> int:
    """Lines that the pane of a dataset in this state can fill."""
    growth = _growth(view)
    if growth is _ENDED:
        return 10 if view.errors else 7
    return 4 if growth is _QUEUED else len(growth)


def pane(view: DatasetView, cells: int, rows: int, now: float, run: RunState) -> list[Line]:
    """The pane's inside in exactly `rows` lines; `now` is the time that ages are counted from."""
    given = Counter(_growth(view)[:rows])
    lines = [dataset.state_line(view, cells, run)]
    if given["prompts"]:
        lines.append(dataset.prompts_line(view, cells))
    if given["tokens"]:
        lines.append(dataset.tokens_line(view, cells))
    if given["rows"]:
        lines.append(dataset.rows_line(view, cells))
    if given["rate"]:
        lines += dataset.rate_lines(view, cells, given["rate"])
    if given["gauge"]:
        lines.append(errors.gauge(view, cells, with_recent=not given["bar"] and _lives(view)))
    if given["bar"]:
        lines.append(errors.gauge_bar(view, cells))
    if given["errors"]:
        lines += errors.lines(view, cells, given["errors"], now)
    blank = exactly((), cells)
    return [*lines, *[blank] * (rows - len(lines))]


def _lives(view: DatasetView) -> bool:
    return view.state in dataset.LIVE


def _growth(view: DatasetView) -> tuple[str, ...]:
    if not view.attempts.total and not view.rows and not view.in_flight:
        return _QUEUED
    if not _lives(view) and not view.in_flight:
        return _ENDED
    urgent = any(error.verdict in {"ACTIVE", "STRUCTURAL"} for error in view.errors)
    return _URGENT if urgent else _LIVE
