"""Request parameters (`sampling`, `extra_body`): nothing that breaks a request or wastes money."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.rules.json_values import json_problems
from engine.rules.problem import Problem

_OWNED = ("model", "messages", "stream", "tools", "provider")
_FALLBACKS = ("models", "route")
_CAPS = ("max_tokens", "max_completion_tokens")


def body_problems(body: Mapping[str, Any]) -> Iterator[Problem]:
    """What would break the request, or pay for answers that nobody keeps."""
    yield from json_problems(body)
    for key in _OWNED:
        if key in body:
            yield Problem((key,), "is set by eaglegen-tui itself; take it out")
    for key in _FALLBACKS:
        if key in body:
            yield Problem((key,), "fallback models would mix several teachers into one dataset")
    one = body.get("n", 1)
    if one != 1 or isinstance(one, bool):
        yield Problem(("n",), "must be 1: one answer of each request is kept")
    for key in _CAPS:
        value = body.get(key, 1)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            yield Problem((key,), f"must be a whole number of at least 1, not {_shown(value)}")


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | float) else f"a {type(value).__name__}"
