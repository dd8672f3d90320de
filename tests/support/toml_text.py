"""Writes parsed TOML back as text: whatever a test has made of a manifest."""

from __future__ import annotations

import json
from datetime import date, datetime, time
from typing import Any


def toml_text(document: dict[str, Any]) -> str:
    """Plain keys first, then a table for each dict, and `[[x]]` for lists of nothing but dicts."""
    plain, tables = [], []
    for key, value in document.items():
        if isinstance(value, dict):
            tables += [f"[{_key(key)}]", *_pairs(value)]
        elif isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
            for entry in value:
                tables += [f"[[{_key(key)}]]", *_pairs(entry)]
        else:
            plain.append(f"{_key(key)} = {toml_value(value)}")
    return "\n".join([*plain, *tables]) + "\n"


def toml_value(value: Any) -> str:
    """One value in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(_pairs(value)) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, bool | str):
        return json.dumps(value).replace("\x7f", "\\u007f")
    return repr(value)


def _pairs(table: dict[str, Any]) -> list[str]:
    return [f"{_key(key)} = {toml_value(value)}" for key, value in table.items()]


def _key(key: str) -> str:
    return toml_value(key)
