"""Tool declarations: the schema features one by one, and what falls back to JSON.

The expected texts follow the published encoder of Kimi-K2.5 (`tool_declaration_ts.py`), against
which this one was compared on tens of thousands of generated schemas.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.tokens.tool_declaration import declare_tools

HEAD = "# Tools\n\n## functions\nnamespace functions {\n"


def declared(parameters: Any, **function: Any) -> str:
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters, **function}}
    return declare_tools([tool])


def members(properties: dict[str, Any], **schema: Any) -> str:
    """What stands between the braces of a function's parameters."""
    text = declared({"type": "object", "properties": properties, **schema})
    assert text.startswith(HEAD), text
    return text.removeprefix(f"{HEAD}type f = (_: {{\n").removesuffix("\n}) => any;\n}\n")


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, "  x?: string"),
        ({"type": "integer"}, "  x?: number"),
        ({"type": "number", "minimum": 0.5, "multipleOf": 2}, "  // minimum: 0.5\n  x?: number"),
        ({"type": "boolean", "default": False}, "  // Default: False\n  x?: boolean"),
        ({"type": "null"}, "  x?: null"),
        ({}, "  x?: any"),
        (True, "  x?: any"),
        (False, "  x?: null"),
        (
            {"type": "string", "pattern": "^a$", "minLength": 1, "maxLength": 3, "format": "x"},
            "  // maxLength: 3, minLength: 1, pattern: ^a$\n  x?: string",
        ),
        ({"type": "string", "default": "é"}, '  // Default: "é"\n  x?: string'),
        ({"type": "string", "default": None}, "  x?: string"),
        ({"type": "array", "default": [1, "a"]}, '  // Default: [1, "a"]\n  x?: Array<any>'),
        (
            {"type": "string", "description": "One\n\ntwo", "default": 1},
            "  // One\n\n  // two\n  // Default: 1\n  x?: string",
        ),
        ({"enum": ["a", 1, 1.5, None, True]}, '  x?: "a" | 1 | 1.5 | None | True'),
        ({"type": ["string", "null"], "enum": ["a", None]}, '  x?: "a" | None'),
        ({"type": ["string", "integer", "null"]}, "  x?: string | number | null"),
        ({"type": ["object", "array"]}, "  x?: {} | Array<any>"),
        ({"type": "object"}, "  x?: {}"),
        ({"type": "object", "additionalProperties": True}, "  x?: {\n    [k: string]: any\n  }"),
        (
            {"type": "object", "additionalProperties": {"type": "integer", "description": "no"}},
            "  x?: {\n    [k: string]: number\n  }",
        ),
        ({"type": "array", "items": {"type": "string"}}, "  x?: Array<string>"),
        ({"type": "array", "items": {}}, "  x?: Array<any>"),
        (
            {"type": "array", "minItems": 1, "items": {"type": "string", "description": "each"}},
            "  // minItems: 1\n  x?: Array<\n    // each\n    string\n  >",
        ),
        (
            {"type": "array", "items": {"type": "object", "properties": {"y": {"type": "string"}}}},
            "  x?: Array<{\n    y?: string\n  }>",
        ),
        (
            {"anyOf": [{"type": "string", "description": "lost"}, {"type": "null"}]},
            "  x?: string | null",
        ),
        (
            {
                "type": "object",
                "description": "Deep",
                "properties": {
                    "b": {"type": "string", "description": "B"},
                    "a": {"type": "integer"},
                },
                "required": ["b"],
            },
            "  // Deep\n  x?: {\n    // B\n    b: string,\n    a?: number\n  }",
        ),
        ({"type": "string", "nullable": True, "const": "a", "title": "T"}, "  x?: string"),
    ],
)
def test_each_schema_feature_has_its_text(schema: Any, text: str) -> None:
    assert members({"x": schema}) == text


