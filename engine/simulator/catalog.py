"""The catalogue pages: models, endpoints of a model, as OpenRouter and plain servers show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.simulator.scenario import Host, Scenario

_CREATED = 1_769_490_076
_PARAMETERS = [
    "frequency_penalty",
    "include_reasoning",
    "max_tokens",
    "presence_penalty",
    "reasoning",
    "response_format",
    "seed",
    "stop",
    "temperature",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
]
_ARCHITECTURE = {
    "modality": "text+image->text",
    "input_modalities": ["text", "image"],
    "output_modalities": ["text"],
    "tokenizer": "Other",
    "instruct_type": None,
}


def _usd_per_token(usd_per_m: float) -> str:
    """Prices are decimal strings in USD per token."""
    return f"{usd_per_m / 1e6:.12f}".rstrip("0").rstrip(".") or "0"


def _pricing(host: Host) -> dict[str, Any]:
    return {
        "prompt": _usd_per_token(host.prompt_usd_per_m),
        "completion": _usd_per_token(host.completion_usd_per_m),
        "request": "0",
        "image": "0",
        "web_search": "0",
        "internal_reasoning": "0",
        "discount": 0,
    }


def models(scenario: Scenario) -> dict[str, Any]:
    """Return the body of `GET /models`."""
    cheapest = min(scenario.providers, key=lambda h: h.completion_usd_per_m)
    return {
        "data": [
            {
                "id": scenario.model,
                "canonical_slug": scenario.canonical,
                "name": "MoonshotAI: Kimi K2.5",
                "created": _CREATED,
                "description": "A simulated model: its answers are made from phrases.",
                "context_length": max(h.context_length for h in scenario.providers),
                "architecture": _ARCHITECTURE,
                "pricing": _pricing(cheapest),
                "top_provider": {
                    "context_length": cheapest.context_length,
                    "max_completion_tokens": cheapest.max_completion_tokens,
                    "is_moderated": False,
                },
                "per_request_limits": None,
                "supported_parameters": _PARAMETERS,
                "reasoning": {
                    "mandatory": scenario.reasoning_mandatory,
                    "default_enabled": True,
                },
                "expiration_date": scenario.expiration_date,
            }
        ]
    }


def endpoints(scenario: Scenario) -> dict[str, Any]:
    """Return the body of `GET /models/{author}/{slug}/endpoints`."""
    return {
        "data": {
            "id": scenario.model,
            "name": "MoonshotAI: Kimi K2.5",
            "created": _CREATED,
            "description": "A simulated model: its answers are made from phrases.",
            "architecture": _ARCHITECTURE,
            "endpoints": [_endpoint(scenario, host) for host in scenario.providers],
        }
    }


def _endpoint(scenario: Scenario, host: Host) -> dict[str, Any]:
    return {
        "name": f"{host.name} | {scenario.canonical}",
        "model_id": scenario.model,
        "model_name": "MoonshotAI: Kimi K2.5",
        "context_length": host.context_length,
        "pricing": _pricing(host),
        "provider_name": host.name,
        "tag": host.tag,
        "quantization": host.quantization,
        "max_completion_tokens": host.max_completion_tokens,
        "max_prompt_tokens": None,
        "supported_parameters": _PARAMETERS,
        "status": 0,
        "uptime_last_5m": 99.8,
        "uptime_last_30m": 99.8,
        "uptime_last_1d": 99.6,
        "latency_last_30m": None,
        "throughput_last_30m": None,
        "supports_implicit_caching": False,
    }


def served_models(scenario: Scenario) -> dict[str, Any]:
    """Return the body of `GET /v1/models` of a vLLM or SGLang server."""
    model = {
        "id": scenario.model,
        "object": "model",
        "created": _CREATED,
        "owned_by": scenario.api,
        "root": scenario.model,
        "parent": None,
        "max_model_len": scenario.hosts[0].context_length,
    }
    return {"object": "list", "data": [model]}
