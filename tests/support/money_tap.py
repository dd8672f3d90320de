"""What the local provider was really sent: bodies and headers of every request, in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.simulator import Simulator
from engine.simulator.outgoing import Outgoing


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    raw: bytes
    headers: Mapping[str, str]
    """Names in lower case."""

    @property
    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.raw)
        return found

    @property
    def text(self) -> str:
        """What the user says last."""
        return str(self.body["messages"][-1]["content"])

    @property
    def ignore(self) -> list[str]:
        """Hosts that the router is asked to leave out."""
        return list(self.body.get("provider", {}).get("ignore", ()))


def tapped(provider: Simulator) -> list[Asked]:
    """Listen in on a provider; the list grows as requests come."""
    asked: list[Asked] = []
    chat = provider.provider.chat

    async def listening(
        raw: bytes, headers: Mapping[str, str], is_gone: Callable[[], bool]
    ) -> Outgoing:
        asked.append(Asked(raw, {name.lower(): value for name, value in headers.items()}))
        return await chat(raw, headers, is_gone)

    provider.provider.chat = listening  # type: ignore[method-assign] # a tap, it changes nothing
    return asked
