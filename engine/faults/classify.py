"""Judges the signs of an error: which family it is, and where this one differs from its family.

Order (facts/openrouter.md §6): who limits (`limit_source`), what it is called (`error_type` and
string codes), then the number (the body's code before the HTTP status), refined by the words. What
a provider said through the router never ends the run: such words may echo the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from engine.faults.error_body import ErrorSigns
from engine.faults.families import FAMILIES, Scope


@dataclass(frozen=True, slots=True)
class Ruling:
    """A family, and what overrides its row in the table."""

    family: str
    scope: Scope | None = None
    retry: bool | None = None
    tries: int | None = None


_LIMITS = {
    "openrouter_in_flight_budget": "in_flight_budget",
    "openrouter_credits": "credits",
    "openrouter_key_limit": "key_limit",
    "openrouter_admission_control": "account_limit",
    "openrouter_free_tier_daily": "account_limit",
    "upstream_provider_shared_pool": "rate_limit",
}
_REASONS = {
    "in_flight_budget_exhausted": "in_flight_budget",
    "weight_exceeds_budget": "cannot_afford",
}
_NAMES = {
    "context_length_exceeded": "context_length",
    "string_too_long": "context_length",
    "max_tokens_exceeded": "bad_request",
    "token_limit_exceeded": "bad_request",
    "invalid_prompt": "bad_request",
    "precondition_failed": "bad_request",
    "unprocessable": "bad_request",
    "zoderror": "bad_request",
    "payload_too_large": "too_large",
    "content_policy_violation": "moderation",
    "content_filter": "moderation",
    "data_inspection_failed": "moderation",
    "refusal": "moderation",
    "provider_overloaded": "overloaded",
    "overloaded_error": "overloaded",
    "provider_unavailable": "bad_gateway",
    "timeout": "timeout_upstream",
    "model_not_found": "model_gone",
    "insufficient_quota": "credits",
    "invalid_api_key": "auth",
}
"""Names that say it all, whatever the number beside them."""
_NAME_CODES = {
    "invalid_request": 400,
    "invalid_request_error": 400,
    "badrequesterror": 400,
    "authentication": 401,
    "authentication_error": 401,
    "unauthorized": 401,
    "payment_required": 402,
    "permission_denied": 403,
    "permission_error": 403,
    "not_found": 404,
    "not_found_error": 404,
    "notfounderror": 404,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "capacity_exhausted": 429,
    "server": 500,
    "server_error": 500,
    "internal_server_error": 500,
    "internalservererror": 500,
}
"""Names that stand for a number, which the words still refine."""
_CODES = {
    401: "auth",
    405: "not_found",
    407: "proxy",
    408: "timeout_upstream",
    410: "model_gone",
    413: "too_large",
    414: "too_large",
    422: "bad_request",
    501: "bad_request",
    502: "bad_gateway",
    504: "timeout_upstream",
    522: "timeout_upstream",
    524: "timeout_upstream",
    529: "overloaded",
}

_CONTEXT = re.compile(
    r"context.?(length|window|size)|(prompt|input)\b.{0,40}\btoo long|"
    r"longer than the model|maximum (number of )?(input )?tokens|reduce the length"
)
_MODEL = re.compile(
    r"not a valid model|no such model|(unknown|invalid) model(:| id| name|$)|"
    r"model\b.{0,80}(does not exist|not found)"
)
_ROUTING = re.compile(
    r"no endpoints|no allowed providers|no (available )?(model )?providers?\b.{0,60}routing"
)
_ONE_PROMPT = re.compile(r"support tool|tool compat|support image|support (audio|file|pdf|video)")
_MODERATED = re.compile(r"moderat|flagged|content.?polic|safety|guardrail (blocked|violation)")
_KEY_LIMIT = re.compile(r"limit exceeded|exceeded.{0,40}limit|budget|key limit|spend(ing)? limit")
_IN_FLIGHT = re.compile(r"in.?flight")
_AFFORD = re.compile(r"can only afford|fewer max_tokens")
_FORBIDDEN = re.compile(
    r"api.?key|permission|not authori[sz]ed|unauthori[sz]ed|region|countr|geo|attest|disabled"
)
_ACCOUNT_429 = re.compile(
    r"could not verify available credits|free-models|rate limit exceeded: |limit_r[pt][md]"
)
_EDGE = re.compile(r"error code: 10\d\d|\b1015\b|cloudflare")


def classify(status: int, signs: ErrorSigns, default: str) -> Ruling:
    """The ruling on one error; `default` is the family where neither number nor name says any."""
    ruling = _by_limit(signs) or _by_name(signs)
    if ruling is None:
        code = _code(status, signs)
        ruling = Ruling(default) if code is None else _by_code(code, signs)
    return _obey(signs.retryable, ruling)


def _by_limit(signs: ErrorSigns) -> Ruling | None:
    family = _REASONS.get(signs.reason) or _LIMITS.get(signs.limit_source)
    if family == "credits" and _AFFORD.search(signs.text):
        family = "cannot_afford"
    return Ruling(family) if family else None


def _by_name(signs: ErrorSigns) -> Ruling | None:
    for name in (signs.error_type, *signs.names):
        if name in _NAMES:
            return Ruling(_NAMES[name])
    return None


def _code(status: int, signs: ErrorSigns) -> int | None:
    code = _NAME_CODES.get(signs.error_type) or signs.code
    if code is None and not 200 <= status < 300:  # noqa: PLR2004 - HTTP's success codes
        code = status
    if code is None:
        found = (_NAME_CODES.get(name) for name in signs.names)
        code = next((number for number in found if number), None)
    return code


def _by_code(code: int, signs: ErrorSigns) -> Ruling:
    if signs.page and _from_edge(code, signs):
        return Ruling("edge_limit")
    handler = _HANDLERS.get(code)
    if handler is not None:
        return handler(signs)
    if code in _CODES:
        return Ruling(_CODES[code])
    if 300 <= code < 400:  # noqa: PLR2004 - HTTP's redirects
        return Ruling("redirected")
    if 520 <= code < 600:  # noqa: PLR2004 - Cloudflare's own codes: the host behind it failed
        return Ruling("bad_gateway")
    return Ruling("unknown_code")


def _from_edge(code: int, signs: ErrorSigns) -> bool:
    """A refusal by what stands in front of the endpoint, rather than by the endpoint."""
    if code in {403, 429}:
        return "<html" in signs.text or bool(_EDGE.search(signs.text))
    edge = re.search(r"error code: 10\d\d|\b1015\b", signs.text)
    return edge is not None and code == 503  # noqa: PLR2004 - Cloudflare's own refusal


def _bad_request(signs: ErrorSigns) -> Ruling:
    if _CONTEXT.search(signs.text):
        return Ruling("context_length")
    if signs.flagged:
        return Ruling("moderation")
    if signs.upstream:  # another host may take it: one try there before the prompt is given up
        return Ruling("bad_request", Scope.PROVIDER, retry=True, tries=2)
    return Ruling("model_gone" if _MODEL.search(signs.text) else "bad_request")


def _unauthorised(signs: ErrorSigns) -> Ruling:
    return Ruling("provider_error" if signs.upstream else "auth")


def _payment(signs: ErrorSigns) -> Ruling:
    if signs.upstream:
        return Ruling("provider_error")
    if _IN_FLIGHT.search(signs.text):
        return Ruling("in_flight_budget")
    if _AFFORD.search(signs.text):
        return Ruling("cannot_afford")
    if _KEY_LIMIT.search(signs.text):
        return Ruling("key_limit")
    return Ruling("credits")


def _forbidden(signs: ErrorSigns) -> Ruling:
    if signs.flagged or _MODERATED.search(signs.text):
        return Ruling("moderation")
    if signs.upstream:
        return Ruling("provider_error")
    if _KEY_LIMIT.search(signs.text):
        return Ruling("key_limit")
    if signs.step or signs.error_type == "permission_denied" or _FORBIDDEN.search(signs.text):
        return Ruling("forbidden")
    # An unexplained refusal may be about this prompt only: ending the run would end every later
    # run at the same prompt.
    return Ruling("forbidden", Scope.PROMPT)


def _not_found(signs: ErrorSigns) -> Ruling:
    if _ONE_PROMPT.search(signs.text):
        return Ruling("no_route", Scope.PROMPT)
    if signs.upstream:
        return Ruling("provider_error")
    if "ignored" in signs.step or "have been ignored" in signs.text:
        return Ruling("route_ignored")
    if signs.step or _ROUTING.search(signs.text):
        return Ruling("no_route")
    return Ruling("model_gone" if _MODEL.search(signs.text) else "not_found")


def _too_many(signs: ErrorSigns) -> Ruling:
    if signs.upstream or "upstream" in signs.text:
        return Ruling("rate_limit")
    whole = signs.names_no_provider or bool(_ACCOUNT_429.search(signs.text))
    return Ruling("account_limit" if whole else "rate_limit")


def _server(signs: ErrorSigns) -> Ruling:
    """500s of hosts that report the prompt's own fault as theirs."""
    return Ruling("context_length" if _CONTEXT.search(signs.text) else "server_error")


def _unavailable(signs: ErrorSigns) -> Ruling:
    return Ruling("no_provider_now" if _ROUTING.search(signs.text) else "overloaded")


_HANDLERS: dict[int, Callable[[ErrorSigns], Ruling]] = {
    400: _bad_request,
    401: _unauthorised,
    402: _payment,
    403: _forbidden,
    404: _not_found,
    429: _too_many,
    500: _server,
    503: _unavailable,
}


def _obey(retryable: bool | None, ruling: Ruling) -> Ruling:
    """`availability.retryable` decides over the table (facts/openrouter.md §6)."""
    family = FAMILIES[ruling.family]
    if retryable is None or retryable == (family.retry if ruling.retry is None else ruling.retry):
        return ruling
    if not retryable:
        return replace(ruling, scope=Scope.PROMPT, retry=False, tries=1)
    terminal = family.scope is Scope.RUN
    scope = Scope.ACCOUNT if terminal else Scope.ATTEMPT
    return replace(ruling, scope=scope, retry=True, tries=8)
