"""A fault of a value, with its place inside the value, as pydantic carries it to the message."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic_core import PydanticCustomError

TYPE = "eaglegen"
"""The type of these errors among pydantic's own."""


class Problem(NamedTuple):
    """`place` leads from the checked value to the faulty one; empty: it is the value itself."""

    place: tuple[str | int, ...]
    words: str


def refuse(problems: Iterable[Problem]) -> None:
    """Raise one validation error that holds all of them; nothing where there are none."""
    found = list(problems)
    if found:
        words = "; ".join(problem.words for problem in found)
        raise PydanticCustomError(TYPE, "{words}", {"words": words, "problems": found})


def problems_of(error: Any) -> list[Problem]:
    """What one entry of `ValidationError.errors()` holds; empty for pydantic's own errors."""
    return list(error.get("ctx", {}).get("problems", ())) if error["type"] == TYPE else []
