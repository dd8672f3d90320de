"""The account's balance against what is in flight: the run waits before a terminal 402."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson

from engine.session import Session
from engine.wire.client import Client, Exchange, Failure

POLL_S = 30.0
SHORT_POLL_S = 5.0
LOOK_EVERY_S = 0.25
"""Between two polls what was spent is reckoned off, which may be all there is."""
FIRST_LOOK_S = 5.0
"""How long the first request waits for the balance."""


async def balance_usd(client: Client, *, deadline_s: float = 20.0) -> float | None:
    """What key and account still allow, the smaller of both; None where neither says.

    Sources: GET /key (limit_remaining) and GET /credits (total_credits - total_usage); the latter
    may answer 403 to an ordinary key.
    """
    pages = (client.get(path, deadline_s=deadline_s) for path in ("/key", "/credits"))
    key, credit = map(_data, await asyncio.gather(*pages))
    found = [_number(key.get("limit_remaining"))]
    total, used = _number(credit.get("total_credits")), _number(credit.get("total_usage"))
    if total is not None and used is not None:
        found.append(total - used)
    return min((usd for usd in found if usd is not None), default=None)


async def look_at_funds(session: Session) -> None:
    """Read the balance once, before anything starts that it may not hold."""
    session.gate.see_balance(await balance_usd(session.client, deadline_s=FIRST_LOOK_S))


async def watch_funds(session: Session) -> None:
    """Keep the gate's idea of the balance fresh; journal when it runs short and when it is back."""
    short = False
    due = session.clock.monotonic() + POLL_S
    while True:
        now = session.clock.monotonic()
        if session.gate.short_of_funds() != short:
            short = not short
            due = now + (SHORT_POLL_S if short else POLL_S)
            _tell(session, short=short)
        await asyncio.sleep(LOOK_EVERY_S)
        if session.clock.monotonic() >= due:
            session.gate.see_balance(await balance_usd(session.client))
            due = session.clock.monotonic() + (SHORT_POLL_S if short else POLL_S)


def _tell(session: Session, *, short: bool) -> None:
    if not short:
        session.limiter.release()  # a 402 may have asked for minutes of rest
    text = session.gate.funds_words() if short else "the balance suffices again"
    session.journal.note("state", f"credits: {text}")
    session.wake.set()


def _data(answer: Exchange | Failure) -> Mapping[str, Any]:
    if isinstance(answer, Failure) or answer.status != 200:  # noqa: PLR2004 - HTTP's own number
        return {}
    try:
        page = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        return {}
    data = page.get("data") if isinstance(page, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
