"""Ask the endpoint about itself before the run: which API it is, what the model costs there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from engine.checks.hosts import Host, read_host, why_not
from engine.errors import EndpointError, UsageError
from engine.faults.fault import FAMILIES, Fault, Scope, fault_of_exception
from engine.manifest import Endpoint
from engine.money.price import Price, dearest
from engine.plan import EndpointFacts
from engine.settings import is_openrouter
from engine.wire.client import Client, Exchange, Failure

AUTH_STATUS = frozenset({401, 403})
ROUTING_SUFFIXES = frozenset({"nitro", "floor", "exacto", "online"})
"""What may follow a model id after a colon to choose a route, not a model."""


ROUTED_BY = (
    "Take the table out, or name OpenRouter itself: base_url ends in /api/v1 there, and "
    'api = "openrouter" is for a proxy of it.'
)


def unrouted(api: str) -> str:
    """Why a manifest that chooses hosts cannot run here: any host might answer."""
    return f"[endpoint.provider] would not be sent: this endpoint's API is {api}, not openrouter"


async def inspect(client: Client, endpoint: Endpoint) -> EndpointFacts:
    """The cheap part of `check`: two GETs.

    Raises EndpointError where nobody answers, UsageError for routing that would not be obeyed.
    """
    models = await client.get("/models")
    if isinstance(models, Failure):
        raise unreachable(endpoint, fault_of_exception(models.names, models.message))
    if models.status in AUTH_STATUS:
        raise _key_refused(client, models.status, "/models")
    entries = model_entries(models)
    api = resolve_api(endpoint, entries)
    if api == "openrouter":
        await _check_key(client)
        return await _openrouter(client, endpoint, entries)
    if endpoint.provider:
        raise UsageError(unrouted(api), hint=ROUTED_BY)
    if api in {"vllm", "sglang"} and entries and find_model(entries, endpoint.model) is None:
        served = ", ".join(str(entry.get("id")) for entry in entries)
        raise EndpointError(
            f"the server has no model {endpoint.model}", hint=f"It serves {served}."
        )
    wants_ids = endpoint.token_ids in {"auto", "yes"} and endpoint.tokenizer != "none"
    return EndpointFacts(
        api=api, token_ids=wants_ids and api in {"vllm", "sglang"}, avoidable=False
    )


def resolve_api(endpoint: Endpoint, entries: list[Mapping[str, Any]]) -> str:
    """Which extras the endpoint understands: what the manifest says, else what `/models` shows."""
    if endpoint.api != "auto":
        return endpoint.api
    if is_openrouter(endpoint.base_url) or any("pricing" in entry for entry in entries):
        return "openrouter"
    owners = {entry.get("owned_by") for entry in entries}
    return next((name for name in ("vllm", "sglang") if name in owners), "openai")


async def _check_key(client: Client) -> None:
    answer = await client.get("/key")
    if isinstance(answer, Exchange) and answer.status in AUTH_STATUS:
        raise _key_refused(client, answer.status, "/key")


def _key_refused(client: Client, status: int, path: str) -> EndpointError:
    what = "does not accept the key" if client.keyed else "wants a key and none is set"
    return EndpointError(
        f"the endpoint {what} (HTTP {status} on {path})",
        hint=FAMILIES["auth"].action,
    )


async def _openrouter(
    client: Client, endpoint: Endpoint, entries: list[Mapping[str, Any]]
) -> EndpointFacts:
    mine = find_model(entries, endpoint.model)
    if entries and mine is None:
        raise EndpointError(
            f"the endpoint has no model {endpoint.model}", hint=FAMILIES["model_gone"].action
        )
    slug = (mine or {}).get("canonical_slug")
    hosts = model_hosts(await client.get(hosts_path(endpoint.model)))
    allowed = [host for host in hosts if not why_not(host, endpoint.provider)]
    if hosts and not allowed:
        raise EndpointError(
            f"[endpoint.provider] leaves none of the {len(hosts)} hosts of {endpoint.model}",
            hint=f"There are {', '.join(host.tag for host in hosts)}.",
        )
    priced = allowed or [read_host(mine or {})]
    return EndpointFacts(
        api="openrouter",
        aliases=frozenset({slug} if isinstance(slug, str) else ()),
        providers=_names(endpoint.provider, allowed),
        slugs={h.provider: h.tag.partition("/")[0] for h in allowed if h.provider and h.tag},
        avoidable=len(allowed) != 1,
        prompt_usd=_dearest(host.prompt_usd for host in priced),
        completion_usd=_dearest(host.completion_usd for host in priced),
        cheapest_prompt_usd=_cheapest(host.prompt_usd for host in priced),
        cheapest_completion_usd=_cheapest(host.completion_usd for host in priced),
        prices=_prices(allowed),
    )


def _names(routing: Mapping[str, Any], allowed: list[Host]) -> frozenset[str] | None:
    """Names under which a reply may come; None where the routing lets any host answer."""
    bound = routing.get("only") or (
        routing.get("order") and routing.get("allow_fallbacks") is False
    )
    if not bound:
        return None
    wanted = [str(entry) for entry in routing.get("only") or routing.get("order") or ()]
    return frozenset(wanted + [host.provider for host in allowed if host.provider])


def _prices(hosts: list[Host]) -> dict[str, Price]:
    """By display name; which variant of a host answered is not said, so the dearest counts."""
    found: dict[str, Price] = {}
    for host in hosts:
        price = Price(host.prompt_usd, host.completion_usd)
        found[host.provider] = dearest([price, found.get(host.provider, price)])
    return found


def _dearest(prices: Iterable[float | None]) -> float | None:
    return max((usd for usd in prices if usd is not None), default=None)


def _cheapest(prices: Iterable[float | None]) -> float | None:
    return min((usd for usd in prices if usd is not None), default=None)


def find_model(entries: list[Mapping[str, Any]], model: str) -> Mapping[str, Any] | None:
    """The entry of a model in `/models`, by its id or its canonical slug.

    Suffixes that choose a route are not listed there.
    """
    names = {model, _listed_name(model)}
    keys = ("id", "canonical_slug")
    found = (entry for key in keys for entry in entries if entry.get(key) in names)
    return next(found, None)


def hosts_path(model: str) -> str:
    """Where OpenRouter lists the hosts of a model."""
    return f"/models/{_listed_name(model)}/endpoints"


def model_hosts(answer: Exchange | Failure) -> list[Host]:
    """The hosts on that page; none where it is not what it should be."""
    data = page_json(answer)
    found = data.get("data") if isinstance(data, Mapping) else None
    hosts = found.get("endpoints") if isinstance(found, Mapping) else None
    entries = hosts if isinstance(hosts, list) else []
    return [read_host(entry) for entry in entries if isinstance(entry, Mapping)]


def _listed_name(model: str) -> str:
    base, _, suffix = model.partition(":")
    return base if suffix in ROUTING_SUFFIXES else model


def model_entries(answer: Exchange | Failure) -> list[Mapping[str, Any]]:
    """The entries of `/models`; none where the page is not what it should be."""
    data = page_json(answer)
    found = data.get("data") if isinstance(data, Mapping) else None
    if not isinstance(found, list):
        return []
    return [entry for entry in found if isinstance(entry, Mapping)]


def page_json(answer: Exchange | Failure) -> Any:
    """The JSON of a page, or None where there is none."""
    if isinstance(answer, Failure) or answer.status != 200:  # noqa: PLR2004 - HTTP's own number
        return None
    try:
        return orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        return None


def unreachable(endpoint: Endpoint, fault: Fault) -> EndpointError:
    """Nobody answered at all, in words and with what to do."""
    hint = FAMILIES[fault.family].action if fault.scope is not Scope.PROMPT else ""
    return EndpointError(
        f"{endpoint.base_url} does not answer ({fault.family}: {fault.message})",
        hint=hint or "Check base_url and that the server is up.",
    )
