"""OpenAI-style messages with reasoning and tool calls as fields of their own (NeMo Automodel)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine.export.example import Example, LeftOutError, Written, rendered
from engine.tokens.layouts import CLOSE, OPEN
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
    """A message with texts only, and arguments as JSON: types that no other row changes."""
    found: dict[str, Any] = {"role": message["role"], "content": message.get("content") or ""}
    for key in ("name", "tool_call_id", "reasoning_content"):
        if message.get(key):
            found[key] = str(message[key])
    if message["role"] == "tool" and "tool_call_id" not in found:
        raise LeftOutError("tool_without_id")
    if message.get("tool_calls"):
        found["tool_calls"] = [_plain_call(call) for call in message["tool_calls"]]
    return found


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
        return {"role": "assistant", "content": OPEN + written.content}
    if not written.reasoning and written.content.startswith(OPEN):
        raise LeftOutError("renders_otherwise")
    content, calls = parsed_calls(written.content)
    answer: dict[str, Any] = {"role": "assistant", "content": content}
    if CLOSE in written.text:
        answer["reasoning_content"] = written.reasoning
    if calls:
        answer["tool_calls"] = calls
    return answer
