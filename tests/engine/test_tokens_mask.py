"""Loss masks agree with SpecForge's own parser and with the rule of speculators."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kimi_cases import ids, shared

from engine.tokens import kimi
from engine.tokens.mask import loss_mask
from engine.tokens.template import render_prompt

IDS = st.lists(st.integers(0, kimi.N_VOCAB - 1))


@pytest.mark.parametrize("name", ["standard", "reasoning"])
def test_rows_of_a_conversation_are_masked_as_specforge_masks_it(name: str) -> None:
    case = json.loads(shared(f"golden/kimi_k2_thinking_{name}.json"))
    sequence, expected = case["input_ids"], case["loss_mask"]
    masked = [0] * len(sequence)
    starts = [i for i, token in enumerate(sequence) if token == kimi.THINK]
    assert len(starts) == 2
    for start in starts:  # a row each: the prompt as K2.5 serves it ends in <think>
        end = sequence.index(kimi.IM_END, start) + 1
        row = loss_mask(sequence[: start + 1], sequence[start + 1 : end], "specforge")
        assert len(row) == end
        masked = [max(old, new) for old, new in zip(masked, [*row, *masked[end:]], strict=True)]
    assert masked == expected


@pytest.mark.parametrize(("thinking", "prefill"), [(True, 1), (False, 2)])
def test_the_prefill_is_supervised_for_specforge_only(thinking: bool, prefill: int) -> None:
    prompt = ids(render_prompt([{"role": "user", "content": "Hi"}], thinking=thinking))
    completion = ids("Hello<|im_end|>")
    assert loss_mask(prompt, completion, "speculators") == [0] * len(prompt) + [1, 1]
    assert sum(loss_mask(prompt, completion, "specforge")) == 2 + prefill


@given(IDS, IDS, st.sampled_from(["specforge", "speculators"]))
def test_a_mask_is_as_long_as_its_row_and_supervises_all_that_was_written(
    prompt: list[int], completion: list[int], rule: str
) -> None:
    mask = loss_mask(prompt, completion, rule)  # type: ignore[arg-type]  # sampled, not literal
    assert len(mask) == len(prompt) + len(completion)
    assert mask == sorted(mask)
    assert mask[len(prompt) :] == [1] * len(completion)
