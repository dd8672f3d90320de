"""Ids that a server returned with its text: whether they decode to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engine.tokens import kimi
from engine.tokens.layouts import Answer, layouts
from engine.tokens.pieces import split

Decode = Callable[[Sequence[int]], str]

_ENDS = frozenset({kimi.IM_END, 163_585})
_ADDED = frozenset(kimi.ADDED_IDS)


def ids_decode_to_text(
    ids: Sequence[int], answer: Answer, decode: Decode, *, thinking: bool, variant: str
) -> bool:
    """Whether the ids are those of the answer's text, whitespace at piece edges aside.

    Engines put spaces around added tokens, hosts trim fields, and both leave special tokens out
    of the text: none of this makes the ids wrong. An id that the vocabulary does not have does.
    """
    if ids and (min(ids) < 0 or max(ids) >= kimi.N_VOCAB):
        return False
    shown = [token for token in ids if token < kimi.N_RANKS or token in _ADDED]
    native = _stripped(decode(shown))
    options = layouts(answer, thinking=thinking, variant=variant)
    if any(_stripped(option.text) == native for option in options):
        return True
    # The model may have typed a special token's characters, or the host may show the token.
    whole = _stripped(decode(_without_end(ids)))
    return any(_stripped(option.text) == whole for option in options)


def with_final_end(ids: Sequence[int], answer: Answer) -> list[int]:
    """The ids with the final `<|im_end|>`, which some servers leave out of what they return.

    Added only where the count says that one more token was written, or nothing was counted.
    """
    result = list(ids)
    if answer.cut or not result or result[-1] in _ENDS:
        return result
    if answer.completion_tokens in {None, 0, len(result) + 1}:
        result.append(kimi.IM_END)
    return result


def _without_end(ids: Sequence[int]) -> Sequence[int]:
    return ids[:-1] if ids and ids[-1] in _ENDS else ids


def _stripped(text: str) -> list[str]:
    return [part.strip() for part in split(text)]
