"""The hosts of a model as OpenRouter lists them, and which of them a routing lets answer.

Rules of routing: facts of OpenRouter's provider routing (a base slug matches every variant, a full
tag pins one; with max_tokens set only hosts able to write that much are eligible).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

PER_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Host:
    """One entry of `/models/{model}/endpoints`; what it does not say is None."""

    provider: str
    tag: str
    quantization: str
    context_length: int | None = None
    max_completion_tokens: int | None = None
    prompt_usd: float | None = None
    """USD per prompt token."""
    completion_usd: float | None = None
    status: int | None = None
    """0 is normal; below, OpenRouter ranks the host lower or leaves it out."""
    parameters: frozenset[str] | None = None


def read_host(entry: Mapping[str, Any]) -> Host:
    """One entry of the page, whatever is missing or malformed in it."""
    pricing = entry.get("pricing")
    prices = pricing if isinstance(pricing, Mapping) else {}
    named = entry.get("supported_parameters")
    return Host(
        provider=str(entry.get("provider_name") or ""),
        tag=str(entry.get("tag") or ""),
        quantization=str(entry.get("quantization") or "unknown"),
        context_length=whole(entry.get("context_length")),
        max_completion_tokens=whole(entry.get("max_completion_tokens")),
        prompt_usd=price(prices.get("prompt")),
        completion_usd=price(prices.get("completion")),
        status=whole(entry.get("status")),
        parameters=frozenset(map(str, named)) if isinstance(named, list) else None,
    )


def price(value: Any) -> float | None:
    """USD per token from a decimal string or a number; None where it is none (-1: it varies)."""
    try:
        usd = float(value)
    except (TypeError, ValueError):
        return None
    return usd if 0 <= usd < float("inf") else None


def whole(value: Any) -> int | None:
    """A whole number, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_named(host: Host, entries: Any) -> bool:
    """Whether a list of slugs, tags or display names holds this host; case does not count."""
    known = {host.tag.lower(), host.tag.partition("/")[0].lower(), host.provider.lower()}
    listed = entries if isinstance(entries, list | tuple) else [entries]
    return any(str(entry).lower() in known for entry in listed)


def why_not(
    host: Host,
    routing: Mapping[str, Any],
    *,
    max_tokens: int | None = None,
    needed: AbstractSet[str] = frozenset(),
) -> str:
    """Why this host may not answer, in words; empty where it may.

    `needed` are the parameters that every request carries (they bind with require_parameters).
    """
    reasons = (*_named_out(host, routing), *_too_small(host, max_tokens), *_dear(host, routing))
    if routing.get("require_parameters") is True and host.parameters is not None:
        lacking = sorted(needed - host.parameters)
        reasons += (
            (f"lacks {', '.join(lacking)}, and require_parameters is set",) if lacking else ()
        )
    return "; ".join(reasons)


def _named_out(host: Host, routing: Mapping[str, Any]) -> Iterator[str]:
    only, order = routing.get("only"), routing.get("order")
    if only and not is_named(host, only):
        yield "not in `only`"
    if order and routing.get("allow_fallbacks") is False and not is_named(host, order):
        yield "not in `order`, and allow_fallbacks is false"
    if is_named(host, routing.get("ignore") or ()):
        yield "in `ignore`"
    wanted = routing.get("quantizations")
    if wanted and host.quantization not in wanted:
        yield f"quantization {host.quantization} is not in `quantizations`"


def _too_small(host: Host, max_tokens: int | None) -> Iterator[str]:
    if max_tokens is None:
        return
    most, context = host.max_completion_tokens, host.context_length
    if most is not None and most < max_tokens:
        yield f"writes at most {most:,} tokens, max_tokens is {max_tokens:,}"
    elif context is not None and context <= max_tokens:
        yield f"its context of {context:,} leaves no room beside max_tokens {max_tokens:,}"


def _dear(host: Host, routing: Mapping[str, Any]) -> Iterator[str]:
    """`max_price` is in USD per million, as text or as a number."""
    most = routing.get("max_price")
    if not isinstance(most, Mapping):
        return
    for kind, usd in (("prompt", host.prompt_usd), ("completion", host.completion_usd)):
        allowed = price(most.get(kind))
        if allowed is not None and usd is not None and usd * PER_MILLION > allowed * (1 + 1e-9):
            yield f"{kind} costs ${usd * PER_MILLION:.2f}/M, max_price is ${allowed:.2f}"
