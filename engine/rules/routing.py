"""OpenRouter's `provider` object: the types of the keys that it documents.

Source: OpenRouter's provider routing. A wrong type is refused by the router, request by request.
Keys that are not known here are `check`'s to warn of: they may be newer than this program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from engine.rules.problem import Problem

_NAMES = 'must be a list of names, such as ["siliconflow/int4"]'
_SWITCH = "must be true or false"


def routing_problems(routing: Mapping[str, Any]) -> Iterator[Problem]:
    """What is wrong with each documented key."""
    for key, value in routing.items():
        fits, words = _RULES.get(key, (_anything, ""))
        if not fits(value):
            yield Problem((key,), words)


def _anything(value: Any) -> bool:
    del value
    return True


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) and name for name in value)


def _switch(value: Any) -> bool:
    return isinstance(value, bool)


def _price(value: Any) -> bool:
    """USD per million, as a number or as text."""
    if isinstance(value, bool):
        return False
    try:
        return float(value) >= 0
    except (TypeError, ValueError):
        return False


def _prices(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_price, value.values()))


_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "order": (_names, _NAMES),
    "only": (_names, _NAMES),
    "ignore": (_names, _NAMES),
    "quantizations": (_names, 'must be a list of names, such as ["int4"]'),
    "allow_fallbacks": (_switch, _SWITCH),
    "require_parameters": (_switch, _SWITCH),
    "zdr": (_switch, _SWITCH),
    "enforce_distillable_text": (_switch, _SWITCH),
    "data_collection": (lambda value: value in ("allow", "deny"), 'must be "allow" or "deny"'),
    "sort": (
        lambda value: isinstance(value, str | dict),
        'must be a name ("price", "throughput", "latency") or a table',
    ),
    "max_price": (_prices, "must be a table of USD per million, such as { completion = 2.5 }"),
}
