"""Tool declarations as the Kimi templates put them into the prompt.

K2.5 and K2.6 declare tools as TypeScript-like text over key-sorted schemas; a schema that the
model's own encoder cannot express makes it declare all tools as compact JSON instead, as
K2-Thinking always does. Which schemas those are is part of the format: the server falls back on
the same ones. Source: moonshotai/Kimi-K2.5, `tool_declaration_ts.py` and `tokenization_kimi.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from engine.tokens import kimi

_INDENT: Final = "  "
_LIMITS: Final[dict[str, tuple[str, ...]]] = {
    "string": ("maxLength", "minLength", "pattern"),
    "number": ("maximum", "minimum"),
    "integer": ("maximum", "minimum"),
    "array": ("maxItems", "minItems"),
}
_UNION_MEMBERS: Final[dict[str, str]] = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
    "object": "{}",
    "array": "Array<any>",
}
_ENUM_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
}
# What a malformed schema raises on its way through; the model's encoder swallows the same.
_INEXPRESSIBLE: Final = (AttributeError, KeyError, RecursionError, TypeError, ValueError)


def declare_tools(tools: Sequence[Any], *, variant: str = kimi.KIMI_K25) -> str:
    """The text of the `tool_declare` message for a non-empty list of OpenAI-style tools."""
    ordered = _sort_keys(list(tools))
    text = "" if variant == kimi.KIMI_K2_THINKING else _typescript(ordered)
    return text or json.dumps(ordered, ensure_ascii=False, separators=(",", ":"))


def _sort_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sort_keys(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sort_keys(item) for item in value]
    return value


def _typescript(tools: list[Any]) -> str:
    """The TypeScript-like declaration; empty when the tools cannot be expressed in it."""
    try:
        functions = [
            _Function(tool["function"]).text()
            for tool in tools
            if tool.get("type") == "function" and tool.get("function")
        ]
    except _INEXPRESSIBLE:
        return ""
    if not functions:
        return ""
    body = "\n".join(functions)
    return f"# Tools\n\n## functions\nnamespace functions {{\n{body}\n}}\n"


def _comment(text: str, indent: str = "") -> str:
    """A description as comment lines; empty lines stay empty, without indent."""
    return "\n".join(f"{indent}// {line}" if line else "" for line in text.split("\n"))


@dataclass(frozen=True, slots=True)
class _Type:
    """A parsed schema: how it prints at an indent, and what is said above it."""

    text: Callable[[str], str]
    description: str = ""
    limits: tuple[str, ...] = ()

    def comments(self, indent: str) -> str:
        lines = [_comment(self.description, indent)] if self.description else []
        if self.limits:
            lines.append(f"{indent}// {', '.join(self.limits)}")
        return "".join(f"{line}\n" for line in lines)


@dataclass(frozen=True, slots=True)
class _Field:
    """A property of an object, or a parameter of a function."""

    name: str
    type: _Type
    optional: bool
    default: Any

    def text(self, indent: str) -> str:
        note = self.type.comments(indent)
        if self.default is not None:
            note += f"{indent}// Default: {_default(self.default)}\n"
        mark = "?" if self.optional else ""
        return f"{note}{indent}{self.name}{mark}: {self.type.text(indent)}"


def _default(value: Any) -> str:
    """Numbers and booleans print as Python does (`True`), everything else as JSON."""
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


@dataclass(slots=True)
class _Function:
    """One function's declaration; collects the `$defs` and self references met on the way."""

    function: Mapping[str, Any]
    definitions: dict[str, Any] = field(default_factory=dict)
    refers_to_itself: bool = False

    def text(self) -> str:
        fields, rest = self._members(self.function.get("parameters") or {})
        # Only what the parameters themselves reach counts: `$defs` are parsed afterwards.
        to_itself, definitions = self.refers_to_itself, dict(self.definitions)
        interfaces = [_root_interface(fields)] if to_itself else []
        interfaces += [self._interface(name, schema) for name, schema in definitions.items()]
        argument = "parameters" if to_itself else _object_text(fields, rest, "")
        name = self.function.get("name", "function")
        description = self.function.get("description")
        parts = (
            "\n".join(interfaces),
            _comment(description) if description else "",
            f"type {name} = (_: {argument}) => any;",
        )
        return "\n".join(part for part in parts if part)

    def _interface(self, name: str, schema: Any) -> str:
        body = self._parse(schema).text("")
        description = schema.get("description", "")
        note = f"{_comment(description)}\n" if description else ""
        return f"{note}interface {name} {body}"

    def _members(self, schema: Mapping[str, Any]) -> tuple[list[_Field], _Type | None]:
        """The properties of an object schema and the type of all others, if it is stated."""
        self.definitions.update(schema.get("$defs") or {})
        rest = self._additional(schema.get("additionalProperties"))
        if "properties" not in schema:
            return [], rest
        required = set(schema.get("required", []))
        fields = [
            _Field(
                name=name,
                type=self._parse(member),
                optional=name not in required,
                default=member.get("default") if isinstance(member, dict) else None,
            )
            for name, member in schema["properties"].items()
        ]
        return fields, rest

    def _additional(self, schema: Any) -> _Type | None:
        if schema is None:
            return None
        if isinstance(schema, bool):
            return _named("any" if schema else "never")
        if not isinstance(schema, dict):
            raise TypeError("additionalProperties is neither a boolean nor a schema")
        return self._parse(schema)

    def _parse(self, schema: Any) -> _Type:
        if isinstance(schema, bool):
            return _named("any" if schema else "null")
        if not isinstance(schema, dict):
            raise TypeError("a schema is neither a boolean nor an object")
        parsers: tuple[tuple[str, Callable[[dict[str, Any]], _Type]], ...] = (
            ("$ref", self._reference),
            ("anyOf", self._any_of),
            ("enum", _enumeration),
            ("type", self._typed),
        )
        for keyword, parse in parsers:
            if keyword in schema:
                return parse(schema)
        if schema:
            raise ValueError("a schema without $ref, anyOf, enum and type")
        return _named("any")

    def _reference(self, schema: dict[str, Any]) -> _Type:
        target: str = schema["$ref"]
        if target == "#":
            self.refers_to_itself = True
            return _named("parameters", schema)
        name = target.rsplit("/", maxsplit=1)[-1]
        if not target.startswith("#/$defs/") or not isinstance(self.definitions.get(name), dict):
            raise ValueError("a reference to something other than a known definition")
        return _named(name, schema)

    def _any_of(self, schema: dict[str, Any]) -> _Type:
        members = [self._parse(member) for member in schema["anyOf"]]
        return _Type(
            lambda indent: " | ".join(member.text(indent) for member in members),
            schema.get("description", ""),
        )

    def _typed(self, schema: dict[str, Any]) -> _Type:
        kind = schema["type"]
        if isinstance(kind, list):
            return _named(" | ".join(_UNION_MEMBERS[member] for member in kind), schema)
        if kind == "object":
            fields, rest = self._members(schema)
            return _Type(
                lambda indent: _object_text(fields, rest, indent), schema.get("description", "")
            )
        if kind == "array":
            return self._array(schema)
        return _named("number" if kind == "integer" else kind, schema, _limits(schema, kind))

    def _array(self, schema: dict[str, Any]) -> _Type:
        item = self._parse(schema["items"]) if schema.get("items") else _named("any")

        def text(indent: str) -> str:
            inner = indent + _INDENT
            comments = item.comments(inner)
            if not comments:
                return f"Array<{item.text(indent)}>"
            return f"Array<\n{comments}{inner}{item.text(inner)}\n{indent}>"

        return _Type(text, schema.get("description", ""), _limits(schema, "array"))


