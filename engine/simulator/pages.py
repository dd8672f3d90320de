"""What is no completion: the account, the catalogue, the ledger, the health of a server."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from engine.simulator import catalog, refusals
from engine.simulator.outgoing import Outgoing, json_reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from engine.simulator.provider import Provider
    from engine.simulator.scenario import Scenario

_GUARDED = frozenset({"/key", "/credits", "/generation"})
"""Pages that ask for a key where the account does."""


def prefix_of(scenario: Scenario) -> str:
    """Return the path under which an API lies."""
    return "/api/v1" if scenario.api == "openrouter" else "/v1"


def page(provider: Provider, request: web.BaseRequest) -> Outgoing:
    """Answer a page, or 404."""
    prefix = prefix_of(provider.scenario)
    path = request.path.removeprefix(prefix)
    fault = provider.account.key_fault(request.headers.get("Authorization"))
    if fault and path in _GUARDED:
        text = "User not found." if fault == "bad_key" else "No cookie auth credentials found"
        return json_reply(refusals.error(401, text), 401)
    pages = _shared(provider, request)
    pages |= _of_openrouter(provider, request) if prefix == "/api/v1" else _of_server(provider)
    make = pages.get(path)
    if make is None:
        return json_reply(refusals.error(404, "Not Found"), 404)
    body = make()
    return body if isinstance(body, Outgoing) else json_reply(body)


def _shared(provider: Provider, request: web.BaseRequest) -> dict[str, Callable[[], Any]]:
    by_prompt = request.query.get("by_prompt") != "0"
    return {"/_ledger": partial(provider.ledger.totals, by_prompt=by_prompt)}


def _of_openrouter(provider: Provider, request: web.BaseRequest) -> dict[str, Callable[[], Any]]:
    scenario = provider.scenario
    endpoints = partial(catalog.endpoints, scenario)
    return {
        "/key": provider.account.key,
        "/credits": provider.account.credits_page,
        "/models": partial(catalog.models, scenario),
        f"/models/{scenario.model}/endpoints": endpoints,
        f"/models/{scenario.canonical}/endpoints": endpoints,
        "/generation": partial(provider.generations.page, request.query.get("id", "")),
    }


def _of_server(provider: Provider) -> dict[str, Callable[[], Any]]:
    scenario = provider.scenario
    return {
        "/models": partial(catalog.served_models, scenario),
        "/health": lambda: Outgoing(200, b"", {}, content_type="text/plain"),
        "/version": lambda: {"version": "0.33.0"},
        "/get_model_info": lambda: {"model_path": scenario.model, "is_generation": True},
    }
