"""OpenAI-style messages with reasoning and tool calls as fields of their own (NeMo Automodel)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine.export.example import Example, LeftOutError, Written, rendered
from engine.tokens.layouts import OPEN
from engine.tokens.template import DECLARING_NAME
from engine.tokens.tool_calls import (
    CALL_ARGUMENT,
    CALL_BEGIN,
    CALL_END,
    SECTION_BEGIN,
    SECTION_END,
    native_section,
)

_CALL: Final = re.compile(
    f"{re.escape(CALL_BEGIN)}(.*?){re.escape(CALL_ARGUMENT)}(.*?){re.escape(CALL_END)}", re.DOTALL
)
_NATIVE: Final = re.compile(r"functions\.([^\s:]+):\d+")


def openai_messages(example: Example) -> list[dict[str, Any]]:
    """The conversation without the tool declaration, which the trainer's template adds again.

    A row is left out where the trainer would refuse it, or where the model's template would not
    make the prompt of it that was served.
    """
    prompt = _undeclared(example)
    messages = [_message(message) for message in prompt]
    tools = example.row.get("tools")
    served = example.prompt_text
    if served is not None and rendered(example.kit, prompt, tools) != served:
        raise LeftOutError("renders_otherwise")
    return [*messages, _answer(example.written)]


def parsed_calls(content: str) -> tuple[str, list[dict[str, Any]]]:
    """Content and the calls of the native section that ends it.

    No calls where the section would not be rebuilt to the same text.
    """
    before, begin, section = content.partition(SECTION_BEGIN)
    calls = [_call(*found.groups()) for found in _CALL.finditer(section)] if begin else []
    if None in calls or not section.endswith(SECTION_END):
        return content, []
    known = [call for call in calls if call is not None]
    return (before, known) if native_section(known) == begin + section else (content, [])


def _call(identifier: str, arguments: str) -> dict[str, Any] | None:
    name = _NATIVE.fullmatch(identifier)
    if name is None:
        return None
    function = {"name": name[1], "arguments": arguments}
    return {"id": identifier, "type": "function", "function": function}


def _undeclared(example: Example) -> Sequence[Mapping[str, Any]]:
    messages = example.messages
    declared = bool(messages) and messages[0].get("name") == DECLARING_NAME
    return messages[1:] if declared and example.row.get("tools") else messages


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    found = _filled(
        str(message.get("role")),
        str(message.get("content") or ""),
        name=str(message.get("name") or ""),
        tool_call_id=str(message.get("tool_call_id") or ""),
        reasoning=str(message.get("reasoning_content") or ""),
        calls=[_plain_call(call) for call in message.get("tool_calls") or ()],
    )
    if found["role"] == "tool" and not found["tool_call_id"]:
        raise LeftOutError("tool_without_id")
    return found


def _filled(
    role: str,
    content: str,
    *,
    name: str = "",
    tool_call_id: str = "",
    reasoning: str = "",
    calls: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """A message with every key, so that no row changes a column's type (load_dataset)."""
    return {
        "role": role,
        "content": content,
        "name": name,
        "reasoning_content": reasoning,
        "tool_calls": list(calls),
        "tool_call_id": tool_call_id,
    }


def _plain_call(call: Any) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or "arguments" not in function:
        raise LeftOutError("no_prompt")
    arguments = function["arguments"]
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    named = {"name": str(function.get("name") or ""), "arguments": arguments}
    return {"id": str(call.get("id") or ""), "type": "function", "function": named}


def _answer(written: Written) -> dict[str, Any]:
    if not written.closed:  # the template takes an answer that opens a thought as it is
        return _filled("assistant", OPEN + written.content)
    if not written.reasoning and written.content.startswith(OPEN):
        raise LeftOutError("renders_otherwise")
    content, calls = parsed_calls(written.content)
    return _filled("assistant", content, reasoning=written.reasoning, calls=calls)
