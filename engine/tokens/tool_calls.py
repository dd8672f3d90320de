"""Tool calls as the model writes them: the native section, rendered from API objects."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

SECTION_BEGIN: Final = "<|tool_calls_section_begin|>"
SECTION_END: Final = "<|tool_calls_section_end|>"
CALL_BEGIN: Final = "<|tool_call_begin|>"
CALL_ARGUMENT: Final = "<|tool_call_argument_begin|>"
CALL_END: Final = "<|tool_call_end|>"
_NATIVE_ID: Final = re.compile(r"functions\.[^\s:]+:\d+")


class ToolCallError(ValueError):
    """A tool call that is not of the API's shape; the text says what is missing."""


def native_section(calls: Sequence[Any]) -> str:
    """The section with all calls; arguments that are no text are written as JSON.

    Raises `ToolCallError` on a call without a function or arguments.
    """
    return f"{SECTION_BEGIN}{''.join(_native_call(call) for call in calls)}{SECTION_END}"


def _native_call(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        raise ToolCallError("a tool call has no function")
    if "arguments" not in function:
        raise ToolCallError("a tool call has no arguments")
    arguments = function["arguments"]
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return f"{CALL_BEGIN}{call.get('id', '')}{CALL_ARGUMENT}{arguments}{CALL_END}"


def rebuilt_section(calls: Sequence[Any], *, first: int) -> tuple[str, bool]:
    """The section that a host parsed into `calls`, and whether nothing in it is a guess.

    Ids count the calls of a conversation (`functions.NAME:INDEX`), from `first` on; a host that
    gives other ids (or arguments that are no text) hides what the model wrote.
    """
    rebuilt: list[dict[str, Any]] = []
    certain = True
    for offset, call in enumerate(calls):
        function = call.get("function") if isinstance(call, Mapping) else None
        if not isinstance(function, Mapping):
            raise ToolCallError("a tool call has no function")
        name, given = function.get("name"), call.get("id")
        native = isinstance(given, str) and _NATIVE_ID.fullmatch(given)
        certain = certain and bool(native) and isinstance(function.get("arguments"), str)
        identifier = given if native else f"functions.{name}:{first + offset}"
        rebuilt.append({"id": identifier, "function": function})
    return native_section(rebuilt), certain
