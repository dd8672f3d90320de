"""A reply on its way out: bytes, and how they are to travel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.simulator.faults import Delivery

JSON = "application/json"
HTML = "text/html; charset=UTF-8"


@dataclass(frozen=True, slots=True)
class Stream:
    """Events with a pause before each; `ended` is told the share that was sent, once."""

    events: list[bytes]
    pause_s: float
    comments: int
    split_bytes: bool
    ended: Callable[[float], None]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Status, body and headers, and the delivery (see `faults.Delivery`)."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)
    content_type: str = JSON
    delivery: Delivery = "plain"
    stream: Stream | None = None
    """Events instead of the body."""


def json_reply(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> Outgoing:
    """Return a JSON body as a reply."""
    return Outgoing(status, orjson.dumps(body), headers or {})


class RefusedError(Exception):
    """A request that is answered by an error; `fault` names it in the ledger."""

    def __init__(self, reply: Outgoing, *, fault: str) -> None:
        super().__init__(fault)
        self.fault = fault
        self.reply = reply
