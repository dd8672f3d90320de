"""Bodies of refusals, as public reports show them (facts page, §3): each a function of a Scene."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.simulator.scene import Scene

Body = dict[str, Any]


def error(code: int | str, message: str, metadata: Body | None = None, **more: Any) -> Body:
    """Return OpenRouter's error body."""
    inner: Body = {"message": message, "code": code}
    if metadata is not None:
        inner["metadata"] = metadata
    return {"error": {**inner, **more}}


def plain(code: int, message: str, error_type: str | None = None) -> Callable[[Scene], Body]:
    """Return a maker of a body that says the same to everyone."""
    metadata = {"error_type": error_type} if error_type else None
    return lambda _scene: error(code, message, metadata)


def from_provider(code: int, error_type: str, raw: str) -> Callable[[Scene], Body]:
    """Return a maker of a body that passes on what the host said."""

    def make(scene: Scene) -> Body:
        metadata = {
            "raw": raw.format(model=scene.model, provider=scene.provider),
            "provider_name": scene.provider,
            "is_byok": False,
            "error_type": error_type,
        }
        return {**error(code, "Provider returned error", metadata), "user_id": "user_sim"}

    return make


def limited(limit_source: str, raw: str, *, upstream: bool) -> Callable[[Scene], Body]:
    """Return a maker of a 429 with its limit source and its retry hint."""

    def make(scene: Scene) -> Body:
        metadata: Body = {
            "raw": raw.format(model=scene.model),
            "provider_name": scene.provider if upstream else None,
            "is_byok": False,
            "provider_error_code": 429 if upstream else None,
            "limit_source": limit_source,
            "error_type": "rate_limit_exceeded",
            **scene.hint(),
        }
        if upstream:
            metadata["remedy_hint"] = "retry_or_use_other_providers"
        message = "Provider returned error" if upstream else raw
        return {**error(429, message, metadata), "user_id": "user_sim"}

    return make


def free_tier(scene: Scene) -> Body:
    """429 of the free tier: the reset is in epoch milliseconds."""
    headers = {
        "X-RateLimit-Limit": "50",
        "X-RateLimit-Remaining": "0",
        "X-RateLimit-Reset": str(scene.now_ms + int(scene.retry_after_s * 1000)),
    }
    metadata = {"headers": headers, "limit_source": "openrouter_free_tier_daily"}
    return error(429, "Rate limit exceeded: free-models-per-day", metadata)


def available(status: int, code: str, message: str, *, retryable: bool) -> Callable[[Scene], Body]:
    """Return a maker of an `availability` body: no `code`, but whether to retry and when."""

    def make(scene: Scene) -> Body:
        availability: Body = {"code": code, "retryable": retryable}
        if retryable and scene.retry_hint == "availability":
            availability["retry_after"] = scene.retry_after_s
        return {
            "error": {
                "message": message,
                "http_status": status,
                "error_type": "rate_limit_exceeded" if status == 429 else "provider_unavailable",  # noqa: PLR2004 (HTTP's own number)
                "availability": availability,
            }
        }

    return make


def in_flight_budget(scene: Scene) -> Body:
    """402 that passes by itself: the holds of requests in flight fill the balance."""
    metadata = {
        "limit_source": "openrouter_in_flight_budget",
        "reason": "in_flight_budget_exhausted",
        "error_type": "payment_required",
        **scene.hint(),
    }
    return error(402, "Your in-flight requests exceed the budget of your balance.", metadata)


def cannot_afford(scene: Scene) -> Body:
    """402 that a smaller `max_tokens` would mend."""
    message = (
        "This request requires more credits, or fewer max_tokens. You requested up to "
        f"{scene.max_tokens} tokens, but can only afford {scene.affordable_tokens}. To increase, "
        "visit the credits page and add more credits"
    )
    metadata = {"limit_source": "openrouter_credits", "previous_errors": []}
    return error(402, message, metadata)


def credits_gone(_scene: Scene) -> Body:
    """402 that only a top-up ends."""
    metadata = {"limit_source": "openrouter_credits", "error_type": "payment_required"}
    return error(402, "Insufficient credits. Add more to go on.", metadata)


def weight_exceeds(_scene: Scene) -> Body:
    """402 of a single request that is too big for the balance."""
    metadata = {"limit_source": "openrouter_credits", "reason": "weight_exceeds_budget"}
    return error(402, "This request alone exceeds the credits left.", metadata)


def key_limit(code: int) -> Callable[[Scene], Body]:
    """Return a maker of the key's own limit, which comes as 402 and as 403."""
    metadata = {"limit_source": "openrouter_key_limit"} if code == 402 else None  # noqa: PLR2004 (HTTP's own number)
    text = "Key limit exceeded (total limit). Manage it in the key settings."
    return lambda _scene: error(code, text, metadata)


def moderation(scene: Scene) -> Body:
    """403 that quotes what was flagged."""
    metadata = {
        "reasons": ["violence"],
        "flagged_input": scene.prompt_head,
        "provider_name": scene.provider,
        "model_slug": scene.model,
    }
    return error(403, "Your chosen model requires moderation and your input was flagged", metadata)


def guardrail(_scene: Scene) -> Body:
    """403 of a workspace's guardrail."""
    return error(403, "Request blocked by a guardrail", {"patterns": ["secret"]})


def context_length(scene: Scene) -> Body:
    """400 of a prompt and an output that do not fit into the context together."""
    total = scene.prompt_tokens + scene.max_tokens
    message = (
        f"This endpoint's maximum context length is {scene.context_length} tokens. However, you "
        f"requested about {total} tokens ({scene.prompt_tokens} of text input, "
        f"{scene.max_tokens} in the output). Please reduce the length of either one, or use the "
        '"middle-out" transform to compress your prompt automatically.'
    )
    return error(400, message, {"error_type": "context_length_exceeded"})


def invalid_model(scene: Scene) -> Body:
    """400 of a model that is not in the catalogue."""
    return error(400, f"{scene.model} is not a valid model ID")


_ISSUES = [{"code": "invalid_type", "path": ["messages", 0], "message": "Expected object"}]
ZOD: Body = {
    "success": False,
    "error": {"name": "ZodError", "message": orjson.dumps(_ISSUES).decode()},
}
"""What a schema check says: no code, and a list as text where a message belongs."""


def zod(_scene: Scene) -> Body:
    """Return the body of a schema check."""
    return ZOD


def bare_string(_scene: Scene) -> Body:
    """Return an error that is a string, as vLLM and SGLang write a 401."""
    return {"error": "Unauthorized"}


def no_route(scene: Scene) -> Body:
    """404 of a route that no host is left on; the router itself says more (see `routing`)."""
    return error(404, f"No endpoints found for {scene.model}.")


def in_200(scene: Scene) -> Body:
    """Return the error body that arrives with status 200 and a generation id."""
    message = f"Upstream error from {scene.provider}: Service temporarily overloaded"
    body = error(503, message, {"error_type": "provider_overloaded"})
    return {"id": scene.request_id, **body}
