"""A prompt as plain turns of role and text, for trainers that render conversations by themselves.

Everything that a template would put into a turn (tool calls, the return of a tool, the reasoning
of an open tool chain) is put into its text, so that a file's messages all have the same two keys.
A trainer's own rendering is repeated here, and a row that it would change is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from engine.export.example import Example, LeftOutError
from engine.tokens import kimi
from engine.tokens.layouts import CLOSE, END, OPEN
from engine.tokens.template import DECLARING_NAME, PromptError, with_declared_tools
from engine.tokens.tool_calls import ToolCallError, native_section

Turn = dict[str, str]

_MARKERS: Final = {"user": "<|im_user|>", "assistant": "<|im_assistant|>"}
_TORCHSPEC_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
_TORCHSPEC_IMAGE: Final = "<|image|>"
_THOUGHT: Final = re.compile(f"{OPEN}.*?{CLOSE}", re.DOTALL)


def explicit_turns(example: Example) -> list[Turn]:
    """The prompt's turns, each with the name that stands in its header as its role.

    Tools and a default system prompt, which a template would add, are turns of their own.
    """
    messages = _explicit(example)
    endpoint = example.kit.endpoint
    thinks = endpoint.thinking or endpoint.tokenizer == kimi.KIMI_K2_THINKING
    first_open = end_of_history(messages) if thinks else len(messages)
    return [_turn(message, reasons=at >= first_open) for at, message in enumerate(messages)]


def plain_turns(example: Example, *, systems: bool) -> list[Turn]:
    """A conversation in which user and assistant take turns, after a system message or none.

    `systems` says whether the trainer takes a system message. Raises LeftOutError.
    """
    turns = [dict(message) for message in example.messages]
    if any(message.get("tool_calls") or message.get("role") == "tool" for message in turns):
        raise LeftOutError("tools")
    if example.tools or any(message.get("name") == DECLARING_NAME for message in turns):
        raise LeftOutError("tools")
    start = 1 if turns and turns[0].get("role") == "system" else 0
    if start and not systems:
        raise LeftOutError("system_message")
    roles = [message.get("role") for message in turns[start:]]
    if roles != ["user", "assistant"] * (len(roles) // 2) + ["user"]:
        raise LeftOutError("not_alternating")
    return [{"role": m["role"], "content": str(m.get("content") or "")} for m in turns]


def end_of_history(messages: Sequence[Mapping[str, Any]]) -> int:
    """Index after the last answer without tool calls: what follows is an open tool chain."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "assistant" and not messages[index].get("tool_calls"):
            return index + 1
    return 0


def replayed_verbatim(turns: Sequence[Turn]) -> str:
    """What our chat template for Model-Optimizer makes of a conversation."""
    return "".join(
        f"{_MARKERS.get(turn['role'], '<|im_system|>')}{turn['role']}<|im_middle|>"
        f"{_with_thought(turn)}{END}"
        for turn in turns
    )


def replayed_by_torchspec(turns: Sequence[Turn]) -> str:
    """What TorchSpec's `kimi-k25-vlm` makes of it (torchspec/data/parse.py, August 2026)."""
    roles = {turn["role"] for turn in turns}
    if not _TORCHSPEC_ROLES.issuperset(roles):
        raise LeftOutError("tools" if DECLARING_NAME in roles else "names")
    return replayed_verbatim(list(_as_torchspec_reads(turns)))


def _as_torchspec_reads(turns: Sequence[Turn]) -> Iterator[Turn]:
    """It strips the thoughts of all but the last answer, and takes a marker for an image."""
    for index, turn in enumerate(turns):
        content = turn["content"]
        if turn["role"] == "assistant" and index < len(turns) - 1:
            content = _THOUGHT.sub("", content)
        elif turn["role"] == "user" and _TORCHSPEC_IMAGE in content:
            raise LeftOutError("renders_otherwise")
        yield {**turn, "content": content}


def _with_thought(turn: Turn) -> str:
    content = turn["content"]
    if turn["role"] != "assistant" or content.startswith(OPEN):
        return content
    return f"{OPEN}{CLOSE}{content}"


def _explicit(example: Example) -> Sequence[Mapping[str, Any]]:
    messages: Sequence[Mapping[str, Any]] = example.messages
    variant = example.kit.endpoint.tokenizer
    try:
        if example.tools:
            return with_declared_tools(messages, example.tools, variant=variant)
    except PromptError:
        raise LeftOutError("no_prompt") from None
    if variant == kimi.KIMI_K2_THINKING and messages[0].get("role") != "system":
        return [{"role": "system", "content": kimi.DEFAULT_SYSTEM_PROMPT}, *messages]
    return messages


def _turn(message: Mapping[str, Any], *, reasons: bool) -> Turn:
    role = str(message.get("role"))
    name = str(message.get("name") or role)
    if role in _MARKERS and name != role:
        raise LeftOutError("names")  # the marker goes by the role, the header by the name
    content = str(message.get("content") or "")
    if role == "tool":
        content = f"## Return of {message.get('tool_call_id', '')}\n{content}"
    if role == "assistant":
        content += _calls(message)
        reasoning = message.get("reasoning_content") if reasons else None
        if reasoning:
            content = f"{OPEN}{reasoning}{CLOSE}{content}"
    return {"role": name, "content": content}


def _calls(message: Mapping[str, Any]) -> str:
    calls = message.get("tool_calls")
    try:
        return native_section(calls) if calls else ""
    except ToolCallError:
        raise LeftOutError("no_prompt") from None
