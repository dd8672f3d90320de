"""Which hosts may answer each dataset, at what price and with how much context."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.checks.findings import Finding, fail, ok, warn
from engine.checks.hosts import Host, is_named, why_not
from engine.checks.model import ModelEntry
from engine.checks.pages import Pages
from engine.checks.parameters import dropped
from engine.format import plural
from engine.manifest import Endpoint
from engine.preflight import ROUTED_BY, unrouted

Span = tuple[float, float]
"""Lowest and highest of the hosts that may answer."""
_COMPRESSES = 8192
"""OpenRouter shortens prompts by itself on hosts with no more context than this."""

_POLICIES = ("data_collection", "zdr", "enforce_distillable_text")
"""Routing keys that act on what the page of hosts does not show."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a dataset asks of a host."""

    name: str
    max_tokens: int | None
    parameters: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Offer:
    """What a dataset gets: USD per token, context in tokens; None where nobody says."""

    hosts: int = 0
    prompt_usd: Span | None = None
    completion_usd: Span | None = None
    context: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Route:
    """Every host with the datasets that it may not answer, and why."""

    hosts: tuple[tuple[Host, Mapping[str, str]], ...] = ()
    offers: Mapping[str, Offer] = field(default_factory=dict)

    def allowed(self, name: str) -> list[Host]:
        """The hosts that may answer this dataset."""
        return [host for host, excluded in self.hosts if name not in excluded]


def plan_route(
    pages: Pages, model: ModelEntry, endpoint: Endpoint, demands: Sequence[Demand]
) -> Route:
    """Apply the routing to the hosts. A server of one's own is a route without hosts."""
    judged = tuple(
        (host, dict(_excluded(host, endpoint.provider, demands))) for host in pages.hosts
    )
    route = Route(judged)
    offers = {
        demand.name: _offer(route.allowed(demand.name), model, known=bool(judged))
        for demand in demands
    }
    return Route(judged, offers)


def route_findings(
    route: Route, pages: Pages, endpoint: Endpoint, demands: Sequence[Demand]
) -> Iterator[Finding]:
    """What is to be said of the hosts and of the routing."""
    if pages.api != "openrouter":
        if endpoint.provider:
            yield fail("manifest", "routing", unrouted(pages.api), ROUTED_BY)
        return
    if not route.hosts:
        status = "no answer" if pages.hosts_status is None else f"HTTP {pages.hosts_status}"
        text = f"the hosts of {endpoint.model} are not known ({status}): no prices, no limits"
        yield warn("endpoint", "hosts", text, "Try again; without it the prices are the list's.")
        return
    yield from _ways(route, demands)
    yield from _unknown_names(route, endpoint.provider)
    yield from _unseen(endpoint.provider)
    allowed = _anywhere(route, demands)
    yield from _mixture(allowed)
    yield from _ailing(allowed)
    yield from _shortening(allowed, endpoint)
    yield from dropped(allowed, frozenset().union(*(demand.parameters for demand in demands)))


def _excluded(
    host: Host, routing: Mapping[str, Any], demands: Iterable[Demand]
) -> Iterator[tuple[str, str]]:
    for demand in demands:
        reason = why_not(host, routing, max_tokens=demand.max_tokens, needed=demand.parameters)
        if reason:
            yield demand.name, reason


def _offer(hosts: list[Host], model: ModelEntry, *, known: bool) -> Offer:
    if not known:  # a server of one's own, or a page that did not come: what the list says
        context = model.context_length
        return Offer(
            prompt_usd=_span([model.prompt_usd]),
            completion_usd=_span([model.completion_usd]),
            context=(context, context) if context else None,
        )
    windows = [host.context_length for host in hosts if host.context_length]
    return Offer(
        hosts=len(hosts),
        prompt_usd=_span(host.prompt_usd for host in hosts),
        completion_usd=_span(host.completion_usd for host in hosts),
        context=(min(windows), max(windows)) if windows else None,
    )


def _span(prices: Iterable[float | None]) -> Span | None:
    known = [usd for usd in prices if usd is not None]
    return (min(known), max(known)) if known else None


def _anywhere(route: Route, demands: Sequence[Demand]) -> list[Host]:
    return [host for host, excluded in route.hosts if len(excluded) < len(demands)]


def _ways(route: Route, demands: Sequence[Demand]) -> Iterator[Finding]:
    every = len(route.hosts)
    closed = [demand for demand in demands if not route.allowed(demand.name)]
    fix = "The table of hosts says why each may not; loosen [endpoint.provider] or max_tokens."
    if len(closed) == len(demands):
        none = "the only host of the model may not answer"
        many = f"none of the {every} hosts of the model may answer"
        yield fail("endpoint", "routing", none if every == 1 else many, fix)
        return
    for demand in closed:
        text = f"none of the {every} hosts may answer it"
        yield fail("endpoint", "routing", text, fix, dataset=demand.name)
    if not closed:
        fewest = min(len(route.allowed(demand.name)) for demand in demands)
        text = f"the routing leaves {fewest} of {plural(every, 'host')}"
        yield ok("endpoint", "routing", text)


def _unknown_names(route: Route, routing: Mapping[str, Any]) -> Iterator[Finding]:
    for key in ("order", "only", "ignore"):
        entries = routing.get(key)
        for entry in entries if isinstance(entries, list) else ():
            if not any(is_named(host, [entry]) for host, _ in route.hosts):
                text = f"`{key}` names {entry}, which is no host of this model"
                tags = ", ".join(host.tag for host, _ in route.hosts)
                yield warn("endpoint", "routing", text, f"There are {tags}.")


def _unseen(routing: Mapping[str, Any]) -> Iterator[Finding]:
    keys = [key for key in _POLICIES if routing.get(key) not in {None, False, "allow"}]
    if keys:
        text = f"{', '.join(keys)} may leave out further hosts: the list does not tell their policy"
        yield warn("endpoint", "routing", text, "A pilot (`run --limit 5`) shows it.")


def _mixture(allowed: list[Host]) -> Iterator[Finding]:
    kinds = sorted({host.quantization for host in allowed})
    if len(kinds) > 1:
        yield warn(
            "endpoint",
            "quantization",
            f"the hosts that may answer serve different quantizations ({', '.join(kinds)}): "
            "each is a teacher of its own",
            "Pin one with `quantizations` or `order` and allow_fallbacks = false.",
        )


def _ailing(allowed: list[Host]) -> Iterator[Finding]:
    ill = [host for host in allowed if host.status is not None and host.status < 0]
    if ill and len(ill) == len(allowed):
        names = ", ".join(f"{host.tag} ({host.status})" for host in ill)
        text = f"every host that may answer is in trouble just now: {names}"
        yield warn("endpoint", "host_status", text, "Allow another host, or wait.")


def _shortening(allowed: list[Host], endpoint: Endpoint) -> Iterator[Finding]:
    small = [h for h in allowed if h.context_length and h.context_length <= _COMPRESSES]
    if small and "plugins" not in endpoint.extra_body:
        names = ", ".join(host.tag for host in small)
        yield warn(
            "endpoint",
            "compression",
            f"OpenRouter shortens long prompts by itself on small contexts ({names})",
            'Set extra_body.plugins = [{ id = "context-compression", enabled = false }].',
        )
