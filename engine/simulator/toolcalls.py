"""Tool calls of the simulated model: which functions it sees, and the native text of a call."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from engine.simulator.topic import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

_DECLARED = re.compile(r"^type (\w[\w.-]*) = \(_: ", re.MULTILINE)
_ARGUMENT = re.compile(r"^  (\w+)\??: (\w+)", re.MULTILINE)
_VALUES = {"string": "Lisbon", "number": 3.5, "integer": 3, "boolean": True}


@dataclass(frozen=True, slots=True)
class Function:
    """A declared function: its name and the types of its arguments."""

    name: str
    arguments: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; `index` counts over the whole conversation."""

    name: str
    index: int
    arguments: str

    @property
    def id(self) -> str:
        """The id as Kimi writes it: `functions.NAME:INDEX`."""
        return f"functions.{self.name}:{self.index}"


def functions_of(body: Mapping[str, Any]) -> list[Function]:
    """Return the functions declared by `tools`, or by a raw tool declaration in the messages."""
    tools = body.get("tools")
    if isinstance(tools, list) and tools:
        return [_from_schema(t) for t in tools if isinstance(t, dict)]
    head = body["messages"][0]
    if head.get("role") != "system" or head.get("name") != "tool_declare":
        return []
    return _from_declaration(text_of(head.get("content")))


def _from_schema(tool: dict[str, Any]) -> Function:
    function = tool.get("function") or {}
    properties = (function.get("parameters") or {}).get("properties") or {}
    arguments = ((k, str(v.get("type"))) for k, v in properties.items() if isinstance(v, dict))
    return Function(str(function.get("name")), tuple(arguments))


def _from_declaration(text: str) -> list[Function]:
    found = list(_DECLARED.finditer(text))
    ends = [m.start() for m in found[1:]] + [len(text)]
    return [
        Function(m[1], tuple(_ARGUMENT.findall(text[m.end() : end])))
        for m, end in zip(found, ends, strict=True)
    ]


def wanted(body: Mapping[str, Any]) -> bool:
    """Tell whether a call may be made: not after a tool's result, nor with tool_choice none."""
    return body["messages"][-1].get("role") == "user" and body.get("tool_choice") != "none"


def next_index(messages: list[Any]) -> int:
    """Return the index of the next call: one counter over the conversation."""
    return sum(len(m.get("tool_calls") or ()) for m in messages)


def make_calls(functions: list[Function], first: int, rng: Random) -> tuple[Call, ...]:
    """Call one function, or sometimes two, with arguments of the declared types."""
    chosen = [rng.choice(functions) for _ in range(1 + (rng.random() < 0.2))]  # noqa: PLR2004
    return tuple(Call(f.name, first + n, _arguments(f, rng)) for n, f in enumerate(chosen))


def _arguments(function: Function, rng: Random) -> str:
    values = {name: _VALUES.get(kind, "value") for name, kind in function.arguments}
    if "integer" in dict(function.arguments).values():
        values = {k: rng.randint(1, 99) if v == 3 else v for k, v in values.items()}  # noqa: PLR2004
    text = orjson.dumps(values).decode()
    # Models write JSON with a space after the colon and the comma.
    return text.replace('":', '": ').replace(',"', ', "')


def section(calls: tuple[Call, ...]) -> str:
    """Return the calls as the model samples them."""
    written = "".join(
        f"<|tool_call_begin|>{c.id}<|tool_call_argument_begin|>{c.arguments}<|tool_call_end|>"
        for c in calls
    )
    return f"<|tool_calls_section_begin|>{written}<|tool_calls_section_end|>"
