"""Renders chat templates as `apply_chat_template` does, and marks what is supervised."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import pytest

jinja2 = pytest.importorskip("jinja2", reason="jinja2 is not installed")
from jinja2 import nodes  # noqa: E402 - only where there is jinja2
from jinja2.ext import Extension  # noqa: E402
from jinja2.parser import Parser  # noqa: E402
from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: E402

BEGIN, END = "\x01", "\x02"
"""Stand around what the template says is generated."""


class Generation(Extension):
    """The `{% generation %}` tag of transformers' chat templates."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 wants it

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_mark"), [], [], body).set_lineno(line)

    def _mark(self, caller: Any) -> str:
        return f"{BEGIN}{caller()}{END}"


def render(template: str, messages: Sequence[Mapping[str, Any]], **more: Any) -> tuple[str, str]:
    """(the whole text, the supervised part of it)."""
    text = _compiled(template).render(messages=messages, **more)
    _, _, marked = text.partition(BEGIN)
    supervised, _, rest = marked.partition(END)
    assert BEGIN not in rest, "two answers are supervised"
    return text.replace(BEGIN, "").replace(END, ""), supervised


@lru_cache(maxsize=16)
def _compiled(template: str) -> Any:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _tojson
    return environment.from_string(template)


def _tojson(value: Any, separators: Any = None) -> str:
    return json.dumps(value, ensure_ascii=False, separators=separators)
