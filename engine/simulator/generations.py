"""What `GET /generation` tells: native counts and cost, some seconds after the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.clock import iso
from engine.simulator.outgoing import Outgoing, json_reply
from engine.simulator.refusals import error

if TYPE_CHECKING:
    from engine.clock import Clock
    from engine.simulator.ledger import Entry
    from engine.simulator.scenario import Scenario

_KEPT = 200_000
"""Generations that are remembered; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class _Known:
    entry: Entry
    finish: str | None
    from_s: float


class Generations:
    """Remembers finished generations; each is found only after a delay, as the real page lags."""

    def __init__(self, scenario: Scenario, clock: Clock) -> None:
        self._model = scenario.canonical
        self._delay_s = scenario.generation_delay_s / scenario.speed
        self._clock = clock
        self._known: dict[str, _Known] = {}

    def add(self, entry: Entry, finish: str | None) -> None:
        """Remember a generation that has just ended."""
        if len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._known[entry.id] = _Known(entry, finish, self._clock.monotonic() + self._delay_s)

    def page(self, generation_id: str) -> Outgoing:
        """Return the page of a generation: 404 while it is unknown or too new."""
        known = self._known.get(generation_id)
        if known is None or self._clock.monotonic() < known.from_s:
            return json_reply(error(404, f"Generation {generation_id} not found"), 404)
        return json_reply({"data": self._data(known)})

    def _data(self, known: _Known) -> dict[str, Any]:
        entry = known.entry
        return {
            "id": entry.id,
            "created_at": iso(entry.at),
            "model": self._model,
            "provider_name": entry.provider,
            "total_cost": entry.cost,
            "usage": entry.cost,
            "is_byok": False,
            "streamed": False,
            "cancelled": entry.cancelled,
            "finish_reason": known.finish,
            "native_finish_reason": known.finish,
            "tokens_prompt": entry.prompt_tokens,
            "tokens_completion": entry.completion_tokens,
            "native_tokens_prompt": entry.prompt_tokens,
            "native_tokens_completion": entry.completion_tokens,
            "native_tokens_reasoning": entry.reasoning_tokens,
            "native_tokens_cached": 0,
            "generation_time": round(entry.latency_s * 1000),
            "latency": round(entry.latency_s * 1000),
            "provider_responses": [{"provider_name": entry.provider, "status": entry.status}],
        }
