"""Find the line of a key in TOML text, for error messages; tomllib keeps no positions."""

from __future__ import annotations

import re

_TABLE = re.compile(r"\s*\[(?!\[)\s*([^\]]+?)\s*\]\s*(?:#|$)")
_ARRAY = re.compile(r"\s*\[\[\s*([^\]]+?)\s*\]\]\s*(?:#|$)")
_KEY = re.compile(r"\s*([A-Za-z0-9_\-\"'.]+)\s*=")


def line_of(text: str, loc: tuple[str | int, ...]) -> int | None:
    """The 1-based line where `loc` (table names, array indices, key) is set.

    Falls back to the nearest enclosing table's header; None where nothing matches.
    """
    best: tuple[int, int] | None = None
    for number, place in _places(text):
        depth = _shared(place, loc)
        if depth and (best is None or depth > best[0]):
            best = (depth, number)
    return best[1] if best else None


def _places(text: str) -> list[tuple[int, tuple[str | int, ...]]]:
    places: list[tuple[int, tuple[str | int, ...]]] = []
    counts: dict[str, int] = {}
    table: tuple[str | int, ...] = ()
    for number, line in enumerate(text.splitlines(), 1):
        if match := _ARRAY.match(line):
            name = match[1]
            counts[name] = counts.get(name, -1) + 1
            table = (*_parts(name), counts[name])
            places.append((number, table))
        elif match := _TABLE.match(line):
            table = _parts(match[1])
            if table and isinstance(table[0], str) and table[0] in counts:
                table = (table[0], counts[table[0]], *table[1:])
            places.append((number, table))
        elif match := _KEY.match(line):
            places.append((number, (*table, *_parts(match[1]))))
    return places


def _parts(name: str) -> tuple[str | int, ...]:
    return tuple(part.strip().strip("\"'") for part in name.split("."))


def _shared(place: tuple[str | int, ...], loc: tuple[str | int, ...]) -> int:
    """How many leading parts agree, 0 where `place` goes beyond or beside `loc`."""
    if len(place) > len(loc) or place != loc[: len(place)]:
        return 0
    return len(place)