def test_required_members_come_first_each_group_by_name() -> None:
    properties: dict[str, Any] = {name: {"type": "string"} for name in ("d", "a", "C", "b")}
    assert members(properties, required=["d", "b", "unknown"]) == (
        "  b: string,\n  d: string,\n  C?: string,\n  a?: string"
    )


def test_other_members_come_last() -> None:
    text = members({"z": {"type": "string"}}, additionalProperties=False)
    assert text == "  z?: string,\n  [k: string]: never"


@pytest.mark.parametrize("parameters", [None, {}, {"type": "object"}])
def test_no_parameters(parameters: Any) -> None:
    assert declared(parameters) == f"{HEAD}type f = (_: {{}}) => any;\n}}\n"


def test_definitions_become_interfaces() -> None:
    text = declared(
        {
            "properties": {"n": {"$ref": "#/$defs/Node", "description": "root"}},
            "$defs": {
                "Node": {
                    "type": "object",
                    "description": "A node",
                    "properties": {"next": {"$ref": "#/$defs/Node"}, "kind": {"$ref": "#/$defs/K"}},
                },
                "K": {"enum": ["x", "y"]},
            },
        },
        description="Walks\nthe graph",
    )
    assert text == (
        f'{HEAD}interface K "x" | "y"\n'
        "// A node\ninterface Node {\n  kind?: K,\n  next?: Node\n}\n"
        "// Walks\n// the graph\n"
        "type f = (_: {\n  // root\n  n?: Node\n}) => any;\n}\n"
    )


def test_parameters_that_refer_to_themselves_get_a_name() -> None:
    text = declared(
        {"properties": {"b": {"$ref": "#"}, "a": {"type": "string"}}, "required": ["b"]}
    )
    assert text == (
        f"{HEAD}interface parameters {{\n  a?: string,\n  b: parameters\n}}\n"
        "type f = (_: parameters) => any;\n}\n"
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{"type": "string"}]},
        {"allOf": [{"type": "string"}]},
        {"const": 1},
        {"description": "no type"},
        {"$ref": "#/definitions/X"},
        {"$ref": "#/$defs/missing"},
        {"type": ["string", "date"]},
        {"type": "string", "enum": ["a", 1]},
        {"type": ["string", "integer", "null"], "enum": ["a"]},
        {"type": "array", "items": [{"type": "string"}]},
        {"type": "object", "properties": None},
        {"type": "object", "additionalProperties": "no"},
        {"type": "string", "description": 5},
        "string",
        None,
    ],
)
def test_schemas_that_the_encoder_cannot_express_make_all_of_it_json(schema: Any) -> None:
    tool = {"type": "function", "function": {"parameters": {"properties": {"x": schema}}}}
    good = {"type": "function", "function": {"name": "é"}}
    text = declare_tools([good, tool])
    assert text.startswith('[{"function":{"name":"é"},"type":"function"},{"function":')
    assert json.loads(text) == [good, tool]


def test_tools_of_other_kinds_are_left_out_but_alone_they_are_json() -> None:
    plugin = {"type": "_plugin", "name": "p"}
    function = {"type": "function", "function": {"name": "f"}}
    assert declare_tools([plugin, function]) == declare_tools([function])
    assert declare_tools([plugin]) == '[{"name":"p","type":"_plugin"}]'


def test_a_schema_nested_without_end_is_json_or_text_but_no_crash() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(150):
        schema = {"type": "array", "items": schema}
    assert declared({"properties": {"x": schema}}).startswith(HEAD)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "enum", "anyOf", "items", "$ref", "properties", "required"])
            | st.text(max_size=3),
            inner | st.sampled_from(["object", "array", "string", "#"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_declared_and_key_order_does_not_matter(parameters: Any) -> None:
    text = declared(parameters)
    assert text.startswith((HEAD, "[{"))

    def reversed_keys(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: reversed_keys(value[key]) for key in reversed(value)}
        return [reversed_keys(item) for item in value] if isinstance(value, list) else value

    assert declared(reversed_keys(parameters)) == text
