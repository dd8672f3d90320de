"""Reads the parts of a finished choice: text, reasoning, tool calls, token ids, stray markers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from engine.wire.reply_json import can_serialise

TOOLS_BEGIN = "<|tool_calls_section_begin|>"
_TOOL_MARKERS = frozenset(
    {
        TOOLS_BEGIN,
        "<|tool_calls_section_end|>",
        "<|tool_call_begin|>",
        "<|tool_call_argument_begin|>",
        "<|tool_call_end|>",
        "<tool_call>",
        "</tool_call>",
    }
)
_WIDE = "<\uff5c"  # how DeepSeek's control tokens begin
_MARKER = re.compile(
    r"<\|[A-Za-z0-9_]{1,40}\|>|<\uff5c[^\uff5c<>]{1,40}\uff5c>|</?think>|</?tool_call>"
)
_MAX_ID = 2**31
OPEN, CLOSE = "<think>", "</think>"


class FieldError(ValueError):
    """A field of the reply is of a kind that no answer has."""


def read_content(message: Mapping[str, Any]) -> str | None:
    """`content` as text: a string, None, or a list of parts whose texts are joined."""
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise FieldError(f"content is a {type(content).__name__}")
    return "".join(_part(part) for part in content)


def _part(part: object) -> str:
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    raise FieldError("content has a part without text")


def read_reasoning(message: Mapping[str, Any]) -> tuple[str | None, str]:
    """The reasoning as the server gave it, and the field it came from (both empty: none)."""
    for name in ("reasoning", "reasoning_content"):
        value = message.get(name)
        if isinstance(value, str) and value:
            return value, name
    details = message.get("reasoning_details")
    if isinstance(details, list):
        # Summaries and encrypted blocks are not what the model wrote.
        text = "".join(_detail(item) for item in details)
        if text:
            return text, "reasoning_details"
    return None, ""


def _detail(item: object) -> str:
    if isinstance(item, dict) and item.get("type") == "reasoning.text":
        text = item.get("text")
        return text if isinstance(text, str) else ""
    return ""


def read_tool_calls(message: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The parsed tool calls, or None where there are none."""
    calls = message.get("tool_calls")
    if not calls:
        return None
    if not isinstance(calls, list) or not all(_is_call(call) for call in calls):
        raise FieldError("tool_calls is no list of calls")
    if not can_serialise(calls):
        raise FieldError("tool_calls is nested too deep")
    return calls


def _is_call(call: object) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return (
        isinstance(function, dict)
        and bool(function.get("name"))
        and isinstance(function["name"], str)
    )


def read_ids(
    document: Mapping[str, Any], choice: Mapping[str, Any]
) -> tuple[list[int] | None, list[int] | None]:
    """Prompt and completion ids where the server gives them (facts/openrouter.md §7).

    vLLM: top-level `prompt_token_ids` and `token_ids` of the choice. SGLang: `prompt_token_ids`
    and `response_token_ids` of the choice, or `sglext` with `input_ids` and `output_ids`.
    """
    extra = choice.get("sglext") or document.get("sglext")
    sglext = extra if isinstance(extra, dict) else {}
    prompts = (
        document.get("prompt_token_ids"),
        choice.get("prompt_token_ids"),
        sglext.get("input_ids"),
    )
    completions = (
        choice.get("token_ids"),
        choice.get("response_token_ids"),
        sglext.get("output_ids"),
    )
    return _ids(prompts), _ids(completions)


def _ids(candidates: Iterable[object]) -> list[int] | None:
    for ids in candidates:
        if not isinstance(ids, list) or not ids or set(map(type, ids)) != {int}:
            continue
        if min(ids) >= 0 and max(ids) < _MAX_ID:
            return ids
    return None


def is_inline(content: str | None) -> bool:
    """Whether the content begins with the reasoning, tags and all."""
    if content is None or "think>" not in content:
        return False
    return CLOSE in content or content.lstrip().startswith(OPEN)


def after_thinking(content: str, *, inline: bool) -> str:
    """The part of the content that is the answer."""
    if not inline:
        return content
    return content.partition(CLOSE)[2]


def has_text(text: str | None) -> bool:
    """Whether there is more in it than white space and control tokens."""
    if not text or text.isspace():
        return False
    if len(text) < 400 and "<" in text:  # noqa: PLR2004 - a longer text is more than markers
        return bool(_MARKER.sub("", text).strip())
    return True


def has_stray_markers(
    content: str | None, reasoning: str | None, *, inline: bool, tools: bool
) -> bool:
    """Whether control tokens stand in the text where none belong.

    Inline reasoning may open at the start and close once; tool markers belong in the text of a
    prompt whose tools were given in raw mode.
    """
    allowed = _TOOL_MARKERS if tools else frozenset[str]()
    answer = content or ""
    if inline:
        stripped = answer.lstrip()
        answer = stripped.removeprefix(OPEN).replace(CLOSE, "", 1)
    return any(marker not in allowed for text in (answer, reasoning) for marker in _markers(text))


def _markers(text: str | None) -> list[str]:
    # Most texts hold none of these; the search for a substring costs a tenth of the pattern's.
    if not text or not ("<|" in text or "think>" in text or "tool_call>" in text or _WIDE in text):
        return []
    return _MARKER.findall(text)
