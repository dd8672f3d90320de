"""Whole replies as the hosts give them (facts/openrouter.md §2 and §7), to be changed by tests."""

from __future__ import annotations

import copy
from typing import Any

MODEL = "moonshotai/kimi-k2.5"
SERVED = "moonshotai/kimi-k2.5-0127"

_OPENROUTER: dict[str, Any] = {
    "id": "gen-1796043600-abcdefghij0123456789",
    "object": "chat.completion",
    "created": 1796043600,
    "model": SERVED,
    "provider": "SiliconFlow",
    "system_fingerprint": None,
    "service_tier": None,
    "choices": [
        {
            "index": 0,
            "logprobs": None,
            "finish_reason": "stop",
            "native_finish_reason": "stop",
            "message": {
                "role": "assistant",
                "content": " Paris is the capital of France. 中文 ✓\n",
                "refusal": None,
                "reasoning": " The user asks for a capital.\n ",
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "text": " The user asks for a capital.\n ",
                        "format": "unknown",
                        "index": 0,
                    }
                ],
            },
        }
    ],
    "usage": {
        "prompt_tokens": 21,
        "completion_tokens": 34,
        "total_tokens": 55,
        "cost": 0.000085,
        "is_byok": False,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
        "cost_details": {"upstream_inference_cost": 0.000085},
        "completion_tokens_details": {"reasoning_tokens": 9, "image_tokens": 0},
    },
}


def openrouter() -> dict[str, Any]:
    """A plain answer with reasoning."""
    return copy.deepcopy(_OPENROUTER)


def answering(**message: Any) -> dict[str, Any]:
    """The plain answer with parts of its message replaced."""
    body = openrouter()
    body["choices"][0]["message"].update(message)
    return body


def finishing(finish: Any, native: Any = None) -> dict[str, Any]:
    """The plain answer with other finish reasons."""
    body = openrouter()
    body["choices"][0].update(finish_reason=finish, native_finish_reason=native)
    return body


def calling_tools() -> dict[str, Any]:
    """An answer that calls a tool."""
    call = {
        "id": "functions.weather:0",
        "type": "function",
        "index": 0,
        "function": {"name": "weather", "arguments": '{"city":"Paris"}'},
    }
    body = answering(content=None, tool_calls=[call])
    body["choices"][0]["finish_reason"] = "tool_calls"
    return body


def vllm() -> dict[str, Any]:
    """vLLM with return_token_ids."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Paris.",
                    "reasoning": "France.",
                    "tool_calls": [],
                },
                "finish_reason": "stop",
                "stop_reason": None,
                "token_ids": [4637, 13, 163607, 12366, 13, 163586],
            }
        ],
        "usage": {"prompt_tokens": 4, "completion_tokens": 6, "total_tokens": 10},
        "prompt_token_ids": [163588, 69702, 163601, 163606],
    }


def sglang() -> dict[str, Any]:
    """SGLang with return_token_ids; no `provider`, reasoning in `reasoning_content`."""
    body = vllm()
    choice = body["choices"][0]
    del body["prompt_token_ids"]
    choice["prompt_token_ids"] = [163588, 69702, 163601, 163606]
    choice["response_token_ids"] = choice.pop("token_ids")
    message = choice["message"]
    message["reasoning_content"] = message.pop("reasoning")
    message["tool_calls"] = None
    body["usage"]["reasoning_tokens"] = 2
    return body


def inline() -> dict[str, Any]:
    """A host that leaves the reasoning in the content."""
    return answering(
        content="<think>France, so Paris.</think>Paris.", reasoning=None, reasoning_details=None
    )
