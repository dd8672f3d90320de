"""The same completion and the same refusal in the words of OpenRouter, vLLM and SGLang (§7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from engine.simulator.usage import usage_body
from engine.tokens import kimi

if TYPE_CHECKING:
    from engine.simulator.answer import Answer
    from engine.simulator.artefacts import Served
    from engine.simulator.call import Call
    from engine.simulator.scenario import Host, Scenario
    from engine.simulator.usage import Usage


@dataclass(frozen=True, slots=True)
class Completion:
    """A finished generation with everything that a dialect may tell of it."""

    call: Call
    host: Host
    answer: Answer
    served: Served
    usage: Usage
    prompt_ids: list[int] | None
    """None where the request did not ask for ids."""


class Dialect(Protocol):
    """How an API words replies and errors."""

    def reply(self, done: Completion) -> dict[str, Any]:
        """Return the body of a completion."""
        ...

    def error(self, status: int, message: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Return status and body of a refusal; `body` is OpenRouter's."""
        ...


class OpenRouter:
    """What OpenRouter passes on."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def reply(self, done: Completion) -> dict[str, Any]:
        """Return the body of a completion."""
        served = done.served
        message = _message(served) | {"refusal": None} | served.reasoning_keys()
        if served.tool_calls:
            message["tool_calls"] = served.tool_calls
        choice = {
            "index": 0,
            "logprobs": None,
            "finish_reason": served.finish,
            "native_finish_reason": served.finish,
            "message": message,
        }
        return {
            "id": done.call.id,
            "object": "chat.completion",
            "created": int(done.call.wall),
            "model": self._scenario.canonical,
            "provider": done.host.name,
            "system_fingerprint": None,
            "service_tier": None,
            "choices": [choice],
            "usage": usage_body(done.usage, done.host),
        }

    def error(self, status: int, message: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Return the body as it is."""
        del message
        return status, body


class Vllm:
    """What a vLLM server answers; with `return_token_ids` it tells the ids."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def reply(self, done: Completion) -> dict[str, Any]:
        """Return the body of a completion."""
        served = done.served
        message = _message(served) | {
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "tool_calls": [_without_index(call) for call in served.tool_calls],
            "reasoning": served.reasoning,
        }
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": served.finish,
            "stop_reason": None if served.finish == "length" else kimi.IM_END,
            "token_ids": None if done.prompt_ids is None else done.answer.ids,
        }
        return {
            "id": f"chatcmpl-{done.call.id[-20:]}",
            "object": "chat.completion",
            "created": int(done.call.wall),
            "model": self._scenario.model,
            "choices": [choice],
            "service_tier": None,
            "system_fingerprint": None,
            "usage": _usage(done.usage),
            "prompt_logprobs": None,
            "prompt_token_ids": done.prompt_ids,
            "kv_transfer_params": None,
        }

    def error(self, status: int, message: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Return vLLM's own words: a 401 is a bare string, an unknown model a 404."""
        del body
        if status == 401:  # noqa: PLR2004 (HTTP's own number)
            return status, {"error": "Unauthorized"}
        if "is not a valid model ID" in message:
            status = 404
            message = f"The model `{message.split(maxsplit=1)[0]}` does not exist."
        kind = _VLLM_TYPES.get(status, "InternalServerError")
        return status, {"error": {"message": message, "type": kind, "param": None, "code": status}}


class Sglang:
    """What an SGLang server answers; with `return_token_ids` it tells the ids, in the choice."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def reply(self, done: Completion) -> dict[str, Any]:
        """Return the body of a completion."""
        served = done.served
        message = _message(served) | {
            "content": served.content or "",
            "reasoning_content": served.reasoning,
            "tool_calls": served.tool_calls or None,
        }
        choice: dict[str, Any] = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": served.finish,
            "matched_stop": None if served.finish == "length" else kimi.IM_END,
        }
        if done.prompt_ids is not None:
            choice |= {"prompt_token_ids": done.prompt_ids, "response_token_ids": done.answer.ids}
        return {
            "id": done.call.id[-32:],
            "object": "chat.completion",
            "created": int(done.call.wall),
            "model": self._scenario.model,
            "choices": [choice],
            "usage": _usage(done.usage) | {"reasoning_tokens": done.usage.reasoning},
            "metadata": {"weight_version": "default"},
        }

    def error(self, status: int, message: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Return SGLang's flat error."""
        del body
        if status == 401:  # noqa: PLR2004 (HTTP's own number)
            return status, {"error": "Unauthorized"}
        kind = "BadRequestError" if status == 400 else str(status)  # noqa: PLR2004 (HTTP's own number)
        flat = {"object": "error", "message": message, "type": kind, "param": None, "code": status}
        return status, flat


_VLLM_TYPES = {
    400: "BadRequestError",
    404: "NotFoundError",
    422: "UnprocessableEntityError",
    429: "TooManyRequestsError",
    501: "NotImplementedError",
    503: "ServiceUnavailableError",
}


def _message(served: Served) -> dict[str, Any]:
    return {"role": "assistant", "content": served.content}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.prompt,
        "total_tokens": usage.prompt + usage.completion,
        "completion_tokens": usage.completion,
        "prompt_tokens_details": None,
    }


def _without_index(call: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in call.items() if key != "index"}


def dialect_of(scenario: Scenario) -> Dialect:
    """Return the dialect of a scenario's `api`."""
    dialects: dict[str, type[OpenRouter | Vllm | Sglang]] = {
        "openrouter": OpenRouter,
        "vllm": Vllm,
        "sglang": Sglang,
    }
    return dialects[scenario.api](scenario)
