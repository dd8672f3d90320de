"""OpenRouter's response cache: an identical resend is free once the first one has finished."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from engine.simulator.outgoing import Outgoing, json_reply

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.clock import Clock
    from engine.simulator.ledger import Entry

_DEFAULT_TTL_S = 300
_LONGEST_TTL_S = 86_400
_NO_USAGE = {
    "prompt_tokens": 0,
    "completion_tokens": 0,
    "total_tokens": 0,
    "cost": 0,
    "is_byok": False,
    "prompt_tokens_details": {"cached_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 0},
}
STATUS, SOURCE = "X-OpenRouter-Cache-Status", "X-OpenRouter-Cache-Source-Id"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a request asks of the cache: its key there, and how long its reply may be kept."""

    key: str
    ttl_s: float
    clear: bool


@dataclass(frozen=True, slots=True)
class Kept:
    """A reply that was kept, with the ledger's entry of its generation."""

    body: bytes
    entry: Entry
    finish: str | None
    until: float


def wish_of(headers: Mapping[str, str], raw: bytes) -> Wish | None:
    """Return what a request asks of the cache; None where it does not ask.

    The key is made of API key and body, byte by byte: another order of keys is another request.
    """
    if headers.get("X-OpenRouter-Cache", "").lower() != "true":
        return None
    ttl_s: float = _DEFAULT_TTL_S
    with suppress(ValueError):
        ttl_s = float(headers.get("X-OpenRouter-Cache-TTL", ""))
    key = hashlib.sha256(headers.get("Authorization", "").encode() + b"\0" + raw).hexdigest()
    clear = headers.get("X-OpenRouter-Cache-Clear", "").lower() == "true"
    return Wish(key, min(max(ttl_s, 1), _LONGEST_TTL_S), clear)


class ResponseCache:
    """Keeps whole replies; two twins in flight are both generated, since nothing is coalesced."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[str, Kept] = {}

    def find(self, wish: Wish) -> Kept | None:
        """Return the kept reply, if there is one that has not run out."""
        if wish.clear:
            self._kept.pop(wish.key, None)
        kept = self._kept.get(wish.key)
        return kept if kept is not None and self._clock.monotonic() < kept.until else None

    def keep(self, wish: Wish, body: dict[str, Any], entry: Entry, finish: str | None) -> None:
        """Keep a reply."""
        until = self._clock.monotonic() + wish.ttl_s
        self._kept[wish.key] = Kept(orjson.dumps(body), entry, finish, until)


def replay(kept: Kept, call_id: str) -> Outgoing:
    """Return a kept reply as a hit: a new id, no usage, and where it came from."""
    body = orjson.loads(kept.body) | {"id": call_id, "usage": _NO_USAGE}
    return json_reply(body, headers={STATUS: "HIT", SOURCE: kept.entry.id})
