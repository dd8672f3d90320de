"""Reads a reply's `usage`: token counts and cost, where what is unknown or absurd is None."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

ABSURD = 10**9
"""No single request has so many tokens, nor costs so many dollars."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the server counted; `cost` in USD. Unknown is None, never 0."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost: float | None = None


UNKNOWN = Usage()


def read_usage(document: Mapping[str, Any]) -> Usage:
    """The usage of a reply or a chunk.

    A prompt has tokens and so has an answer: a count of 0 (OpenRouter's cache hits, hosts that do
    not count) is unknown. Callers that have an empty answer do not make a row of it.
    """
    usage = document.get("usage")
    if not isinstance(usage, dict):
        return UNKNOWN
    details = usage.get("completion_tokens_details")
    reasoning = details.get("reasoning_tokens") if isinstance(details, dict) else None
    if reasoning is None:  # SGLang and older vLLM keep it at the top
        reasoning = usage.get("reasoning_tokens")
    return Usage(
        count(usage.get("prompt_tokens")) or None,
        count(usage.get("completion_tokens")) or None,
        count(reasoning),
        _cost(usage),
    )


def count(value: object) -> int | None:
    """A token count, or None where the value cannot be one."""
    return value if type(value) is int and 0 <= value <= ABSURD else None


def dollars(value: object) -> float | None:
    """An amount in USD, or None where the value cannot be one."""
    if type(value) is float:
        return value if math.isfinite(value) and 0 <= value <= ABSURD else None
    return float(value) if type(value) is int and 0 <= value <= ABSURD else None


def _told(value: object) -> float | None:
    """An amount as a server tells it: some proxies put numbers in quotes."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = float(value)
    return dollars(value)


def _cost(usage: Mapping[str, Any]) -> float | None:
    """What the request cost the operator.

    With an own provider key (`is_byok`) `cost` is OpenRouter's fee only and the provider bills
    the rest; without one, `upstream_inference_cost` repeats `cost` and must not be added.
    """
    cost = _told(usage.get("cost"))
    if cost is None or usage.get("is_byok") is not True:
        return cost
    details = usage.get("cost_details")
    upstream = _told(details.get("upstream_inference_cost")) if isinstance(details, dict) else None
    return None if upstream is None else cost + upstream
