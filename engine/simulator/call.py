"""One chat request as the provider sees it: parsed, identified and counted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from engine.simulator.faults import Fault
    from engine.simulator.scenario import Window

NOT_SAMPLING = frozenset({"messages", "tools", "provider", "stream", "stream_options", "usage"})
"""Keys that do not change what the model answers."""


@dataclass(slots=True)
class Call:
    """A request in work; `attempt` counts the requests for the same prompt, from 1."""

    id: str
    raw: bytes
    body: dict[str, Any]
    prompt_hash: str
    body_hash: str
    attempt: int
    started: float
    wall: float
    rng: Random
    windows: list[Window]
    fault: Fault | None = None
    prompt_tokens: int = 0
    provider: str | None = None

    @property
    def max_tokens(self) -> int | None:
        """The limit of the completion; None where the request sets none."""
        limit = self.body.get("max_completion_tokens", self.body.get("max_tokens"))
        return limit if isinstance(limit, int) else None

    @property
    def thinking(self) -> bool:
        """Tell whether the model is to reason: as OpenRouter, vLLM or SGLang are told."""
        reasoning = self.body.get("reasoning")
        if isinstance(reasoning, dict):
            return reasoning.get("enabled") is not False and reasoning.get("effort") != "none"
        template = self.body.get("chat_template_kwargs")
        return not (isinstance(template, dict) and template.get("thinking") is False)

    @property
    def streams(self) -> bool:
        """Tell whether the reply is to arrive as events."""
        return self.body.get("stream") is True

    @property
    def wants_usage(self) -> bool:
        """Tell whether a server of one's own is to send the usage (OpenRouter always does)."""
        options = self.body.get("stream_options")
        return isinstance(options, dict) and options.get("include_usage") is True

    @property
    def wish(self) -> dict[str, Any]:
        """The request's `provider` object."""
        wish = self.body.get("provider")
        return wish if isinstance(wish, dict) else {}


def hashes(body: dict[str, Any]) -> tuple[str, str]:
    """Return the hash of the prompt (DESIGN §6: messages and tools), and of prompt and sampling."""
    prompt = {"messages": body.get("messages"), "tools": body.get("tools")}
    canonical = orjson.dumps(prompt, option=orjson.OPT_SORT_KEYS)
    sampling = {key: value for key, value in body.items() if key not in NOT_SAMPLING}
    rest = orjson.dumps(sampling, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(canonical).hexdigest(), hashlib.sha256(canonical + rest).hexdigest()


def parse(raw: bytes) -> dict[str, Any] | None:
    """Return a request's JSON object, or None for anything else."""
    try:
        body = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return body if isinstance(body, dict) else None
