"""Partial screen updates that send only the cells and colours that changed.

Textual 8.2 sends each changed line from its widget's left edge, and a full colour code with a reset
for every span (textual._compositor.ChopsUpdate). Measured at 80x24 with six datasets at work and
2 Hz that is 11 KB/s; an SSH line deserves less (facts/terminal.md, 4).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from rich.color import Color, ColorSystem
from rich.console import Console, ConsoleOptions, RenderResult
from rich.control import Control
from rich.style import Style
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.strip import Strip

_ATTRIBUTES = (
    ("bold", "1"),
    ("dim", "2"),
    ("italic", "3"),
    ("underline", "4"),
    ("reverse", "7"),
    ("strike", "9"),
)


class Ink(NamedTuple):
    """A style as SGR codes; an empty colour is the terminal's own."""

    attributes: frozenset[str] = frozenset()
    foreground: tuple[str, ...] = ()
    background: tuple[str, ...] = ()


PLAIN = Ink()
_SYSTEMS = {"standard": ColorSystem.STANDARD, "256": ColorSystem.EIGHT_BIT}
"""Rich's names of what a terminal can show, where that is less than 24-bit colour."""


class TightUpdate(CompositorUpdate):
    """Draws the same cells as the update it wraps, whole or partial, in fewer bytes."""

    def __init__(self, update: ChopsUpdate | LayoutUpdate) -> None:
        self._update = update

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Textual's own way, for consoles that want segments."""
        return self._update.__rich_console__(console, options)

    def render_segments(self, console: Console) -> str:
        """The terminal sequences; they leave the terminal's style reset."""
        system = _SYSTEMS.get(console.color_system or "", ColorSystem.TRUECOLOR)
        out: list[str] = []
        ink = PLAIN
        update = self._update
        pieces = _whole(update) if isinstance(update, LayoutUpdate) else _partial(update)
        for x, y, strip in pieces:
            out.append(Control.move_to(x, y).segment.text)
            for segment in strip:
                wanted = _ink(segment.style or Style.null(), system)
                out.append(change(ink, wanted))
                out.append(segment.text)
                ink = wanted
        out.append(change(ink, PLAIN))
        return "".join(out)


def _partial(update: ChopsUpdate) -> Iterator[tuple[int, int, Strip]]:
    for y, left, right in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            start, stop = max(x, left), min(end, right)
            if strip is not None and start < stop:
                yield start, y, strip.crop(start - x, stop - x)


def _whole(update: LayoutUpdate) -> Iterator[tuple[int, int, Strip]]:
    for y, strips in enumerate(update.strips, update.region.y):
        yield update.region.x, y, Strip.join(strips)


def change(before: Ink, after: Ink) -> str:
    """The shortest SGR sequence from one style to another; empty where they are the same."""
    if before == after:
        return ""
    if after == PLAIN:
        return "\x1b[0m"
    codes: list[str] = []
    if before.attributes - after.attributes:
        codes.append("0")
        before = PLAIN
    codes += sorted(after.attributes - before.attributes)
    if after.foreground != before.foreground:
        codes += after.foreground or ("39",)
    if after.background != before.background:
        codes += after.background or ("49",)
    return f"\x1b[{';'.join(codes)}m"


@lru_cache(maxsize=1024)
def _ink(style: Style, system: ColorSystem) -> Ink:
    attributes = frozenset(code for name, code in _ATTRIBUTES if getattr(style, name))
    return Ink(attributes, _codes(style.color, system, True), _codes(style.bgcolor, system, False))


def _codes(color: Color | None, system: ColorSystem, foreground: bool) -> tuple[str, ...]:
    if color is None or color.is_default:
        return ()
    return color.downgrade(system).get_ansi_codes(foreground=foreground)
