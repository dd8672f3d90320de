"""The one table of faults that the provider can play, by scenario and by `[[sim:NAME]]`.

A prompt that contains `[[sim:NAME]]` suffers the fault at every attempt, `[[sim:NAME*2]]` at the
first two; several triggers in one prompt are played in turn.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from engine.simulator import distortions as d
from engine.simulator import refusals as r
from engine.simulator import shapes as s

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.simulator.answer import Answer
    from engine.simulator.scene import Scene
    from engine.simulator.writer import Writer

Charge = Literal["none", "prompt", "full"]
Delivery = Literal[
    "plain",
    "close",
    "dribble",
    "gzip",
    "not_http",
    "reset",
    "reset_in_body",
    "surrogate",
    "truncated",
    "whitespace_eof",
    "whitespace_json",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to fail.

    `refuse` makes the body of an error and `html` is a page of a proxy, both `at_once` where
    nothing is generated; `shape` makes the model answer badly, `edit` spoils the JSON of a good
    reply; `delivery` is how the bytes travel. `charge` is what the account pays all the same.
    `hint` and `retry_after_s` say where and when this refusal advises to try again, unless the
    scenario says otherwise.
    """

    name: str
    status: int = 200
    refuse: Callable[[Scene], dict[str, Any]] | None = None
    shape: Callable[[Answer, Writer, int | None], Answer] | None = None
    edit: Callable[[dict[str, Any]], None] | None = None
    html: str | None = None
    delivery: Delivery = "plain"
    charge: Charge = "full"
    at_once: bool = False
    hint: str = "none"
    retry_after_s: float = 10.0


_TRIGGER: Final = re.compile(r"\[\[sim:([a-z0-9_]+)(?:\*(\d+))?\]\]")
_PAGE: Final = (
    "<!DOCTYPE html><html><head><title>{0}</title></head><body><h1>{0}</h1></body></html>"
)


def _refusal(
    name: str,
    status: int,
    make: Callable[[Scene], dict[str, Any]],
    hint: str = "none",
    retry_after_s: float = 10.0,
) -> Fault:
    return Fault(
        name,
        status,
        refuse=make,
        charge="none",
        at_once=True,
        hint=hint,
        retry_after_s=retry_after_s,
    )


def _page(name: str, status: int, title: str) -> Fault:
    return Fault(name, status, html=_PAGE.format(title), charge="none", at_once=True)


_REFUSALS = (
    _refusal("context_length", 400, r.context_length),
    _refusal("invalid_model", 400, r.invalid_model),
    _refusal("provider_400", 400, r.from_provider(400, "invalid_request", '{{"detail":"bad"}}')),
    _refusal(
        "thinking_400",
        400,
        r.from_provider(
            400,
            "invalid_request",
            "thinking is enabled but reasoning_content is missing in assistant tool call message",
        ),
    ),
    _refusal("zod", 400, r.zod),
    _refusal("string_code", 400, lambda _scene: r.error("invalid_prompt", "Prompt is not valid")),
    _refusal("no_key", 401, r.plain(401, "No cookie auth credentials found")),
    _refusal("bad_key", 401, r.plain(401, "User not found.")),
    _refusal("bare_string", 401, r.bare_string),
    _refusal("credits", 402, r.credits_gone),
    _refusal("credits_afford", 402, r.cannot_afford),
    _refusal("credits_weight", 402, r.weight_exceeds),
    _refusal("key_limit_402", 402, r.key_limit(402)),
    _refusal("in_flight_budget", 402, r.in_flight_budget, "header", 120.0),
    _refusal("moderation", 403, r.moderation),
    _refusal("guardrail", 403, r.guardrail),
    _refusal("key_limit_403", 403, r.key_limit(403)),
    _refusal("no_endpoints", 404, r.no_route),
    _refusal("timeout_408", 408, r.plain(408, "Request timed out", "timeout")),
    _refusal("too_large_413", 413, r.plain(413, "Request too large", "payload_too_large")),
    _refusal("unprocessable_422", 422, r.plain(422, "Unprocessable input", "unprocessable")),
    _refusal(
        "rate_limit_upstream",
        429,
        r.limited(
            "upstream_provider_shared_pool",
            "{model} is temporarily rate-limited upstream. Please retry shortly, or add your own "
            "key to accumulate your rate limits.",
            upstream=True,
        ),
    ),
    _refusal(
        "rate_limit_admission",
        429,
        r.limited(
            "openrouter_admission_control",
            "could not verify available credits for this request in time",
            upstream=False,
        ),
        "metadata_headers",
    ),
    _refusal("rate_limit_free_tier", 429, r.free_tier),
    _refusal(
        "rate_limit_capacity",
        429,
        r.available(429, "capacity_exhausted", "Capacity exhausted", retryable=True),
        "availability",
    ),
    _refusal("server_500", 500, r.plain(500, "Internal Server Error", "server")),
    _refusal("bad_gateway", 502, r.from_provider(502, "provider_unavailable", "upstream hung up")),
    _refusal(
        "unavailable_503",
        503,
        r.plain(503, "There is no available model provider that meets your routing requirements"),
    ),
    _refusal(
        "available_retry",
        503,
        r.available(503, "temporarily_unavailable", "Try again later", retryable=True),
        "availability",
    ),
    _refusal(
        "available_never",
        503,
        r.available(503, "model_retired", "This model is gone", retryable=False),
    ),
    _refusal("timeout_504", 504, r.plain(504, "The provider took too long", "timeout")),
    _refusal("edge_timeout_524", 524, r.plain(524, "Edge timeout", "timeout")),
    _refusal("overloaded_529", 529, r.plain(529, "Provider overloaded", "provider_overloaded")),
    _refusal("queue_full", 503, r.plain(503, "The request queue is full.")),
    _refusal("unknown_status_418", 418, r.plain(418, "Something nobody has seen before")),
    Fault("error_in_200", refuse=r.in_200, charge="none"),
    _page("html_200", 200, "Just a moment..."),
    _page("html_403", 403, "Error 1015: You are being rate limited"),
    _page("html_429", 429, "Error 1015: You are being rate limited"),
    _page("html_502", 502, "502 Bad Gateway"),
)

