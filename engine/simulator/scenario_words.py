"""Which scenarios there are, and what is wrong with one: file, line, key, and the nearest name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from engine.rules.problem import problems_of
from engine.tomlplace import line_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

Place = tuple[str | int, ...]


def builtin_names() -> list[str]:
    """The scenarios that need no file."""
    folder = files(__package__).joinpath("scenarios")
    names = (entry.name for entry in folder.iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def nearest(name: str, known: Sequence[str]) -> str:
    """A question that ends a sentence; empty where nothing resembles the name."""
    match = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {match[0]!r}?" if match else ""


def sentences(
    errors: Sequence[ErrorDetails], name: str, text: str, known_keys: Sequence[str]
) -> list[str]:
    """One sentence for each fault; `name` is the file's, `text` what it holds, or empty."""
    return [
        _sentence(name, text, place, words)
        for item in errors
        for place, words in _faults(item, known_keys)
    ]


def _faults(item: ErrorDetails, known_keys: Sequence[str]) -> Iterator[tuple[Place, str]]:
    problems = problems_of(item)
    for problem in problems:
        yield (*item["loc"], *problem.place), problem.words
    if not problems and item["type"] == "extra_forbidden":
        yield item["loc"], f"unknown key{nearest(str(item['loc'][-1]), known_keys)}"
    elif not problems:
        yield item["loc"], item["msg"][:1].lower() + item["msg"][1:]


def _sentence(name: str, text: str, place: Place, words: str) -> str:
    line = line_of(text, place)
    where = f"{name}:{line}" if line else name
    key = "".join(f" {part + 1}" if isinstance(part, int) else f".{part}" for part in place)
    return f"{where}: {key.removeprefix('.')}: {words}" if key else f"{where}: {words}"
