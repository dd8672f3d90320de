"""Values that are sent or written as JSON: TOML can say more than JSON can."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from engine.rules.problem import Problem

LEAST_INTEGER, MOST_INTEGER = -(2**63), 2**64 - 1
"""What run.json can hold: integers of 64 bits (orjson)."""
MOST_LEVELS = 32
"""Tables in tables; JSON readers give up somewhere above a hundred."""


def json_problems(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[Problem]:
    """What of a parsed TOML value has no JSON form, each with its place and what to write."""
    if len(place) > MOST_LEVELS:
        yield Problem(place[:1], f"nested more than {MOST_LEVELS} levels deep")
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from json_problems(inner, (*place, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from json_problems(inner, (*place, index))
    elif words := _unfit(value):
        yield Problem(place, words)


def _unfit(value: Any) -> str:
    if value is None or isinstance(value, str | bool):
        return ""
    if isinstance(value, int):
        fits = LEAST_INTEGER <= value <= MOST_INTEGER
        return "" if fits else "the number has more than 64 bits; write a smaller one"
    if isinstance(value, float):
        if math.isfinite(value):
            return ""
        return f"{value} is no JSON number; write a finite one, or leave the key out"
    if isinstance(value, datetime | date | time):
        return f'a date or time is no JSON value; write it in quotes: "{value.isoformat()}"'
    return f"{type(value).__name__} is no JSON value"
