"""Whether the endpoint answers, has the model, and for how long; which names resemble it."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.checks.account import epoch
from engine.checks.findings import SENTENCE, Finding, fail, ok, warn
from engine.checks.hosts import read_host, whole
from engine.checks.pages import Pages
from engine.faults.families import FAMILIES
from engine.format import duration, safe_text
from engine.manifest import Endpoint
from engine.preflight import AUTH_STATUS, find_model
from engine.wire.served import model_matches

_FOUND = 200
_NO_SUCH_PAGE = frozenset({404, 405, 501})
_SOON_S = 30 * 86_400.0
_CHECKS_NAMES = frozenset({"openrouter", "vllm"})
"""APIs that refuse a model which `/models` does not list; others may serve any name."""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """What `/models` says of the model."""

    listed: bool | None = None
    """None where the list could not be read."""
    canonical: str | None = None
    context_length: int | None = None
    expiration_date: str | None = None
    prompt_usd: float | None = None
    """USD per token, where no host names its own price."""
    completion_usd: float | None = None


def read_model(pages: Pages, endpoint: Endpoint) -> ModelEntry:
    """The model's entry; vLLM calls the context max_model_len."""
    if not pages.models:
        return ModelEntry()
    entry = find_model(list(pages.models), endpoint.model)
    if entry is None:
        return ModelEntry(listed=False)
    priced = read_host(entry)
    return ModelEntry(
        listed=True,
        canonical=_text(entry, "canonical_slug"),
        context_length=whole(entry.get("context_length", entry.get("max_model_len"))),
        expiration_date=_text(entry, "expiration_date"),
        prompt_usd=priced.prompt_usd,
        completion_usd=priced.completion_usd,
    )


def reach_findings(pages: Pages, endpoint: Endpoint) -> Iterator[Finding]:
    """Whether anybody answers at the base URL, and as what."""
    status, where = pages.models_status, endpoint.base_url
    if status is None:
        yield fail("endpoint", "reachable", pages.problem, pages.hint)
    elif status == _FOUND and pages.models:
        yield ok("endpoint", "reachable", f"{where} answers (API: {pages.api})")
    elif status == _FOUND or status in _NO_SUCH_PAGE:
        text = f"{where} answers, but /models is no list of models (HTTP {status})"
        yield warn("endpoint", "reachable", text, "Check that base_url ends as in .../v1.")
    elif status not in AUTH_STATUS:
        text = f"{where} answers /models with HTTP {status}"
        yield fail("endpoint", "reachable", text, "Try again later; check base_url.")


def model_findings(
    model: ModelEntry, pages: Pages, endpoint: Endpoint, now: float
) -> Iterator[Finding]:
    """Whether the model is there, when it goes, and who could be taken for it."""
    if model.listed is None:
        return
    if model.listed is False:
        yield _missing(pages, endpoint)
        return
    yield _present(model, endpoint, now)
    for name in lookalikes(model, pages, endpoint):
        yield warn(
            "endpoint",
            "dated_name",
            f"{name} is a model of its own here; a reply that names it would pass as a dated "
            f"revision of {endpoint.model}",
            "Look at `model` in the first rows; pin the hosts with [endpoint.provider].",
        )


def lookalikes(model: ModelEntry, pages: Pages, endpoint: Endpoint) -> list[str]:
    """Listed models of another canonical slug that the rule for dated names would accept."""
    aliases = frozenset({model.canonical} if model.canonical else ())
    found = []
    for entry in pages.models:
        name, slug = _text(entry, "id"), _text(entry, "canonical_slug")
        if name is None or name in {endpoint.model, model.canonical}:
            continue
        own = model.canonical is not None and slug == model.canonical
        if not own and model_matches(name, endpoint.model, aliases):
            found.append(safe_text(name, SENTENCE))
    return found


def _missing(pages: Pages, endpoint: Endpoint) -> Finding:
    names = [name for entry in pages.models if (name := _text(entry, "id"))]
    near = difflib.get_close_matches(endpoint.model, names, n=3, cutoff=0.5)
    hint = f"It has {', '.join(safe_text(name, SENTENCE) for name in near)}." if near else ""
    text = f"the endpoint has no model {endpoint.model}"
    if pages.api not in _CHECKS_NAMES:
        return warn("endpoint", "model", f"{text} in its list", hint)
    return fail("endpoint", "model", text, hint or FAMILIES["model_gone"].action)


def _present(model: ModelEntry, endpoint: Endpoint, now: float) -> Finding:
    name = f"the model {endpoint.model} is there"
    ends = epoch(model.expiration_date)
    if ends is None:
        return ok("endpoint", "model", name)
    text = f"{name} until {safe_text(str(model.expiration_date), 40)}"
    if ends <= now:
        return warn("endpoint", "model", f"{text}, which is past", "Look for its successor.")
    if ends - now < _SOON_S:
        return warn(
            "endpoint", "model", f"{text}, in {duration(ends - now)}", "Finish the run before that."
        )
    return ok("endpoint", "model", text)


def _text(entry: Mapping[str, Any], key: str) -> str | None:
    value = entry.get(key)
    return value if isinstance(value, str) and value else None
