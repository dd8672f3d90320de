"""What each trainer reads: a small pure function for each, from an example to a record.

Sources: facts/training-formats.md, and the trainers' own readers as of August 2026
(sgl-project/SpecForge, vllm-project/speculators, torchspec-project/TorchSpec,
NVIDIA/Model-Optimizer, SafeAILab/EAGLE, Tencent/AngelSlim, NVIDIA-NeMo/Automodel).
"""

from __future__ import annotations

import json
from typing import Any

from engine.export.example import Example, LeftOutError
from engine.export.openai import openai_messages
from engine.export.turns import (
    explicit_turns,
    plain_turns,
    replayed_by_torchspec,
    replayed_verbatim,
)
from engine.tokens.mask import MaskRule, loss_mask

Record = dict[str, Any]


def specforge(example: Example, max_length: int | None) -> Record:
    """SpecForge, pre-tokenized: the thinking tags that end the prompt are supervised too."""
    return _tokens(example, "specforge", max_length)


def speculators(example: Example, max_length: int | None) -> Record:
    """For speculators' `prepare_data.py`: only the completion is supervised."""
    return _tokens(example, "speculators", max_length)


def specforge_text(example: Example, max_length: int | None) -> Record:
    """SpecForge with `is_preformatted`: the text as the model read and wrote it."""
    _within(example, max_length)
    if example.text is None:
        raise LeftOutError("no_prompt")
    return {"id": example.id, "text": example.text}


def torchspec(example: Example, max_length: int | None) -> Record:
    """TorchSpec's `kimi-k25-vlm`: reasoning inline; the parser adds empty thoughts by itself."""
    _within(example, max_length)
    turns = [*explicit_turns(example), _answer(example)]
    _replays(example, replayed_by_torchspec(turns))
    return {"id": example.id, "conversations": turns}


def modelopt(example: Example, max_length: int | None) -> Record:
    """Model-Optimizer: the id becomes a file's name there."""
    _within(example, max_length)
    turns = [*explicit_turns(example), _answer(example)]
    _replays(example, replayed_verbatim(turns))
    name = example.id.replace("/", "__").replace("#", "-")
    return {"conversation_id": name, "messages": turns, "conversations": turns}


def eagle(example: Example, max_length: int | None) -> Record:
    """EAGLE: one row that does not alternate, or a system message, ends its run."""
    _within(example, max_length)
    names = {"user": "human", "assistant": "gpt"}
    turns = [*plain_turns(example, systems=False), _answer(example)]
    told = [{"from": names[turn["role"]], "value": turn["content"]} for turn in turns]
    return {"id": example.id, "conversations": told}


def angelslim(example: Example, max_length: int | None) -> Record:
    """AngelSlim: it strips every message, and drops those that are blank."""
    _within(example, max_length)
    turns = [*plain_turns(example, systems=True), _answer(example)]
    if not all(turn["content"].strip() for turn in turns):
        raise LeftOutError("blank_message")
    return {"id": example.id, "conversations": turns}


def automodel(example: Example, max_length: int | None) -> Record:
    """NeMo Automodel: OpenAI messages; tools as JSON, which it parses."""
    _within(example, max_length)
    return {
        "id": example.id,
        "messages": openai_messages(example),
        "tools": json.dumps(example.row.get("tools") or [], ensure_ascii=False),
    }


def parquet(example: Example, max_length: int | None) -> Record:
    """Automodel's columns, and everything else that a row is: ids, mask, where it comes from."""
    record = automodel(example, max_length)
    ids: Record = {"input_ids": None, "loss_mask": None}
    if example.tokens is not None:
        ids = _tokens(example, "speculators", None)
    row = example.row
    facts = {key: row[key] for key in ("dataset", "index", "turn", "provider", "finish_reason")}
    return record | ids | facts | {"exactness": example.exactness, "flags": row["flags"]}


def _tokens(example: Example, rule: MaskRule, max_length: int | None) -> Record:
    prompt, completion = example.prompt_ids, example.completion_ids
    if prompt is None or completion is None:
        raise LeftOutError("no_ids")
    ids, mask = [*prompt, *completion], loss_mask(prompt, completion, rule)
    if max_length is not None:
        ids, mask = ids[:max_length], mask[:max_length]
    if not completion or 1 not in mask:
        raise LeftOutError("zero_mask")
    return {"input_ids": ids, "loss_mask": mask}


def _within(example: Example, max_length: int | None) -> None:
    """A conversation cannot be cut: the longer ones stay out."""
    if max_length is None:
        return
    if example.tokens is None:
        raise LeftOutError("no_ids")
    if example.tokens > max_length:
        raise LeftOutError("too_long")


def _answer(example: Example) -> dict[str, str]:
    return {"role": "assistant", "content": example.written.inline}


def _replays(example: Example, text: str) -> None:
    """Leave a row out that the trainer would render to another text than the model's."""
    if example.text is not None and text != example.text:
        raise LeftOutError("renders_otherwise")
