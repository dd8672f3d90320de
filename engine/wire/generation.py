"""Native counts of a cache hit, from OpenRouter's `/generation` page (facts: it lags and 404s)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson

from engine.wire.client import Client, Exchange
from engine.wire.usage import Usage

SOURCE_ID = "x-openrouter-cache-source-id"
WAITS_S = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
"""The page comes seconds after the generation has ended; later it is there at once."""


async def native_usage(client: Client, generation_id: str) -> Usage | None:
    """What a finished generation really counted and cost; None where the page never comes."""
    for wait_s in WAITS_S:
        await asyncio.sleep(wait_s)
        answer = await client.get(f"/generation?id={generation_id}")
        if isinstance(answer, Exchange) and answer.status == 200:  # noqa: PLR2004 - HTTP's number
            return _usage(answer.body)
    return None


def _usage(body: bytes) -> Usage | None:
    try:
        page = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    data = page.get("data") if isinstance(page, Mapping) else None
    if not isinstance(data, Mapping):
        return None
    return Usage(
        prompt_tokens=_count(data.get("native_tokens_prompt")),
        completion_tokens=_count(data.get("native_tokens_completion")),
        reasoning_tokens=_count(data.get("native_tokens_reasoning")),
        cost=_cost(data.get("total_cost")),
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _cost(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and value >= 0 else None
