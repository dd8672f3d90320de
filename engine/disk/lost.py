"""What earlier sessions left that may have been billed unseen, of one dataset."""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.disk.ledger import Ledger, split_id


@dataclass(slots=True)
class Request:
    """The last request of one generation whose reply nobody saw, and how many there were."""

    count: int = 0
    at: str = ""
    """When it was sent, ISO 8601."""
    ignore: list[str] = field(default_factory=list)
    """Slugs of the hosts that it asked the router to leave out."""


@dataclass(slots=True)
class Lost:
    """One dataset's requests without a reply; `open`: those whose generation has no row yet."""

    open: dict[str, Request] = field(default_factory=dict)
    count: int = 0
    """Of generations with a row, too."""
    unpriced_rows: int = 0
    """Rows whose cost nobody told."""


def lost_of(ledger: Ledger) -> Lost:
    """What a ledger, as it was read, says of requests without a reply."""
    lost = Lost(unpriced_rows=ledger.unpriced, count=ledger.billed_unseen)
    for identifier, found in ledger.open.items():
        if found.billed:
            lost.open[identifier] = Request(found.billed, found.at, found.ignore)
    for record in ledger.unknown:
        lost.count += 1
        identifier, at = record["id"], record["at"]
        if ledger.done(*split_id(identifier)):
            continue
        request = lost.open.setdefault(identifier, Request(ignore=ledger.open[identifier].ignore))
        request.count += 1
        request.at = max(request.at, at)
    return lost
