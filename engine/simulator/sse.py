"""A finished reply as server-sent events: LF only, deltas, a terminal chunk, usage, [DONE]."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.simulator.scenario import Scenario

DONE = b"data: [DONE]\n\n"
COMMENT = b": OPENROUTER PROCESSING\n\n"
_CHARS_PER_TOKEN = 4
_TOP = ("id", "provider", "model", "created", "system_fingerprint")


def event(body: dict[str, Any]) -> bytes:
    """Return one event."""
    return b"data: " + orjson.dumps(body) + b"\n\n"


def events(reply: dict[str, Any], scenario: Scenario, *, wants_usage: bool) -> list[bytes]:
    """Return all events of a reply; a spoilt reply is spoilt as a stream too."""
    chunk = {key: reply[key] for key in _TOP if key in reply} | {"object": "chat.completion.chunk"}
    choices = reply.get("choices")
    if "error" in reply:
        # OpenRouter's stream just ends; a vLLM server ends it properly.
        done = [] if scenario.api == "openrouter" else _ended(scenario)
        return [event(chunk | _error_of(reply)), *done]
    if not choices:
        return [event(chunk | {"choices": choices}), *_ended(scenario)]
    choice = choices[0]
    written = [event(chunk | {"choices": [delta]}) for delta in _deltas(choice, scenario)]
    if choice.get("finish_reason") == "error":
        return [*written, event(chunk | _error_of(choice))]
    if reply.get("prompt_token_ids"):
        first = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        ids = {"prompt_token_ids": reply["prompt_token_ids"]}
        written.insert(0, event(chunk | {"choices": [first]} | ids))
    last = _end(choice)
    written.append(event(chunk | {"choices": [last]}))
    if wants_usage and reply.get("usage") is not None:
        repeated = [last] if scenario.stream.usage_chunk == "repeat" else []
        written.append(event(chunk | {"choices": repeated, "usage": reply["usage"]}))
    return [*written, *_ended(scenario)]


def _error_of(source: dict[str, Any]) -> dict[str, Any]:
    error = source.get("error") or {"code": 502, "message": "Provider disconnected"}
    end = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
    return {"error": error, "choices": [end]}


def _ended(scenario: Scenario) -> list[bytes]:
    return [DONE] if scenario.stream.done else []


def _end(choice: dict[str, Any]) -> dict[str, Any]:
    end = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None}
    keys = ("finish_reason", "native_finish_reason", "stop_reason", "matched_stop")
    return end | {key: choice[key] for key in keys if key in choice}


def _deltas(choice: dict[str, Any], scenario: Scenario) -> Iterator[dict[str, Any]]:
    message = choice["message"]
    width = scenario.stream.tokens_per_chunk * _CHARS_PER_TOKEN
    reasoning = _reasoning(message)
    parts = [_reasoning_delta(message, piece) for piece in _pieces(reasoning, width)]
    parts += [{"content": piece} for piece in _pieces(message.get("content") or "", width)]
    if message.get("tool_calls"):
        parts.append({"content": "", "tool_calls": message["tool_calls"]})
    ids = choice.get("token_ids")
    for number, part in enumerate(parts):
        delta = {"role": "assistant", "content": "", **part}
        yield {"index": 0, "delta": delta, "finish_reason": None, "logprobs": None} | (
            {} if ids is None else {"token_ids": ids if number == 0 else []}
        )


def _reasoning(message: dict[str, Any]) -> str:
    details = message.get("reasoning_details") or [{}]
    text = message.get("reasoning") or message.get("reasoning_content") or details[0].get("text")
    return text or ""


def _reasoning_delta(message: dict[str, Any], piece: str) -> dict[str, Any]:
    delta: dict[str, Any] = {k: piece for k in ("reasoning", "reasoning_content") if k in message}
    if "reasoning_details" in message:
        detail = {"type": "reasoning.text", "text": piece, "format": "unknown", "index": 0}
        delta["reasoning_details"] = [detail]
    return delta


def _pieces(text: str, width: int) -> list[str]:
    return [text[start : start + width] for start in range(0, len(text), width)]
