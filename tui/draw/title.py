"""The terminal's title: which run, how far, in what state."""

from __future__ import annotations

from engine import format as fmt
from engine.view.snapshot import Snapshot
from tui.draw.header import totals

_NAME_CELLS = 40


def title(snapshot: Snapshot) -> str:
    """`kimi-k25-eagle3 34% running`; the percent is of prompts that need nothing more."""
    total = totals(snapshot.datasets)
    percent = f" {100 * total.finished // total.prompts}%" if total.prompts else ""
    return f"{fmt.safe_text(snapshot.run, _NAME_CELLS)}{percent} {snapshot.state}"
