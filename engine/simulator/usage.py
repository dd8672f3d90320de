"""What a generation used and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.simulator.scenario import Host


@dataclass(frozen=True, slots=True)
class Usage:
    """Native token counts of a generation, as its host counts them."""

    prompt: int
    completion: int
    reasoning: int

    def cost(self, host: Host) -> tuple[float, float]:
        """Return what prompt and completion cost (USD)."""
        prompt = self.prompt * host.prompt_usd_per_m / 1e6
        return prompt, self.completion * host.completion_usd_per_m / 1e6


def usage_body(usage: Usage, host: Host) -> dict[str, Any]:
    """Return OpenRouter's `usage` object."""
    prompt, completion = usage.cost(host)
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "cost": prompt + completion,
        "is_byok": False,
        "prompt_tokens_details": {
            "cached_tokens": 0,
            "cache_write_tokens": 0,
            "audio_tokens": 0,
            "video_tokens": 0,
        },
        "cost_details": {
            "upstream_inference_cost": None,
            "upstream_inference_prompt_cost": prompt,
            "upstream_inference_completions_cost": completion,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "image_tokens": 0,
            "audio_tokens": 0,
        },
    }


NOTHING = Usage(0, 0, 0)
