"""What a host makes of the sampled answer on its way into the API's fields.

The distortions are those of vLLM, SGLang and hosts that build on them (facts page on Kimi-K2.5).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine.tokens import kimi

if TYPE_CHECKING:
    from engine.simulator.answer import Answer
    from engine.simulator.scenario import Host
    from engine.simulator.toolcalls import Call

THINK, END_THINK = "<think>", "</think>"
_ADDED = re.compile(
    r"(</?think>|<\|tool_calls_section_(?:begin|end)\|>|<\|tool_call_(?:begin|end)\|>"
    r"|<\|tool_call_argument_begin\|>)"
)
"""The added tokens that survive `skip_special_tokens`; in parentheses, so that split keeps them."""


@dataclass(frozen=True, slots=True)
class Served:
    """An answer as a client receives it; `reasoning_field` is where its reasoning stands."""

    content: str | None
    finish: str
    reasoning: str | None
    reasoning_field: str = "reasoning"
    tool_calls: list[dict[str, Any]] = field(default_factory=list)

    def reasoning_keys(self) -> dict[str, Any]:
        """Return the keys of OpenRouter's message that carry the reasoning."""
        text = self.reasoning
        if self.reasoning_field == "reasoning_content":
            return {"reasoning_content": text}
        details = [{"type": "reasoning.text", "text": text, "format": "unknown", "index": 0}]
        if self.reasoning_field == "reasoning_details":
            return {"reasoning_details": details if text else []}
        if self.reasoning_field != "reasoning":
            return {"reasoning": None}
        return {"reasoning": text, "reasoning_details": details if text else []}


def serve(answer: Answer, host: Host, *, parse_tools: bool, exclude: bool = False) -> Served:
    """Return the answer as a host serves it.

    With `parse_tools` calls come apart from the text; with `exclude` the reasoning is left out
    (and billed all the same).
    """
    tool_calls = [_call(call) for call in answer.calls] if parse_tools else []
    tools = "" if tool_calls else answer.tools.text
    reasoning, content = _texts(answer, tools, host)
    finish = answer.finish if tool_calls or answer.finish != "tool_calls" else "stop"
    if host.reasoning_field in {"inline", "inline_no_open"} and reasoning is not None:
        opening = THINK if host.reasoning_field == "inline" else ""
        content = f"{opening}{reasoning}{END_THINK if answer.thought else ''}{content}"
        reasoning = None
    nothing = not content and (answer.finish == "length" or bool(tool_calls))
    return Served(
        None if nothing else content,
        finish,
        None if exclude else reasoning,
        host.reasoning_field,
        tool_calls,
    )


def _texts(answer: Answer, tools: str, host: Host) -> tuple[str | None, str]:
    """Return reasoning and content with the host's spaces; None: nothing was to be reasoned."""
    reasoned = answer.thought or bool(answer.reasoning.count)
    reasoning, content = answer.reasoning.text, answer.content.text + tools
    if host.artefact == "spaced":
        whole = f"{reasoning}{END_THINK}{content}" if answer.thought else reasoning + content
        reasoning, content = _parted(_spaced(whole), answer)
    elif host.artefact == "trimmed":
        reasoning, content = reasoning.strip(), content.strip()
    return (reasoning if reasoned else None), content


def _spaced(text: str) -> str:
    """Join with spaces, as engines do that decode the runs between added tokens one by one.

    The first space follows the added token that the prompt ends with.
    """
    parts = [part for part in _ADDED.split(text) if part]
    return "".join(f" {part}" for part in parts)


def _parted(text: str, answer: Answer) -> tuple[str, str]:
    if answer.thought:
        reasoning, _, content = text.partition(END_THINK)
        return reasoning, content
    return (text, "") if answer.reasoning.count else ("", text)


def _call(call: Call) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "index": call.index,
        "function": {"name": call.name, "arguments": call.arguments},
    }


def as_read(messages: list[dict[str, Any]], host: Host) -> list[dict[str, Any]]:
    """Return the messages as a host feeds them to the template."""
    if host.drops_name:
        messages = [{k: v for k, v in m.items() if k != "name"} for m in messages]
    if host.system_prompt and messages[0].get("role") != "system":
        messages = [{"role": "system", "content": kimi.DEFAULT_SYSTEM_PROMPT}, *messages]
    return messages
