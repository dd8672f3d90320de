"""Request parameters: which are misspelt, overridden, or dropped by the hosts that may answer.

OpenRouter drops a parameter that a host does not support without a word, unless
require_parameters is set (facts of OpenRouter's provider routing).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from engine.checks.findings import Finding, fail, warn
from engine.checks.hosts import Host
from engine.manifest import Endpoint

_SUPPORTED = frozenset(
    {
        "frequency_penalty",
        "include_reasoning",
        "logit_bias",
        "logprobs",
        "max_tokens",
        "min_p",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning",
        "reasoning_effort",
        "repetition_penalty",
        "response_format",
        "seed",
        "stop",
        "structured_outputs",
        "temperature",
        "tool_choice",
        "tools",
        "top_a",
        "top_k",
        "top_logprobs",
        "top_p",
        "verbosity",
    }
)
"""What OpenRouter names in a host's supported_parameters."""
_NEAR = frozenset({"min_tokens", "max_completion_tokens"})
"""Parameters of vLLM and OpenAI that only look like a misspelt one."""
_ALIASES = {
    "max_completion_tokens": "max_tokens",
    "include_reasoning": "reasoning",
    "reasoning_effort": "reasoning",
}
_CAPS = ("max_tokens", "max_completion_tokens")
_ROUTING_KEYS = frozenset(
    {
        "allow_fallbacks",
        "data_collection",
        "enforce_distillable_text",
        "ignore",
        "max_price",
        "only",
        "options",
        "order",
        "preferred_max_latency",
        "preferred_min_throughput",
        "quantizations",
        "require_parameters",
        "sort",
        "zdr",
    }
)
"""All keys of OpenRouter's `provider` object; it refuses others."""


def asked_for(endpoint: Endpoint, sampling: Mapping[str, Any]) -> frozenset[str]:
    """The parameters of a request that OpenRouter lists per host."""
    sent = {*sampling, *endpoint.extra_body} | ({"reasoning"} if endpoint.thinking else set())
    return frozenset(_ALIASES.get(name, name) for name in sent) & _SUPPORTED


def dropped(hosts: list[Host], parameters: AbstractSet[str]) -> Iterator[Finding]:
    """Parameters that hosts which may answer would drop without a word."""
    for name in sorted(parameters):
        deaf = [h for h in hosts if h.parameters is not None and not _takes(h.parameters, name)]
        if not deaf:
            continue
        who = (
            "no host that may answer takes"
            if len(deaf) == len(hosts)
            else (f"{', '.join(host.tag for host in deaf)} does not take")
        )
        yield warn(
            "endpoint",
            "parameters",
            f"{who} {name}: it is dropped without a word",
            f"Take {name} out, or set require_parameters = true in [endpoint.provider].",
        )


def spelling_findings(
    endpoint: Endpoint, sampling: Mapping[str, Mapping[str, Any]]
) -> Iterator[Finding]:
    """Names that look misspelt, as servers ignore what they do not know; `sampling` by dataset."""
    names = {name for values in sampling.values() for name in values} | set(endpoint.extra_body)
    for name in sorted(names - _SUPPORTED - _NEAR):
        near = difflib.get_close_matches(name, _SUPPORTED, n=1, cutoff=0.8)
        if near:
            text = f"{name} is no known request parameter and would be ignored"
            yield warn("manifest", "parameters", text, f"Did you mean {near[0]}?")
    for key in sorted(set(endpoint.provider) - _ROUTING_KEYS):
        near = difflib.get_close_matches(key, _ROUTING_KEYS, n=1, cutoff=0.5)
        text = f"provider.{key} is no documented key; OpenRouter refuses a request that has others"
        if near:
            yield fail("manifest", "routing", text, f"Did you mean {near[0]}?")
        else:  # it may be newer than this program
            yield warn("manifest", "routing", text)


def spelling_notes(endpoint: Endpoint, sampling: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The same in a sentence each, for whoever runs without a check."""
    for finding in spelling_findings(endpoint, sampling):
        yield f"{finding.text}. {finding.fix}".removesuffix(". ")


def override_findings(
    endpoint: Endpoint, sampling: Mapping[str, Mapping[str, Any]]
) -> Iterator[Finding]:
    """What extra_body replaces in every request, so that other settings do not act."""
    body = endpoint.extra_body
    for name in _CAPS:
        if name in body:
            text = f"extra_body.{name} overrides the sampling's; budgets reckon without it"
            yield warn("manifest", "extra_body", text, f"Set {name} in [sampling].")
    if "reasoning" in body or "chat_template_kwargs" in body:
        text = f"extra_body replaces what `thinking = {str(endpoint.thinking).lower()}` sends"
        yield warn("manifest", "extra_body", text, "The prompt's ids follow `thinking`.")
    if "session_id" in body:
        text = "one session_id sends every request to one host"
        yield warn("manifest", "extra_body", text, "Take session_id out.")
    for dataset, values in sampling.items():
        if not any(name in values for name in _CAPS):
            text = "has no max_tokens: a provider assumes a cap of its own and holds money for it"
            yield warn(
                "manifest", "max_tokens", text, "Set max_tokens in [sampling].", dataset=dataset
            )


def _takes(parameters: AbstractSet[str], name: str) -> bool:
    return name in {_ALIASES.get(each, each) for each in parameters}