_SPOILT = (
    Fault("choices_null", edit=d.choices_null, charge="none"),
    Fault("choices_empty", edit=d.choices_empty, charge="none"),
    Fault("empty_stop", edit=d.empty_stop, charge="prompt"),
    Fault("whitespace_content", shape=s.whitespace_content, charge="prompt"),
    Fault("no_finish_reason", edit=d.no_finish_reason),
    Fault("error_in_choice", edit=d.error_in_choice, charge="none"),
    Fault("finish_error_partial", edit=d.finish_error_partial, charge="none"),
    Fault("network_error", edit=d.network_error, charge="none"),
    Fault("other_model", edit=d.other_model),
    Fault("other_provider", edit=d.other_provider),
    Fault("content_filter", shape=s.content_filter),
    Fault("refusal", shape=s.refusal, edit=d.refusal),
    Fault("tools_in_reasoning", shape=s.tools_in_reasoning),
    Fault("length_empty", shape=s.length_empty),
    Fault("reasoning_only", shape=s.reasoning_only),
    Fault("over_max_tokens", shape=s.over_max_tokens),
    Fault("no_usage", edit=d.no_usage),
    Fault("zero_usage", edit=d.zero_usage),
    Fault("string_counts", edit=d.string_counts),
    Fault("control_tokens", shape=s.control_tokens),
    Fault("replacement_char", shape=s.replacement_char),
    Fault("huge", shape=s.huge),
)

_DELIVERED = (
    Fault("lone_surrogate", shape=s.lone_surrogate, delivery="surrogate"),
    Fault("whitespace_json", delivery="whitespace_json"),
    Fault("whitespace_eof", delivery="whitespace_eof"),
    Fault("truncated_json", delivery="truncated"),
    Fault("gzip", delivery="gzip"),
    Fault("dribble", delivery="dribble"),
    Fault("not_http", delivery="not_http"),
    Fault("reset_in_body", delivery="reset_in_body"),
    Fault("reset_late", delivery="reset"),
    Fault("close", delivery="close"),
    # Nothing was generated: the connection breaks before the request is looked at.
    Fault("reset_early", delivery="reset", charge="none", at_once=True),
)

FAULTS: Final[dict[str, Fault]] = {
    fault.name: fault for fault in (*_REFUSALS, *_SPOILT, *_DELIVERED)
}


def triggered(text: str, attempt: int) -> Fault | None:
    """Return the fault that a prompt asks for at this attempt (from 1), if any.

    Raises KeyError for a name that the table does not have.
    """
    if "[[sim:" not in text:
        return None
    spent = 0
    for name, times in _TRIGGER.findall(text):
        if not times or attempt <= spent + int(times):
            return FAULTS[name]
        spent += int(times)
    return None
