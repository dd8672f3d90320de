"""What a host makes of the sampled answer on its way into the API's fields.

The distortions are those of vLLM, SGLang and hosts that build on them (facts page on Kimi-K2.5).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.simulator.answer import Answer
    from engine.simulator.scenario import Host

_ADDED = re.compile(
    r"<\|tool_calls_section_begin\|>|<\|tool_calls_section_end\|>|<\|tool_call_begin\|>"
    r"|<\|tool_call_argument_begin\|>|<\|tool_call_end\|>"
)
"""The added tokens that survive `skip_special_tokens`."""


@dataclass(frozen=True, slots=True)
class Served:
    """An answer as a client receives it."""

    content: str | None
    finish: str
    reasoning: str | None
    reasoning_field: str = "reasoning"
    tool_calls: list[dict[str, Any]] = field(default_factory=list)

    def reasoning_keys(self) -> dict[str, Any]:
        """Return the keys of the message that carry the reasoning."""
        text = self.reasoning
        where = self.reasoning_field
        if where == "reasoning_content":
            return {"reasoning_content": text}
        details = [{"type": "reasoning.text", "text": text, "format": "unknown", "index": 0}]
        if where == "reasoning_details":
            return {"reasoning_details": details if text else []}
        return {"reasoning": text, "reasoning_details": details if text else []}


def serve(answer: Answer, host: Host, *, parse_tools: bool) -> Served:
    """Return the answer as a host serves it; with `parse_tools` calls come apart from the text."""
    reasoning = answer.reasoning.text
    content = answer.content.text
    tool_calls = [_call(c) for c in answer.calls] if parse_tools else []
    if not parse_tools:
        content += answer.tools.text
    finish = answer.finish if tool_calls or answer.finish != "tool_calls" else "stop"
    text: str | None = content
    if not content and (answer.finish == "length" or tool_calls):
        text = None
    return Served(text, finish, reasoning or None, host.reasoning_field, tool_calls)


def _call(call: Any) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "index": call.index,
        "function": {"name": call.name, "arguments": call.arguments},
    }
