"""The footer's keys and the help screen's lines, both from the bindings that are live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine import format as fmt
from tui.draw.paint import Field, Line, Span, arrange, exactly


class Key(NamedTuple):
    """A key as it is shown, what it does in a word or two, and in a sentence."""

    keys: str
    short: str
    sentence: str
    rank: int = 0
    """On a narrow footer the highest rank goes first; keys without a word stand in the help."""


def footer(keys: Sequence[Key], cells: int) -> Line:
    """`p pause  P pause run  + - throttle  s skip  q quit  ? help`."""
    fields = [
        Field((Span(key.keys, "accent", bold=True), Span(f" {key.short}", "dim")), key.rank)
        for key in keys
        if key.short
    ]
    return arrange(cells, fields)


def help_lines(keys: Sequence[Key], cells: int) -> list[Line]:
    """One line per key, keys in a column of their own."""
    column = max((fmt.width(key.keys) for key in keys), default=0) + 2
    lines = []
    for key in keys:
        head = Span(fmt.pad(key.keys, column), "accent", bold=True)
        lines.append(exactly((head, Span(key.sentence)), cells))
    return lines
