"""The chat templates of the Kimi K2 family: messages and tools in, the prompt as served out.

Own renderer of the published templates (moonshotai/Kimi-K2.5 at the pinned revision, and
Kimi-K2-Thinking). It renders prompts only: a finished conversation rendered for training would
show empty thinking blocks that the model never wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from engine.tokens import kimi
from engine.tokens.tool_calls import ToolCallError, native_section
from engine.tokens.tool_declaration import declare_tools

Message = Mapping[str, Any]

DECLARING_NAME: Final = "tool_declare"
_MARKERS: Final = {"user": "<|im_user|>", "assistant": "<|im_assistant|>"}
_MEDIA: Final = ("image", "video", "audio")


class PromptError(ValueError):
    """A conversation that cannot be rendered; the text is the reason, fit for a person."""


def render_prompt(
    messages: Sequence[Message],
    *,
    tools: Sequence[Any] | None = None,
    thinking: bool = True,
    variant: str = kimi.KIMI_K25,
) -> str:
    """The text that the model is served, up to where it begins to write.

    `thinking` decides the end (`<think>`, or an empty block); K2-Thinking always thinks, and
    writes `<think>` itself. Raises `PromptError` for what cannot be served as text.
    """
    if not messages:
        raise PromptError("the conversation has no messages")
    always = variant == kimi.KIMI_K2_THINKING
    parts = [_turn("<|im_system|>", DECLARING_NAME, _declared(tools, variant))] if tools else []
    if always and _role(messages[0], 0) != "system":
        parts.append(_turn("<|im_system|>", "system", kimi.DEFAULT_SYSTEM_PROMPT))
    first_open = _end_of_history(messages)
    for index, message in enumerate(messages):
        keeps_reasoning = index >= first_open and (thinking or always)
        parts.append(_message(message, index, keeps_reasoning=keeps_reasoning))
    parts.append("<|im_assistant|>assistant<|im_middle|>")
    if not always:
        parts.append("<think>" if thinking else "<think></think>")
    return "".join(parts)


def declare_tools_message(tools: Sequence[Any], *, variant: str = kimi.KIMI_K25) -> dict[str, Any]:
    """The first message that declares the tools when no `tools` parameter is sent.

    The template puts a message's name in its role's place, so the prompt is the same one.
    """
    return {
        "role": "system",
        "name": DECLARING_NAME,
        "content": _declared(tools, variant),
    }


def with_declared_tools(
    messages: Sequence[Message], tools: Sequence[Any], *, variant: str = kimi.KIMI_K25
) -> list[dict[str, Any]]:
    """The messages to send for `tools_mode = "raw"`: the same prompt without a parameter.

    K2-Thinking would take the declaration for the system prompt and leave its default one out,
    so that one is sent too.
    """
    declared = [declare_tools_message(tools, variant=variant)]
    if variant == kimi.KIMI_K2_THINKING and (not messages or messages[0].get("role") != "system"):
        declared.append({"role": "system", "content": kimi.DEFAULT_SYSTEM_PROMPT})
    return [*declared, *map(dict, messages)]


def _declared(tools: Sequence[Any], variant: str) -> str:
    if isinstance(tools, str) or not isinstance(tools, Sequence):
        raise PromptError("tools are not a list")
    for index, tool in enumerate(tools):
        if not isinstance(tool, Mapping):
            raise PromptError(f"tools[{index}] is not an object")
    try:
        return declare_tools(tools, variant=variant)
    except RecursionError as error:
        raise PromptError("tools are nested too deep") from error


def _end_of_history(messages: Sequence[Message]) -> int:
    """Index after the last assistant turn without tool calls: what follows is an open chain."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.get("role") == "assistant" and not message.get("tool_calls"):
            return index + 1
    return 0


def _role(message: Message, index: int) -> str:
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise PromptError(f"messages[{index}] has no role")
    return role


def _turn(marker: str, name: str, body: str) -> str:
    return f"{marker}{name}<|im_middle|>{body}<|im_end|>"


def _message(message: Message, index: int, *, keeps_reasoning: bool) -> str:
    role = _role(message, index)
    body = _content(message.get("content"), index)
    if role == "assistant":
        reasoning = _reasoning(message) if keeps_reasoning else ""
        body = f"<think>{reasoning}</think>{body}{_calls(message, index)}"
    elif role == "tool":
        body = f"## Return of {message.get('tool_call_id', '')}\n{body}"
    return _turn(_MARKERS.get(role, "<|im_system|>"), str(message.get("name") or role), body)


def _reasoning(message: Message) -> str:
    """The reasoning of an earlier turn, under either name that servers accept."""
    for key in ("reasoning_content", "reasoning"):
        value = message.get(key)
        if isinstance(value, str):
            return value
    return ""


def _calls(message: Message, index: int) -> str:
    calls = message.get("tool_calls")
    if not calls:
        return ""
    if isinstance(calls, str) or not isinstance(calls, Sequence):
        raise PromptError(f"tool_calls of messages[{index}] are not a list")
    try:
        return native_section(calls)
    except ToolCallError as error:
        raise PromptError(f"messages[{index}]: {error}") from error


def _content(content: Any, index: int) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise PromptError(f"content of messages[{index}] is neither text nor a list of parts")
    return "".join(_part(part, index) for part in content)


def _part(part: Any, index: int) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    if isinstance(kind, str) and any(medium in kind for medium in _MEDIA):
        raise PromptError(f"messages[{index}] holds {kind}: only text prompts are supported")
    text = part.get("text") if isinstance(part, Mapping) else None
    if not isinstance(text, str):
        raise PromptError(f"messages[{index}] holds a content part without text")
    return text
