"""Scenario as TOML text: the standard library reads TOML and does not write it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from engine.simulator.scenario import Scenario


def to_toml(scenario: Scenario) -> str:
    """Return a scenario file that reads back as the same scenario."""
    return "\n".join(_table(scenario.model_dump(mode="json", exclude_none=True), "")) + "\n"


def _table(table: dict[str, Any], prefix: str) -> list[str]:
    lines: list[str] = []
    later: list[str] = []
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            later += [f"[{name}]", *_table(value, f"{name}.")]
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for item in value:
                later += [f"[[{name}]]", *_table(item, f"{name}.")]
        else:
            lines.append(f"{key} = {_value(value)}")
    return lines + later


def _value(value: Any) -> str:
    """A JSON scalar or flat list is a TOML value too, save for the escape of DEL."""
    return orjson.dumps(value).decode().replace("\x7f", "\\u007f")