def _named(
    name: str, schema: Mapping[str, Any] | None = None, limits: tuple[str, ...] = ()
) -> _Type:
    """A type that prints as a word, whatever the indent."""
    return _Type(lambda _: name, (schema or {}).get("description", ""), limits)


def _limits(schema: Mapping[str, Any], kind: str) -> tuple[str, ...]:
    keys = _LIMITS.get(kind, ())
    return tuple(f"{key}: {schema[key]}" for key in keys if key in schema)


def _enumeration(schema: dict[str, Any]) -> _Type:
    values = schema["enum"]
    if "type" in schema:
        allowed = _ENUM_TYPES.get(_enum_kind(schema["type"]))
        for value in values:
            if value is not None and allowed is not None and not isinstance(value, allowed):
                raise ValueError("an enum value is not of the declared type")
    words = [f'"{value}"' if isinstance(value, str) else str(value) for value in values]
    return _named(" | ".join(words), schema)


def _enum_kind(kind: Any) -> str:
    """The one type beside null that an enum declares."""
    if not isinstance(kind, list):
        return str(kind)
    if len(kind) == 1:
        return str(kind[0])
    if len(kind) != 2 or "null" not in kind:  # noqa: PLR2004 (a type and null)
        raise ValueError("an enum of several types")
    return str(kind[0] if kind[0] != "null" else kind[1])


def _object_text(fields: Sequence[_Field], rest: _Type | None, indent: str) -> str:
    """Required members first, each group by name; the type of all other members last."""
    inner = indent + _INDENT
    lines = [
        member.text(inner) for member in sorted(fields, key=lambda item: (item.optional, item.name))
    ]
    if rest is not None:
        lines.append(f"{inner}[k: string]: {rest.text(inner)}")
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}" if lines else "{}"


def _root_interface(fields: Sequence[_Field]) -> str:
    """Parameters that refer to themselves need a name; members stand in the schema's order."""
    lines = ",\n".join(member.text(_INDENT) for member in fields)
    return f"interface parameters {{\n{lines}\n}}" if lines else "interface parameters {}"
