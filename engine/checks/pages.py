"""Ask an endpoint for everything it says of itself, with GETs only: `check` pays for nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.checks.hosts import Host
from engine.faults.fault import fault_of_exception
from engine.manifest import Endpoint
from engine.preflight import (
    hosts_path,
    model_entries,
    model_hosts,
    page_json,
    resolve_api,
    unreachable,
)
from engine.wire.client import Client, Exchange, Failure


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its HTTP status (None: nobody answered), and its `data` object where it has one."""

    status: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pages:
    """What an endpoint says of itself."""

    api: str
    models_status: int | None = None
    """None where nobody answered; `problem` and `hint` say more then."""
    models: tuple[Mapping[str, Any], ...] = ()
    problem: str = ""
    hint: str = ""
    key: Page = field(default_factory=Page)
    credits: Page = field(default_factory=Page)
    hosts_status: int | None = None
    hosts: tuple[Host, ...] = ()


async def read_pages(client: Client, endpoint: Endpoint) -> Pages:
    """GET /models, and where the API is OpenRouter's also key, credits and the model's hosts."""
    models = await client.get("/models")
    if isinstance(models, Failure):
        error = unreachable(endpoint, fault_of_exception(models.names, models.message))
        return Pages(api=resolve_api(endpoint, []), problem=error.message, hint=error.hint)
    entries = model_entries(models)
    api = resolve_api(endpoint, entries)
    if api != "openrouter":
        return Pages(api=api, models_status=models.status, models=tuple(entries))
    key, credit, hosts = await asyncio.gather(
        client.get("/key"), client.get("/credits"), client.get(hosts_path(endpoint.model))
    )
    return Pages(
        api=api,
        models_status=models.status,
        models=tuple(entries),
        key=_page(key),
        credits=_page(credit),
        hosts_status=None if isinstance(hosts, Failure) else hosts.status,
        hosts=tuple(model_hosts(hosts)),
    )


def _page(answer: Exchange | Failure) -> Page:
    if isinstance(answer, Failure):
        return Page()
    page = page_json(answer)
    data = page.get("data") if isinstance(page, Mapping) else None
    return Page(answer.status, data if isinstance(data, Mapping) else {})
