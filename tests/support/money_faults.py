"""What the engine has to make of each fault that the local provider can play (DESIGN §6)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Expected:
    """The attempts that a fault gives, or the row that it becomes all the same."""

    family: str = ""
    """Of the attempts; empty: a row at the first attempt."""
    scope: str = "provider"
    flags: tuple[str, ...] = ()
    """Of the row."""
    free: bool = False
    """The attempt surely cost nothing and says 0; otherwise its cost is told or unknown."""
    tries: int | None = None
    """Attempts of one prompt, where the family bounds them below `max_attempts`."""
    words: str = ""
    """Part of what the server said, as the operator has to read it."""


def _at(scope: str, **families: str) -> dict[str, Expected]:
    return {name: Expected(family, scope) for name, family in families.items()}


def _refused(family: str, words: str, *, scope: str = "prompt", tries: int = 1) -> Expected:
    return Expected(family, scope, free=True, tries=tries, words=words)


def _flagged(*flags: str) -> Expected:
    return Expected(flags=flags)


PROMPT = {
    "context_length": _refused("context_length", "maximum context length is 262144 tokens"),
    "provider_400": _refused("bad_request", '{"detail":"bad"}', scope="provider", tries=2),
    "thinking_400": _refused(
        "bad_request", "reasoning_content is missing", scope="provider", tries=2
    ),
    "zod": _refused("bad_request", "Expected object"),
    "string_code": _refused("bad_request", "Prompt is not valid"),
    "moderation": _refused("moderation", "violence"),
    "guardrail": _refused("moderation", "blocked by a guardrail"),
    "too_large_413": _refused("too_large", "Request too large"),
    "unprocessable_422": _refused("bad_request", "Unprocessable input"),
    "available_never": _refused("bad_gateway", "This model is gone"),
    "content_filter": Expected("content_filter", "prompt", tries=1),
}
"""Given up after one attempt, or after one more at another host."""

PROVIDER = {
    "timeout_408": Expected("timeout_upstream", words="Request timed out"),
    "server_500": Expected("server_error", words="Internal Server Error"),
    "bad_gateway": Expected("bad_gateway", words="upstream hung up"),
    "available_retry": Expected("bad_gateway", free=True, words="Try again later"),
    "timeout_504": Expected("timeout_upstream", words="took too long"),
    "edge_timeout_524": Expected("timeout_upstream", words="Edge timeout"),
    "html_502": Expected("bad_gateway", words="502 Bad Gateway"),
    "choices_null": Expected("no_choices"),
    "choices_empty": Expected("no_choices"),
    "empty_stop": Expected("empty_reply"),
    "whitespace_content": Expected("empty_reply"),
    "no_finish_reason": Expected("no_finish_reason"),
    "error_in_choice": Expected("bad_gateway", words="Internal server error"),
    "finish_error_partial": Expected("finish_error"),
    "network_error": Expected("finish_error", words="network_error"),
    "other_model": Expected("wrong_model", words="kimi-k2.6"),
    "other_provider": Expected("wrong_provider", words="DigitalOcean"),
    **_at("provider", whitespace_eof="whitespace", truncated_json="truncated_json"),
}
"""One host's failure: asked again, elsewhere."""

ATTEMPT = {
    "unknown_status_418": Expected(
        "unknown_code", "attempt", free=True, words="Something nobody has seen before"
    ),
    "html_200": Expected("html", "attempt", words="Just a moment"),
    **_at("attempt", not_http="not_http", reset_in_body="read_error", reset_late="disconnected"),
    **_at("attempt", close="disconnected", reset_early="disconnected", dribble="deadline"),
}
"""Nobody's failure that is known of: asked again."""

ROWS = {
    "refusal": _flagged("refusal"),
    "tools_in_reasoning": _flagged("reasoning_only", "control_tokens"),
    "length_empty": _flagged("truncated", "reasoning_only"),
    "reasoning_only": _flagged("reasoning_only"),
    "over_max_tokens": _flagged("over_max_tokens"),
    "huge": _flagged("over_max_tokens"),
    "no_usage": _flagged("no_usage"),
    "zero_usage": _flagged("no_usage"),
    "string_counts": _flagged("no_usage"),
    "control_tokens": _flagged("control_tokens"),
    **{name: _flagged() for name in ("replacement_char", "lone_surrogate", "whitespace_json")},
    "gzip": _flagged(),
}
"""Paid for and the model's: kept, and flagged where doubtful."""

BUSY = {
    "rate_limit_upstream": Expected("rate_limit", words="temporarily rate-limited upstream"),
    "rate_limit_capacity": Expected("rate_limit", words="Capacity exhausted"),
    "unavailable_503": Expected("no_provider_now", words="meets your routing requirements"),
    "overloaded_529": Expected("overloaded", words="Provider overloaded"),
    "queue_full": Expected("overloaded", words="The request queue is full"),
    "error_in_200": Expected("overloaded", words="Service temporarily overloaded"),
}
"""No room at the route: waits, and uses up none of the prompt's attempts."""

ACCOUNT = {
    "in_flight_budget": _refused("in_flight_budget", "exceed the budget", scope="account"),
    "rate_limit_admission": _refused("account_limit", "available credits", scope="account"),
    "rate_limit_free_tier": _refused("account_limit", "free-models-per-day", scope="account"),
    "html_403": _refused("edge_limit", "Error 1015", scope="account"),
    "html_429": _refused("edge_limit", "Error 1015", scope="account"),
}
"""The whole account waits."""

RUN = {
    "invalid_model": _refused("model_gone", "is not a valid model ID", scope="run"),
    "no_key": _refused("auth", "No cookie auth credentials found", scope="run"),
    "bad_key": _refused("auth", "User not found", scope="run"),
    "bare_string": _refused("auth", "Unauthorized", scope="run"),
    "credits": _refused("credits", "Insufficient credits", scope="run"),
    "credits_afford": _refused("cannot_afford", "can only afford", scope="run"),
    "credits_weight": _refused("cannot_afford", "exceeds the credits left", scope="run"),
    "key_limit_402": _refused("key_limit", "Key limit exceeded", scope="run"),
    "key_limit_403": _refused("key_limit", "Key limit exceeded", scope="run"),
    "no_endpoints": _refused("no_route", "No endpoints found", scope="run"),
}
"""The endpoint refuses everything: the run ends and says what to do."""

EVERY: dict[str, Expected] = PROMPT | PROVIDER | ATTEMPT | ROWS | BUSY | ACCOUNT | RUN

HEALED_BY_CACHE = frozenset(
    {
        *("whitespace_eof", "truncated_json", "not_http", "reset_in_body", "reset_late"),
        *("close", "dribble"),
    }
)
"""The reply was generated and paid for, only its way to us was broken: asked again it is free."""
