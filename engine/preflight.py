"""Ask the endpoint about itself before the run: which API it is, what the model costs there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from engine.check_hosts import Host, read_host, why_not
from engine.client import Client, Exchange, Failure
from engine.errors import EndpointError
from engine.faults import FAMILIES, Fault, Scope, fault_of_exception
from engine.manifest import Endpoint
from engine.plan import EndpointFacts
from engine.settings import is_openrouter

AUTH_STATUS = frozenset({401, 403})


async def inspect(client: Client, endpoint: Endpoint) -> EndpointFacts:
    """The cheap part of `check`: two GETs. Raises EndpointError where nobody answers."""
    models = await client.get("/models")
    if isinstance(models, Failure):
        raise unreachable(endpoint, fault_of_exception(models.names, models.message))
    entries = model_entries(models)
    api = resolve_api(endpoint, entries)
    if api == "openrouter":
        await _check_key(client)
        return await _openrouter(client, endpoint, entries)
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
        action = FAMILIES["auth"].action
        raise EndpointError(
            f"the endpoint does not accept the key (HTTP {answer.status} on /key)", hint=action
        )


async def _openrouter(
    client: Client, endpoint: Endpoint, entries: list[Mapping[str, Any]]
) -> EndpointFacts:
    mine = next((entry for entry in entries if entry.get("id") == endpoint.model), None)
    if entries and mine is None:
        raise EndpointError(
            f"the endpoint has no model {endpoint.model}", hint=FAMILIES["model_gone"].action
        )
    slug = (mine or {}).get("canonical_slug")
    hosts = await _hosts(client, endpoint.model)
    allowed = [host for host in hosts if _allowed(host, endpoint.provider)]
    if hosts and not allowed:
        raise EndpointError(
            f"[endpoint.provider] leaves none of the {len(hosts)} hosts of {endpoint.model}",
            hint=f"There are {', '.join(str(host.get('tag')) for host in hosts)}.",
        )
    return EndpointFacts(
        api="openrouter",
        aliases=frozenset({slug} if isinstance(slug, str) else ()),
        providers=_names(endpoint.provider, allowed),
        slugs=_slugs(allowed),
        avoidable=len(allowed) != 1,
        prompt_usd=_dearest(allowed or [mine or {}], "prompt"),
        completion_usd=_dearest(allowed or [mine or {}], "completion"),
    )


async def _hosts(client: Client, model: str) -> list[Mapping[str, Any]]:
    answer = await client.get(f"/models/{model}/endpoints")
    data = page_json(answer)
    found = data.get("data") if isinstance(data, Mapping) else None
    hosts = found.get("endpoints") if isinstance(found, Mapping) else None
    return [host for host in hosts if isinstance(host, Mapping)] if isinstance(hosts, list) else []


def _allowed(host: Mapping[str, Any], routing: Mapping[str, Any]) -> bool:
    tag, name = str(host.get("tag", "")), str(host.get("provider_name", ""))
    only = routing.get("only") or (
        routing.get("order") if routing.get("allow_fallbacks") is False else None
    )
    if only and not any(_is(entry, tag, name) for entry in only):
        return False
    quantizations = routing.get("quantizations")
    if quantizations and host.get("quantization") not in quantizations:
        return False
    return not any(_is(entry, tag, name) for entry in routing.get("ignore") or ())


def _is(entry: Any, tag: str, name: str) -> bool:
    """A base slug matches every variant; a full tag pins one (OpenRouter's provider routing)."""
    wanted = str(entry).lower()
    return wanted in {tag.lower(), tag.lower().partition("/")[0], name.lower()}


def _names(routing: Mapping[str, Any], allowed: list[Mapping[str, Any]]) -> frozenset[str] | None:
    """Names under which a reply may come; None where the routing lets any host answer."""
    bound = routing.get("only") or (
        routing.get("order") and routing.get("allow_fallbacks") is False
    )
    if not bound:
        return None
    wanted = [str(entry) for entry in routing.get("only") or routing.get("order") or ()]
    named = [str(host["provider_name"]) for host in allowed if host.get("provider_name")]
    return frozenset(wanted + named)


def _slugs(hosts: list[Mapping[str, Any]]) -> dict[str, str]:
    named = [(host.get("provider_name"), host.get("tag")) for host in hosts]
    return {
        name: tag.partition("/")[0]
        for name, tag in named
        if isinstance(name, str) and isinstance(tag, str)
    }


def _dearest(hosts: list[Mapping[str, Any]], kind: str) -> float | None:
    prices = []
    for host in hosts:
        pricing = host.get("pricing")
        try:
            prices.append(float(pricing[kind]) if isinstance(pricing, Mapping) else 0.0)
        except (KeyError, TypeError, ValueError):
            continue
    return max((price for price in prices if price > 0), default=None)


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
    hint = FAMILIES[fault.family].action if fault.scope is not Scope.PROMPT else ""
    return EndpointError(
        f"{endpoint.base_url} does not answer ({fault.family}: {fault.message})",
        hint=hint or "Check base_url and that the server is up.",
    )
