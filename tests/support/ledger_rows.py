"""Rows as short as a row may be, for what folds them."""

from __future__ import annotations

from typing import Any


def bare_row(identifier: str, **more: Any) -> dict[str, Any]:
    """A row that says little; `more` overrides its fields."""
    row = {
        "id": identifier,
        "dataset": identifier.partition("/")[0],
        "index": 0,
        "turn": int(identifier.partition("#")[2] or 0),
        "messages": [],
        "content": "",
        "exactness": "unverified",
        "flags": [],
        "finish_reason": "stop",
        "usage": {},
        "attempts": 1,
    }
    return row | more
