"""The one table of error families: what each means, whom it concerns, and whether to try again.

The classes follow facts/openrouter.md §6; the transport's rows follow facts/transport.md.
Families that a server may have billed in full carry an own cap on attempts, so that a host which
keeps breaking cannot spend `max_attempts` times the price of one prompt.
"""

from __future__ import annotations

from engine.faults.family import Family, Scope, final, passing

__all__ = ["FAMILIES", "Family", "Scope"]

PAID_TRIES = 3
"""Attempts of one prompt that may each have been billed without giving a row."""
WAITING_TRIES = 50
"""Attempts of one prompt while the whole account waits: the prompt is not at fault."""
OFFLINE_TRIES = 200
"""Attempts of one prompt while nothing can be reached; with `wait_s` 5 about a quarter hour."""

_BUSY = (
    passing("rate_limit", "The provider refused: too many requests at once."),
    passing("overloaded", "The provider is overloaded."),
    passing("no_provider_now", "No provider that the routing allows is up.", wait_s=20.0),
    passing(
        "route_ignored",
        "Every provider of the route is on the ignore list of this attempt.",
        scope=Scope.ATTEMPT,
        tries=4,
        wait_s=30.0,
        action="Allow more providers, or take an exclusion back.",
    ),
    passing("bad_gateway", "The provider gave the router a bad reply or none."),
    passing("server_error", "The server failed."),
    passing("provider_error", "The provider refused the router.", tries=4),
    passing("timeout_upstream", "The provider took too long for the router.", tries=4),
)

_ACCOUNT = (
    passing(
        "in_flight_budget",
        "What is in flight holds the whole balance; it frees itself as replies arrive.",
        scope=Scope.ACCOUNT,
        tries=WAITING_TRIES,
        wait_s=120.0,
        action="Top up, lower max_tokens, or throttle.",
    ),
    passing(
        "account_limit",
        "The account is limited, not one provider.",
        scope=Scope.ACCOUNT,
        tries=WAITING_TRIES,
        wait_s=10.0,
        action="Throttle if it stays.",
    ),
    passing(
        "edge_limit",
        "The edge in front of the endpoint refuses this machine.",
        scope=Scope.ACCOUNT,
        tries=10,
        wait_s=60.0,
        action="Throttle; if it stays, the address is blocked.",
    ),
    passing(
        "connect",
        "No connection; nothing was sent.",
        scope=Scope.ACCOUNT,
        tries=OFFLINE_TRIES,
        wait_s=5.0,
        sent=False,
        action="Check the network and base_url.",
    ),
    passing(
        "dns",
        "The endpoint's name does not resolve; nothing was sent.",
        scope=Scope.ACCOUNT,
        tries=OFFLINE_TRIES,
        wait_s=5.0,
        sent=False,
        action="Check the network and base_url.",
    ),
    passing(
        "proxy",
        "The proxy refused or cannot be reached; nothing was sent.",
        scope=Scope.ACCOUNT,
        tries=OFFLINE_TRIES,
        wait_s=5.0,
        sent=False,
        action="Check HTTPS_PROXY and the proxy.",
    ),
)

_NO_ANSWER = (
    passing("error_in_200", "An error inside a reply with status 200.", tries=PAID_TRIES),
    passing("finish_error", "The generation broke off at the provider.", tries=PAID_TRIES),
    passing("no_choices", "The reply holds no choice.", tries=PAID_TRIES),
    passing("empty_reply", "The reply holds no text and no tool call.", tries=PAID_TRIES),
    passing("whitespace", "The reply is white space and then ends.", tries=PAID_TRIES),
    passing("truncated_json", "The reply's JSON breaks off or is broken.", tries=PAID_TRIES),
    passing("not_json", "The reply is no JSON object.", tries=PAID_TRIES),
    passing(
        "html",
        "A web page instead of a reply.",
        scope=Scope.ATTEMPT,
        tries=PAID_TRIES,
        action="Check base_url, and for a proxy or a login page in between.",
    ),
    passing("malformed_reply", "Fields of the reply are of a wrong kind.", tries=PAID_TRIES),
    passing("no_finish_reason", "The reply does not say that it is finished.", tries=PAID_TRIES),
    passing("unknown_finish", "The reply ended for a reason we do not know.", tries=PAID_TRIES),
    passing(
        "wrong_model",
        "Another model answered.",
        tries=PAID_TRIES,
        action="Take `models` out of extra_body; check the model id.",
    ),
    passing(
        "wrong_provider",
        "A provider outside the allow list answered.",
        tries=PAID_TRIES,
        action="Set allow_fallbacks = false, or allow that provider.",
    ),
)

