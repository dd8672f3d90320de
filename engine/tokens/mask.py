"""Loss masks: which tokens of a row are supervised, by the rule of the trainer that reads it.

1 means that the token is supervised; the trainers do the shift (facts/training-formats.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from engine.tokens import kimi

MaskRule = Literal["specforge", "speculators"]

_PREFILL: Final = frozenset({kimi.THINK, kimi.END_THINK})


def loss_mask(
    prompt_ids: Sequence[int], completion_ids: Sequence[int], rule: MaskRule
) -> list[int]:
    """The mask over prompt and completion together, as long as both.

    speculators: the completion. SpecForge: also the thinking tags with which the prompt as served
    ends, because its own parser supervises everything after the assistant's header.
    """
    supervised = prefill_length(prompt_ids) if rule == "specforge" else 0
    return [0] * (len(prompt_ids) - supervised) + [1] * (supervised + len(completion_ids))


def prefill_length(prompt_ids: Sequence[int]) -> int:
    """How many tokens of the answer the prompt already holds: `<think>`, or the empty block."""
    length = 0
    while length < len(prompt_ids) and prompt_ids[-1 - length] in _PREFILL:
        length += 1
    return length
