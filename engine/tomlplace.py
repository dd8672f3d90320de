"""Find the line of a key in TOML text, for error messages; tomllib keeps no positions."""

from __future__ import annotations

import re
from collections.abc import Iterator

Place = tuple[str | int, ...]

_PART = r"""(?:"(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_TABLE = re.compile(rf"\s*\[\s*({_DOTTED})\s*\]")
_ARRAY = re.compile(rf"\s*\[\[\s*({_DOTTED})\s*\]\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=")
_PARTS = re.compile(_PART)
_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*"
    r"|[\[\]{}\n]",
    re.DOTALL,
)


def line_of(text: str, loc: Place) -> int | None:
    """The 1-based line where `loc` (table names, array indices, key) is set.

    Falls back to the nearest enclosing table's header; None where nothing matches.
    """
    best: tuple[int, int] | None = None
    for number, place in _places(text):
        depth = _shared(place, loc)
        if depth and (best is None or depth > best[0]):
            best = (depth, number)
    return best[1] if best else None


def _places(text: str) -> Iterator[tuple[int, Place]]:
    counts: dict[str, int] = {}
    table: Place = ()
    for number, statement in _statements(text.replace("\r\n", "\n")):
        if match := _ARRAY.match(statement):
            name = match[1]
            counts[name] = counts.get(name, -1) + 1
            table = (*_parts(name), counts[name])
            yield number, table
        elif match := _TABLE.match(statement):
            table = _parts(match[1])
            if table and isinstance(table[0], str) and table[0] in counts:
                table = (table[0], counts[table[0]], *table[1:])
            yield number, table
        elif match := _KEY.match(statement):
            yield number, (*table, *_parts(match[1]))


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement from its first line on: values of several lines are none of their own."""
    start, line, depth = 0, 1, 0
    begun = 1
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in "[{":
            depth += 1
        elif word in "]}":
            depth = max(0, depth - 1)
        elif word == "\n" and depth == 0:
            yield begun, text[start : token.start()]
            start, begun = token.end(), line + 1
        line += word.count("\n")
    yield begun, text[start:]


def _parts(name: str) -> Place:
    return tuple(part.strip("\"'") for part in _PARTS.findall(name))


def _shared(place: Place, loc: Place) -> int:
    """How many leading parts agree, 0 where `place` goes beyond or beside `loc`."""
    if len(place) > len(loc) or place != loc[: len(place)]:
        return 0
    return len(place)
