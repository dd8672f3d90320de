"""Every glyph the screen uses: each is one cell wide and in the common monospace fonts."""

from __future__ import annotations

from engine.format import char_width

BARS = "▁▂▃▄▅▆▇█"
"""One to eight eighths of a cell, from the ground up."""
ZERO = "_"
"""Work went on and nothing came: the ground line of a chart."""
GAP = "╌"
"""Work was paused: no value, which is not zero."""
HELD = "≈"
"""Work was held by the engine itself: disk, credits, the account's limit."""
HERE = "^"
"""An operator acted in the column above."""
FULL = "█"
HALF = "▒"
"""Sent and not answered yet."""
REST = "░"
DOT = "·"
ELLIPSIS = "…"

STARTING = "◌"
RUNNING = "►"
PAUSED = "║"
WAITING = "◆"
DRAINING = "▼"
DONE = "✓"
STOPPED = "■"
QUEUED = "○"
SKIPPED = "»"
BUDGET = "●"
STALLED = "▷"

ACTIVE = "▲"
RESOLVED = "✓"
STRUCTURAL = "✗"
SUSPECT = "▲"
FROZEN = "*"
CURSOR = "►"

_PLAIN = {
    **dict(zip(BARS, ".:-=+*%#", strict=True)),
    GAP: "/",
    HELD: "~",
    "╵": "'",
    HALF: "=",
    REST: ".",
    DOT: "-",
    ELLIPSIS: "~",
    STARTING: "o",
    RUNNING: ">",
    PAUSED: "|",
    WAITING: "?",
    DRAINING: "v",
    DONE: "+",
    STOPPED: "#",
    QUEUED: "o",
    SKIPPED: ">",
    BUDGET: "$",
    STALLED: "!",
    ACTIVE: "^",
    STRUCTURAL: "x",
    "↓": "v",
    "↑": "^",
    "←": "<",
    "→": ">",
    "│": "|",
}
_TABLE = str.maketrans(_PLAIN)


def ascii_only(text: str) -> str:
    """The text in ASCII, as many cells wide: glyphs have their stand-ins, what is left is `?`."""
    if text.isascii():
        return text
    swapped = text.translate(_TABLE)
    return swapped if swapped.isascii() else "".join(map(_stand_in, swapped))


def _stand_in(char: str) -> str:
    return char if char.isascii() else "?" * char_width(char)