_TRANSPORT = (
    passing(
        "disconnected",
        "The server hung up without a reply; the request may be billed.",
        scope=Scope.ATTEMPT,
        tries=4,
    ),
    passing(
        "read_timeout",
        "No byte arrived in time; the request may be billed.",
        scope=Scope.ATTEMPT,
        tries=PAID_TRIES,
    ),
    passing(
        "read_error",
        "The reply broke off on its way; the request may be billed.",
        scope=Scope.ATTEMPT,
        tries=PAID_TRIES,
    ),
    passing(
        "not_http",
        "The reply is no HTTP; the request may be billed.",
        scope=Scope.ATTEMPT,
        tries=PAID_TRIES,
        action="Check base_url and what stands in between.",
    ),
    passing(
        "deadline",
        "The attempt passed its deadline; it may be billed.",
        scope=Scope.ATTEMPT,
        tries=PAID_TRIES,
        action="Raise request_timeout_s if replies are long.",
    ),
    passing("stalled", "The stream stopped moving; it may be billed.", tries=PAID_TRIES),
    passing(
        "unexpected",
        "The client failed in a way we do not know; the request may be billed.",
        scope=Scope.ATTEMPT,
        tries=PAID_TRIES,
    ),
    passing(
        "unknown",
        "A killed run left this request without an outcome; it may be billed.",
        scope=Scope.ATTEMPT,
        counts=False,
    ),
    passing(
        "cancelled",
        "Stopped by the operator; a hosted API bills it in full.",
        scope=Scope.ATTEMPT,
        counts=False,
    ),
    passing(
        "cut",
        "Cut by length and paid; asked once more with twice the max_tokens.",
        scope=Scope.ATTEMPT,
        counts=False,
    ),
    passing(
        "unknown_code",
        "The server answered with a code that we do not know.",
        scope=Scope.ATTEMPT,
        tries=PAID_TRIES,
    ),
)

_PROMPT = (
    final(
        "bad_request",
        "The server refuses this request as it is.",
        scope=Scope.PROMPT,
        action="Read the server's words; check sampling, extra_body and the prompt.",
    ),
    final(
        "context_length",
        "Prompt and max_tokens do not fit the context.",
        scope=Scope.PROMPT,
        action="Lower max_tokens, or leave the prompt out.",
    ),
    final("too_large", "The request is too large for the server.", scope=Scope.PROMPT),
    final("moderation", "The prompt was refused by moderation.", scope=Scope.PROMPT),
    final("content_filter", "A content filter stopped the answer.", scope=Scope.PROMPT),
    final(
        "invalid_row",
        "The source row cannot be read as a prompt.",
        scope=Scope.PROMPT,
        sent=False,
        counts=False,
        action="Mend the row in the source.",
    ),
)

_RUN = (
    final(
        "auth",
        "The key is missing or not accepted.",
        scope=Scope.RUN,
        action="Set a valid EAGLEGEN_API_KEY (or OPENROUTER_API_KEY), then run again.",
    ),
    final(
        "credits",
        "The account has no credits left.",
        scope=Scope.RUN,
        action="Top up the account, then run again: it goes on where it ended.",
    ),
    final(
        "cannot_afford",
        "The balance does not cover one request at its max_tokens.",
        scope=Scope.RUN,
        action="Top up the account or lower max_tokens, then run again.",
    ),
    final(
        "key_limit",
        "A spending limit of the key or the workspace is used up.",
        scope=Scope.RUN,
        action="Raise the limit of the key or the workspace, then run again.",
    ),
    final(
        "forbidden",
        "This key may not use this endpoint, model or region.",
        scope=Scope.RUN,
        action="Read the server's words; check the account's permissions and policies.",
    ),
    final(
        "model_gone",
        "The endpoint does not know the model.",
        scope=Scope.RUN,
        action="Check the model id; it may have been retired. `check` lists its endpoints.",
    ),
    final(
        "no_route",
        "No provider of this model is allowed by the routing.",
        scope=Scope.RUN,
        action="Loosen [endpoint.provider] or the account's data policy; see `check`.",
    ),
    final(
        "not_found",
        "The endpoint has no such path.",
        scope=Scope.RUN,
        action="Check base_url: it usually ends in /v1.",
    ),
    final(
        "redirected",
        "The endpoint redirects elsewhere.",
        scope=Scope.RUN,
        action="Set base_url to the address it redirects to.",
    ),
    final(
        "tls",
        "The server's certificate is not trusted; nothing was sent.",
        scope=Scope.RUN,
        sent=False,
        action="Check SSL_CERT_FILE, the clock, and for a proxy in between.",
    ),
    final(
        "bad_url",
        "base_url is no usable address; nothing was sent.",
        scope=Scope.RUN,
        sent=False,
        action="Mend base_url in the manifest.",
    ),
)

FAMILIES: dict[str, Family] = {
    family.name: family
    for group in (_BUSY, _ACCOUNT, _NO_ANSWER, _TRANSPORT, _PROMPT, _RUN)
    for family in group
}
"""Every error family by name; names are stable, they stand in files (DESIGN §6)."""
