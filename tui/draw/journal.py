"""The journal as lines: when, what kind, which dataset, and what happened; the newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from engine import format as fmt
from engine.clock import local_hms
from engine.view.snapshot import JournalEntry
from tui.draw.paint import Line, Span, exactly, wrap
from tui.draw.table import text

_HEAD = 21
"""Cells of the time and the kind."""
_ROLES = {"command": "accent", "verdict": "warn", "disk": "warn"}


def body(entries: Sequence[JournalEntry], cells: int) -> list[Line]:
    """Every entry in full; a heading where the day changes."""
    if not entries:
        return [text("nothing has been ordered or decided yet", cells)]
    lines: list[Line] = []
    today = _day(entries[0].at)
    day = today
    for entry in entries:
        if _day(entry.at) != day:
            day = _day(entry.at)
            lines += [(), exactly((Span(day, "text", bold=True),), cells)]
        lines += _entry(entry, cells)
    return lines


def _entry(entry: JournalEntry, cells: int) -> list[Line]:
    about = ""
    if entry.dataset and entry.dataset not in entry.text:
        about = f"{fmt.safe_text(entry.dataset)}: "
    kind = fmt.safe_text(entry.kind, 10)
    parts = wrap(about + fmt.safe_text(entry.text), max(12, cells - _HEAD)) or [""]
    heads = [
        (Span(f"{local_hms(entry.at)}  ", "dim"), Span(fmt.pad(kind, 11), _role(entry.kind))),
        *[(Span(" " * _HEAD),)] * len(parts),
    ]
    return [exactly((*start, Span(part)), cells) for start, part in zip(heads, parts, strict=False)]


def _role(kind: str) -> str:
    return _ROLES.get(kind, "dim")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("%A %Y-%m-%d")
