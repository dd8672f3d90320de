"""Whether the model and the provider that answered are those that were asked for (DESIGN §6)."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from functools import lru_cache

_ROUTING_VARIANTS = frozenset({"nitro", "floor", "exacto", "online"})
"""OpenRouter's suffixes that choose a route, not a model: the reply names the model alone."""
_MONTH = r"(?:0[1-9]|1[0-2])"
_DAY = r"(?:0[1-9]|[12]\d|3[01])"
_YEAR = r"(?:2[0-9]|3[0-9])"
_REVISION = re.compile(
    rf"-{_MONTH}-?{_DAY}"  # -0127, -01-27
    rf"|-{_YEAR}{_MONTH}"  # -2601
    rf"|-{_YEAR}{_MONTH}{_DAY}"  # -260127
    rf"|-20{_YEAR}-?{_MONTH}-?{_DAY}"  # -20260127, -2026-01-27
    r"|-00\d"  # -001
    r"|@[0-9a-f]{7,40}"  # a commit
)
_NOT_ALNUM = re.compile(r"[^a-z0-9]+")


def model_matches(served: str, requested: str, aliases: AbstractSet[str] = frozenset()) -> bool:
    """Whether a reply's `model` is the one that was requested.

    It is if it equals the requested id or an alias (its canonical slugs in `/models`), or either
    with a date or revision suffix. `kimi-k2.5-turbo` and `kimi-k2.5:free` are other models.
    """
    if served == requested or served in aliases:
        return True
    return any(_dated(served, name) for name in (requested, *aliases))


def _dated(served: str, name: str) -> bool:
    base, colon, variant = name.partition(":")
    if colon and served.endswith(colon + variant):
        served = served.removesuffix(colon + variant)
    elif colon and variant not in _ROUTING_VARIANTS:
        base = name  # a tag that is part of the id, as in ollama's llama3:70b
    if not served.startswith(base):
        return False
    rest = served[len(base) :]
    return not rest or _REVISION.fullmatch(rest) is not None


@lru_cache(maxsize=1024)
def normal_provider(name: str) -> str:
    """A provider's display name or endpoint tag as one comparable word.

    `AtlasCloud`, `atlas-cloud/int4` and `atlas-cloud` are all `atlascloud`: the part before the
    slash is the base slug (facts/openrouter.md §1).
    """
    return _NOT_ALNUM.sub("", name.partition("/")[0].lower())


@lru_cache(maxsize=256)
def _normal(names: frozenset[str]) -> frozenset[str]:
    return frozenset(normal_provider(name) for name in names)


def provider_matches(name: str, allowed: AbstractSet[str]) -> bool:
    """Whether the provider that answered is among `allowed` (display names or tags)."""
    return normal_provider(name) in _normal(frozenset(allowed))
