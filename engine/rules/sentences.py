"""A refused manifest in words: file, line, key, what is wrong, and what to write instead."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from engine.format import safe_text
from engine.rules.problem import problems_of
from engine.tomlplace import line_of

Place = tuple[str | int, ...]
KeysBeside = Callable[[Place], Sequence[str]]
"""The known keys of the table that a place lies in."""

_WORDS = {
    "bool_type": "must be true or false",
    "dict_type": "must be a table, such as { key = value }",
    "finite_number": "must be a finite number",
    "float_type": "must be a number, without quotes",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number, without quotes",
    "model_type": "must be a table",
    "string_too_short": "must not be empty",
    "string_type": "must be text in quotes",
}
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_NAME_CELLS = 60
_NO_DATASET = (
    "there is no dataset; add a [[datasets]] table with name, source and prompts for each of them"
)
_NO_STREAM = "streaming is not supported yet; leave it false"


def sentences(
    error: ValidationError, raw: dict[str, Any], text: str, path: Path, keys_beside: KeysBeside
) -> list[str]:
    """One sentence for each fault; `raw` is what `text` was parsed into."""
    items = error.errors(include_url=False)
    inner = {item["loc"][0] for item in items if len(item["loc"]) > 1}
    # a table whose entries are faulty is also reported as too short: only the entries matter
    wanted = [i for i in items if not (i["type"] == "too_short" and i["loc"][0] in inner)]
    said = (
        _sentence(place, words, raw, text, path)
        for item in wanted
        for place, words in _faults(item, keys_beside)
    )
    return list(dict.fromkeys(said))


def _faults(item: Any, keys_beside: KeysBeside) -> Iterator[tuple[Place, str]]:
    loc: Place = tuple(item["loc"])
    problems = problems_of(item)
    for problem in problems:
        yield (*loc, *problem.place), problem.words
    if not problems:
        yield loc, _words(item, loc, keys_beside)


def _words(item: Any, loc: Place, keys_beside: KeysBeside) -> str:
    kind = item["type"]
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(str(loc[-1]), keys_beside(loc), n=1, cutoff=0.5)
        return "unknown" + (f"; did you mean {near[0]}?" if near else "")
    if loc == ("datasets",) and kind in {"missing", "too_short"}:
        return _NO_DATASET
    if kind == "tuple_type":
        return f"write [[{loc[-1]}]], once for each of them"
    if kind == "missing":
        return "missing"
    if loc == ("endpoint", "stream"):
        return _NO_STREAM
    message = str(item["msg"]).removeprefix("Value error, ")
    return _WORDS.get(kind) or message[:1].lower() + message[1:]


def _sentence(place: Place, words: str, raw: dict[str, Any], text: str, path: Path) -> str:
    line = line_of(text, place)
    where = f"{path}:{line}" if line else str(path)
    table, rest = _table(place, raw)
    key = ".".join(map(_key, rest))
    lead = f"{where}: {table}: " if table else f"{where}: "
    if words.startswith("unknown"):
        return f"{lead}unknown key {key}{words.removeprefix('unknown')}"
    if words == "missing":
        return f"{lead}{key} is missing"
    return f"{lead}{key}: {words}" if key else lead + words


def _key(part: str | int) -> str:
    plain = str(part)
    return plain if _PLAIN.fullmatch(plain) else f"'{safe_text(plain, _NAME_CELLS)}'"


def _table(place: Place, raw: dict[str, Any]) -> tuple[str, Place]:
    """A dataset by its number and name, and the rest of the place; empty elsewhere."""
    if place[:1] != ("datasets",) or len(place) == 1 or not isinstance(place[1], int):
        return "", place
    entry = raw["datasets"][place[1]]
    name = entry.get("name") if isinstance(entry, dict) else None
    named = f" ('{safe_text(name, _NAME_CELLS)}')" if isinstance(name, str) and name else ""
    return f"dataset {place[1] + 1}{named}", place[2:]
