"""OpenRouter's router: which hosts a request may go to, in which order, and why none is left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.simulator.outgoing import json_reply
from engine.simulator.refusals import error

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from engine.simulator.scenario import Host


class NoRouteError(Exception):
    """No host is left; `reply` is the router's 404."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(body["error"]["message"])
        self.reply = json_reply(body, 404)


def route(
    hosts: tuple[Host, ...], wish: dict[str, Any], max_tokens: int | None, rng: Random
) -> list[Host]:
    """Return the hosts to ask, first choice first.

    Raises NoRouteError, with the funnel of how many hosts each step left.
    """
    funnel = [{"step": "Initial Endpoints", "endpoint_count": len(hosts)}]
    left = list(hosts)
    for step, keep in _steps(wish, max_tokens):
        left = [host for host in left if keep(host)]
        funnel.append({"step": step, "endpoint_count": len(left)})
        if not left:
            raise NoRouteError(_nothing(hosts, wish, funnel, step))
    return _ordered(left, wish, rng)


def _steps(
    wish: dict[str, Any], max_tokens: int | None
) -> list[tuple[str, Callable[[Host], bool]]]:
    steps: list[tuple[str, Callable[[Host], bool]]] = []
    allowed = _allowed(wish)
    if allowed is not None:
        steps.append(("Filter by Allowed Providers", lambda h: _listed(h, allowed)))
    if ignored := wish.get("ignore"):
        steps.append(("Filter by Ignored Providers", lambda h: not _listed(h, ignored)))
    if quantizations := wish.get("quantizations"):
        steps.append(("Filter by Parameters", lambda h: h.quantization in quantizations))
    if price := wish.get("max_price"):
        steps.append(("Filter by Max Price", lambda h: _affordable(h, price)))
    if max_tokens is not None:
        steps.append(("Filter by Parameters", lambda h: h.max_completion_tokens >= max_tokens))
    return steps


def _allowed(wish: dict[str, Any]) -> list[str] | None:
    """`only`, and `order` where nothing beyond it may be tried."""
    only = wish.get("only")
    order = wish.get("order")
    if order and wish.get("allow_fallbacks") is False:
        return [tag for tag in order if not only or tag in only]
    return only or None


def _listed(host: Host, names: list[str]) -> bool:
    """A base slug matches all its variants, a full tag only itself; case does not count."""
    known = {host.tag.lower(), host.tag.partition("/")[0].lower(), host.name.lower()}
    return any(name.lower() in known for name in names)


def _affordable(host: Host, price: dict[str, Any]) -> bool:
    prompt = float(price.get("prompt", "inf"))
    completion = float(price.get("completion", "inf"))
    return host.prompt_usd_per_m <= prompt and host.completion_usd_per_m <= completion


def _ordered(hosts: list[Host], wish: dict[str, Any], rng: Random) -> list[Host]:
    order = [name.lower() for name in wish.get("order") or ()]
    if order:
        rank = {id(h): _rank(h, order) for h in hosts}
        return sorted(hosts, key=lambda h: rank[id(h)])
    if wish.get("sort") == "price":
        return sorted(hosts, key=lambda h: h.completion_usd_per_m)
    if len(hosts) == 1:
        return hosts
    # Weighted order without replacement: the largest of u^(1/weight) comes first.
    return sorted(hosts, key=lambda h: -(rng.random() ** (1 / h.weight) if h.weight else -1.0))


def _rank(host: Host, order: list[str]) -> int:
    return next((n for n, name in enumerate(order) if _listed(host, [name])), len(order))


def _nothing(
    hosts: tuple[Host, ...], wish: dict[str, Any], funnel: list[dict[str, Any]], step: str
) -> dict[str, Any]:
    metadata = {
        "available_providers": [h.tag for h in hosts],
        "requested_providers": wish.get("only") or wish.get("order") or [],
        "routing_funnel": funnel,
        "failed_routing_step": step,
    }
    if "Providers" in step:
        message = "No allowed providers are available for the selected model."
    else:
        message = "No endpoints found that match your routing requirements."
    return error(404, message, metadata)
