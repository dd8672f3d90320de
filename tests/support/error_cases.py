"""Error replies of every shape in facts/openrouter.md §3, §5 and §7, with the ruling on each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ErrorCase:
    """One error reply. What stands at its default is not asserted."""

    name: str
    status: int
    body: Any
    """A JSON value, or text for a body that is none."""
    family: str
    scope: str | None = None
    retry: bool | None = None
    headers: dict[str, str] = field(default_factory=dict)
    wait_s: float | None = None
    provider: str | None = None
    says: str = ""
    """Part of the message that the operator must see."""


def openrouter(code: int | str | None, message: str, **metadata: Any) -> dict[str, Any]:
    error: dict[str, Any] = {"message": message}
    if code is not None:
        error["code"] = code
    if metadata:
        error["metadata"] = metadata
    return {"error": error, "user_id": "user_2x"}


def availability(status: int, error_type: str, **rest: Any) -> dict[str, Any]:
    return {
        "error": {
            "http_status": status,
            "error_type": error_type,
            "message": "No capacity for this request right now",
            "availability": rest,
        }
    }


CONTEXT = (
    "This endpoint's maximum context length is 262144 tokens. However, you requested about "
    "270000 tokens (8000 of text input, 262000 in the output). Please reduce the length of "
    'either one, or use the "middle-out" transform to compress your prompt automatically.'
)
AFFORD = (
    "This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, "
    "but can only afford 1021."
)
POOL = {
    "raw": "moonshotai/kimi-k2.5 is temporarily rate-limited upstream. Please retry shortly",
    "provider_name": "SiliconFlow",
    "is_byok": False,
    "limit_source": "upstream_provider_shared_pool",
    "remedy_hint": "Retry shortly, or route to another provider",
}
DATE = "Mon, 30 Nov 2026 13:00:00 GMT"
CLOUDFLARE = (
    "<!DOCTYPE html><html><head><title>Access denied | openrouter.ai used Cloudflare to restrict"
    "</title></head><body>Error 1015 You are being rate limited</body></html>"
)
GATEWAY = "<html>\r\n<head><title>502 Bad Gateway</title></head><body>nginx</body></html>"
PROVIDER_ERROR = "Provider returned error"

BAD_REQUESTS = [
    ErrorCase(
        "invalid params",
        400,
        openrouter(400, "temperature must be at most 2"),
        "bad_request",
        "prompt",
        False,
    ),
    ErrorCase(
        "invalid model",
        400,
        openrouter(400, "moonshot/kimi is not a valid model ID"),
        "model_gone",
        "run",
        False,
    ),
    ErrorCase(
        "no messages",
        400,
        openrouter(400, 'Input required: specify "prompt" or "messages"'),
        "bad_request",
        "prompt",
    ),
    ErrorCase("context (aider#3721)", 400, openrouter(400, CONTEXT), "context_length", "prompt"),
    ErrorCase(
        "mandatory reasoning",
        400,
        openrouter(400, "Reasoning is mandatory for this endpoint and cannot be disabled."),
        "bad_request",
        "prompt",
    ),
    ErrorCase(
        "a provider's 400 gets one try elsewhere",
        400,
        openrouter(
            400, PROVIDER_ERROR, raw='{"code":20015,"message":"bad"}', provider_name="Novita"
        ),
        "bad_request",
        "provider",
        True,
        provider="Novita",
        says="20015",
    ),
    ErrorCase(
        "a provider's words about a model do not end the run",
        400,
        openrouter(400, PROVIDER_ERROR, raw="prompt says: model x does not exist"),
        "bad_request",
        "provider",
        True,
    ),
    ErrorCase(
        "a provider's context error",
        400,
        openrouter(400, PROVIDER_ERROR, raw="Input prompt is too long", provider_name="Novita"),
        "context_length",
        "prompt",
        False,
    ),
    ErrorCase(
        "reasoning_content missing (pi#987)",
        400,
        openrouter(
            400,
            "thinking is enabled but reasoning_content is missing in assistant tool call message",
        ),
        "bad_request",
        "prompt",
    ),
    ErrorCase(
        "string code",
        400,
        openrouter("context_length_exceeded", "too long"),
        "context_length",
        "prompt",
    ),
    ErrorCase("string number", 502, openrouter("502", "bad upstream"), "bad_gateway", "provider"),
    ErrorCase(
        "error_type string_too_long",
        400,
        openrouter(400, "x", error_type="string_too_long"),
        "context_length",
    ),
    ErrorCase(
        "error_type invalid_prompt",
        400,
        openrouter(400, "x", error_type="invalid_prompt"),
        "bad_request",
        "prompt",
    ),
    ErrorCase(
        "Zod",
        400,
        {"success": False, "error": {"name": "ZodError", "message": '[{"path":["model"]}]'}},
        "bad_request",
        "prompt",
        says="path",
    ),
    ErrorCase("413", 413, openrouter(413, "Payload too large"), "too_large", "prompt", False),
    ErrorCase("422", 422, openrouter(422, "semantic"), "bad_request", "prompt", False),
]
REFUSED_KEYS = [
    ErrorCase(
        "no key", 401, openrouter(401, "No cookie auth credentials found"), "auth", "run", False
    ),
    ErrorCase("bad key", 401, openrouter(401, "User not found."), "auth", "run", False),
    ErrorCase("bare string (vLLM, SGLang)", 401, {"error": "Unauthorized"}, "auth", "run", False),
    ErrorCase(
        "a provider's 401", 401, openrouter(401, PROVIDER_ERROR), "provider_error", "provider"
    ),
    ErrorCase(
        "in-flight budget",
        402,
        openrouter(
            402,
            "Too much of the balance is held by requests in flight",
            limit_source="openrouter_in_flight_budget",
            reason="in_flight_budget_exhausted",
        ),
        "in_flight_budget",
        "account",
        True,
        headers={"Retry-After": "118"},
        wait_s=118.0,
    ),
    ErrorCase(
        "in-flight budget without Retry-After",
        402,
        openrouter(402, "x", limit_source="openrouter_in_flight_budget"),
        "in_flight_budget",
        "account",
        True,
        wait_s=120.0,
    ),
    ErrorCase(
        "in-flight budget by its words (yolop#701)",
        402,
        openrouter(402, "In-flight spend limit reached"),
        "in_flight_budget",
        "account",
        True,
    ),
    ErrorCase(
        "credits",
        402,
        openrouter(402, "Insufficient credits", limit_source="openrouter_credits"),
        "credits",
        "run",
        False,
    ),
    ErrorCase(
        "request too big for the balance",
        402,
        openrouter(402, "x", limit_source="openrouter_credits", reason="weight_exceeds_budget"),
        "cannot_afford",
        "run",
        False,
    ),
    ErrorCase(
        "can only afford (oh-my-pi#9569)",
        402,
        openrouter(402, AFFORD, previous_errors=[{"code": 402}]),
        "cannot_afford",
        "run",
        False,
        says="1021",
    ),
    ErrorCase(
        "can only afford, with limit_source",
        402,
        openrouter(402, AFFORD, limit_source="openrouter_credits"),
        "cannot_afford",
        "run",
        False,
    ),
    ErrorCase(
        "key limit as 402",
        402,
        openrouter(402, "x", limit_source="openrouter_key_limit"),
        "key_limit",
        "run",
        False,
    ),
    ErrorCase("unknown 402", 402, openrouter(402, "Payment required"), "credits", "run", False),
    ErrorCase(
        "quota of an OpenAI-like host",
        429,
        {"error": {"message": "quota", "type": "insufficient_quota", "code": "insufficient_quota"}},
        "credits",
        "run",
        False,
    ),
]
FORBIDDEN = [
    ErrorCase(
        "moderation",
        403,
        openrouter(
            403,
            "Input was flagged",
            reasons=["violence", "hate"],
            flagged_input="how to ...",
            provider_name="OpenInference",
            model_slug="moonshotai/kimi-k2.5",
        ),
        "moderation",
        "prompt",
        False,
        provider="OpenInference",
        says="violence, hate",
    ),
    ErrorCase(
        "guardrail patterns",
        403,
        openrouter(403, "Request blocked", patterns=["ssn"]),
        "moderation",
        "prompt",
        False,
    ),
    ErrorCase(
        "content policy",
        403,
        openrouter(403, "x", error_type="content_policy_violation"),
        "moderation",
        "prompt",
    ),
    ErrorCase(
        "geo gate",
        403,
        openrouter(403, "Not available in your region", failed_routing_step="Filter by Region"),
        "forbidden",
        "run",
        False,
    ),
    ErrorCase(
        "key limit as 403 (gptme#1449)",
        403,
        openrouter(403, "Key limit exceeded (monthly limit). Manage it in the settings."),
        "key_limit",
        "run",
        False,
    ),
    ErrorCase(
        "workspace budget",
        403,
        openrouter(403, "Workspace budget reached for this month"),
        "key_limit",
        "run",
        False,
    ),
    ErrorCase(
        "an unexplained 403 gives up its prompt, not the run",
        403,
        openrouter(403, "Access denied by security policy"),
        "forbidden",
        "prompt",
        False,
    ),
    ErrorCase(
        "a provider's 403",
        403,
        openrouter(403, PROVIDER_ERROR, raw="limit exceeded", provider_name="Venice"),
        "provider_error",
        "provider",
        True,
    ),
]
ROUTES = [
    ErrorCase(
        "no endpoints (opencode#1558)",
        404,
        openrouter(404, "No endpoints found for moonshotai/kimi-k2.5."),
        "no_route",
        "run",
        False,
    ),
    *(
        ErrorCase(
            f"routing funnel: {step}",
            404,
            openrouter(
                404,
                "No allowed providers are available for the selected model.",
                available_providers=["novita"],
                requested_providers=["groq"],
                routing_funnel=[{"step": step, "endpoint_count": 0}],
                failed_routing_step=step,
            ),
            family,
            scope,
            retry,
            says=step,
        )
        for step, family, scope, retry in (
            ("Filter by Allowed Providers", "no_route", "run", False),
            ("Filter by Ignored Providers", "route_ignored", "attempt", True),
            ("Filter by Parameters", "no_route", "run", False),
            ("Filter by Max Price", "no_route", "run", False),
            ("Filter by Data Policy", "no_route", "run", False),
            ("Filter by Guardrails", "no_route", "run", False),
            ("Filter by Tool Compatibility", "no_route", "prompt", False),
        )
    ),
    ErrorCase(
        "tools are a matter of the prompt",
        404,
        openrouter(404, "No endpoints found that support tool use."),
        "no_route",
        "prompt",
        False,
    ),
    ErrorCase(
        "all ignored",
        404,
        openrouter(404, "All providers have been ignored."),
        "route_ignored",
        "attempt",
        True,
    ),
    ErrorCase(
        "a provider's 404", 404, openrouter(404, PROVIDER_ERROR), "provider_error", "provider"
    ),
    ErrorCase("wrong path (FastAPI)", 404, {"detail": "Not Found"}, "not_found", "run", False),
    ErrorCase("wrong path (page)", 404, "<html><title>404</title></html>", "not_found", "run"),
    ErrorCase("method", 405, {"detail": "Method Not Allowed"}, "not_found", "run"),
    ErrorCase("redirect", 301, "", "redirected", "run", False),
]
LIMITS = [
    ErrorCase(
        "upstream 429, wait in the metadata",
        429,
        openrouter(429, PROVIDER_ERROR, **POOL, retry_after_seconds=89),
        "rate_limit",
        "provider",
        True,
        wait_s=89.0,
        provider="SiliconFlow",
        says="temporarily rate-limited",
    ),
    ErrorCase(
        "upstream 429, no wait",
        429,
        openrouter(429, PROVIDER_ERROR, **POOL),
        "rate_limit",
        "provider",
        True,
        provider="SiliconFlow",
    ),
    ErrorCase(
        "upstream 429, the header wins",
        429,
        openrouter(429, PROVIDER_ERROR, **POOL, retry_after_seconds=89),
        "rate_limit",
        headers={"retry-after": "7"},
        wait_s=7.0,
    ),
    ErrorCase(
        "upstream 429, wait in metadata.headers",
        429,
        openrouter(429, PROVIDER_ERROR, **POOL, headers={"Retry-After": "12"}),
        "rate_limit",
        wait_s=12.0,
    ),
    ErrorCase(
        "upstream 429, raw wait only",
        429,
        openrouter(429, PROVIDER_ERROR, **POOL, retry_after_seconds_raw=4.5),
        "rate_limit",
        wait_s=4.5,
    ),
    ErrorCase(
        "upstream 429 with a date",
        429,
        openrouter(429, PROVIDER_ERROR, **POOL),
        "rate_limit",
        headers={"Retry-After": "Mon, 30 Nov 2026 13:00:30 GMT", "Date": DATE},
        wait_s=30.0,
    ),
    ErrorCase(
        "admission control",
        429,
        openrouter(
            429,
            "could not verify available credits for this request in time",
            limit_source="openrouter_admission_control",
            provider_name=None,
            headers={"Retry-After": 10},
        ),
        "account_limit",
        "account",
        True,
        wait_s=10.0,
    ),
    ErrorCase(
        "no provider named",
        429,
        openrouter(429, "Rate limited", provider_name=None),
        "account_limit",
        "account",
        True,
        wait_s=10.0,
    ),
    ErrorCase(
        "free tier, reset in milliseconds of the epoch",
        429,
        openrouter(
            429,
            "Rate limit exceeded: free-models-per-day",
            limit_source="openrouter_free_tier_daily",
            headers={"X-RateLimit-Reset": "1796083200000"},
        ),
        "account_limit",
        "account",
        True,
        headers={"date": DATE},
        wait_s=39600.0,
    ),
    ErrorCase(
        "capacity",
        429,
        availability(429, "rate_limit_exceeded", code="capacity_exhausted", retry_after=20),
        "rate_limit",
        "provider",
        True,
        wait_s=20.0,
    ),
    ErrorCase("plain 429", 429, openrouter(429, "slow down"), "rate_limit", "provider", True),
    ErrorCase("429 without words", 429, "", "rate_limit", "provider", True),
    ErrorCase("Cloudflare 1015", 429, CLOUDFLARE, "edge_limit", "account", True, wait_s=60.0),
    ErrorCase("Cloudflare plain", 429, "error code: 1015", "edge_limit", "account", True),
    ErrorCase("Cloudflare 403 (activeagent#228)", 403, CLOUDFLARE, "edge_limit", "account", True),
]
SERVERS = [
    ErrorCase("408", 408, openrouter(408, "timed out"), "timeout_upstream", "provider", True),
    ErrorCase(
        "500", 500, openrouter(500, "Internal Server Error", error_type="server"), "server_error"
    ),
    ErrorCase("502", 502, openrouter(502, "No content from provider"), "bad_gateway", "provider"),
    ErrorCase("502 page", 502, GATEWAY, "bad_gateway", "provider", True, says="502 Bad Gateway"),
    ErrorCase(
        "503 routing",
        503,
        openrouter(
            503, "There is no available model provider that meets your routing requirements"
        ),
        "no_provider_now",
        "provider",
        True,
        wait_s=20.0,
    ),
    ErrorCase("503", 503, openrouter(503, "busy"), "overloaded", "provider", True),
    ErrorCase(
        "504 timeout",
        504,
        openrouter(504, "x", error_type="timeout"),
        "timeout_upstream",
        "provider",
    ),
    ErrorCase("524 page", 524, "<html>A timeout occurred</html>", "timeout_upstream", "provider"),
    ErrorCase("520 page", 520, "<html>Web server error</html>", "bad_gateway", "provider"),
    ErrorCase(
        "529", 529, openrouter(529, "x", error_type="provider_overloaded"), "overloaded", "provider"
    ),
    ErrorCase(
        "provider_unavailable",
        503,
        openrouter(503, "x", error_type="provider_unavailable"),
        "bad_gateway",
        "provider",
    ),
    ErrorCase("unknown code", 418, openrouter(418, "teapot"), "unknown_code", "attempt", True),
    ErrorCase("unmapped", 409, openrouter(409, "x", error_type="unmapped"), "unknown_code"),
    ErrorCase(
        "unknown code, retryable",
        418,
        availability(418, "teapot", retryable=True, retry_after=3),
        "unknown_code",
        "attempt",
        True,
        wait_s=3.0,
    ),
    ErrorCase(
        "unknown code, not retryable",
        418,
        availability(418, "teapot", retryable=False),
        "unknown_code",
        "prompt",
        False,
    ),
    ErrorCase(
        "503, not retryable",
        503,
        availability(503, "provider_overloaded", retryable=False),
        "overloaded",
        "prompt",
        False,
    ),
    ErrorCase(
        "402, retryable",
        402,
        availability(402, "payment_required", retryable=True),
        "credits",
        "account",
        True,
    ),
]
ENGINES = [
    ErrorCase(
        "vLLM over-length",
        400,
        {
            "error": {
                "message": "This model's maximum context length is 262144 tokens.",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        },
        "context_length",
        "prompt",
    ),
    ErrorCase(
        "vLLM older flat form",
        400,
        {
            "object": "error",
            "message": "bad",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        "bad_request",
        "prompt",
    ),
    ErrorCase(
        "vLLM unknown model",
        404,
        {
            "error": {
                "message": "The model `kimi` does not exist.",
                "type": "NotFoundError",
                "param": "model",
                "code": 404,
            }
        },
        "model_gone",
        "run",
        False,
    ),
    ErrorCase(
        "vLLM 422",
        422,
        {"error": {"message": "x", "type": "UnprocessableEntity", "param": None, "code": 422}},
        "bad_request",
        "prompt",
    ),
    ErrorCase(
        "vLLM 500",
        500,
        {"error": {"message": "x", "type": "InternalServerError", "param": None, "code": 500}},
        "server_error",
        "provider",
        True,
    ),
    ErrorCase(
        "vLLM 501",
        501,
        {"error": {"message": "x", "type": "NotImplementedError", "code": 501}},
        "bad_request",
    ),
    ErrorCase(
        "vLLM queue full",
        503,
        {"error": {"message": "queue full", "type": "ServiceUnavailable", "code": 503}},
        "overloaded",
        "provider",
        True,
    ),
    ErrorCase(
        "SGLang validation",
        400,
        {
            "object": "error",
            "message": "bad top_p",
            "type": "BadRequest",
            "param": None,
            "code": 400,
        },
        "bad_request",
        "prompt",
    ),
    ErrorCase(
        "SGLang over-length",
        400,
        {
            "object": "error",
            "message": "The input (300000 tokens) is longer than the model's context length.",
            "type": "BadRequestError",
            "code": 400,
        },
        "context_length",
        "prompt",
    ),
    ErrorCase(
        "SGLang queue full",
        503,
        {"object": "error", "message": "The request queue is full.", "type": "503", "code": None},
        "overloaded",
        "provider",
        True,
    ),
    ErrorCase(
        "FastAPI validation",
        422,
        {"detail": [{"loc": ["body", "model"], "msg": "Field required", "type": "missing"}]},
        "bad_request",
        "prompt",
        says="Field required",
    ),
]
IN_200 = [
    ErrorCase(
        "upstream error without choices",
        200,
        {
            "id": "gen-1",
            "error": {
                "message": "Upstream error from Nvidia: Service temporarily overloaded",
                "code": 503,
                "metadata": {"error_type": "provider_overloaded"},
            },
        },
        "overloaded",
        "provider",
        True,
        provider="Nvidia",
        says="temporarily overloaded",
    ),
    ErrorCase("bare (aider#3550)", 200, {"error": "rate limit"}, "error_in_200", "provider", True),
    ErrorCase(
        "429 inside, X-RateLimit in metadata.headers (aider#3550)",
        200,
        openrouter(
            429,
            "Rate limit exceeded: free-models-per-min",
            headers={"X-RateLimit-Reset": "1796043660000"},
        ),
        "account_limit",
        "account",
        True,
        headers={"Date": DATE},
        wait_s=60.0,
    ),
    ErrorCase("code unknown", 200, openrouter(None, "it broke"), "error_in_200", "provider", True),
    ErrorCase(
        "402 inside",
        200,
        openrouter(402, "x", limit_source="openrouter_in_flight_budget"),
        "in_flight_budget",
        "account",
        True,
    ),
    ErrorCase(
        "SGLang's stream form",
        200,
        {"error": {"object": "error", "message": "x", "type": "BadRequest", "code": 400}},
        "bad_request",
        "prompt",
    ),
    ErrorCase("flat in 200", 200, {"object": "error", "message": "x", "code": 500}, "server_error"),
]
ALL = [
    *BAD_REQUESTS,
    *REFUSED_KEYS,
    *FORBIDDEN,
    *ROUTES,
    *LIMITS,
    *SERVERS,
    *ENGINES,
    *IN_200,
]
