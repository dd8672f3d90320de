"""What is shown of a run whose process is gone: nothing of it moves any more."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from engine.view.snapshot import Snapshot

ENDED: Final = frozenset({"done", "stopped"})
"""The states of a run that came to an end of its own (DESIGN §6, status.json)."""


def at_rest(snapshot: Snapshot) -> Snapshot:
    """The last that was seen, with what was in flight put back to what is left."""
    views = tuple(
        replace(view, in_flight=0, left=view.left + view.in_flight, rows_per_s=0.0, eta_s=None)
        for view in snapshot.datasets
    )
    return replace(
        snapshot,
        datasets=views,
        in_flight=0,
        in_flight_cost_usd=0.0,
        rows_per_s=0.0,
        completion_tokens_per_s=0.0,
        eta_s=None,
    )
