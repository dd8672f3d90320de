"""The constants of the Kimi K2 family: vocabulary, special tokens, default texts.

Source: the published tokenizer of moonshotai/Kimi-K2.5 at the pinned revision. The same ranks
serve Kimi-K2-Instruct, K2-Thinking, K2.5 and K2.6.
"""

from __future__ import annotations

from typing import Final

REPOSITORY: Final = "moonshotai/Kimi-K2.5"
REVISION: Final = "4d01dfe0332d63057c186e0b262165819efb6611"
VOCABULARY_FILE: Final = "tiktoken.model"
VOCABULARY_SHA256: Final = "b6c497a7469b33ced9c38afb1ad6e47f03f5e5dc05f15930799210ec050c5103"
VOCABULARY_BYTES: Final = 2_795_286

N_RANKS: Final = 163_584
N_RESERVED: Final = 256
N_VOCAB: Final = N_RANKS + N_RESERVED

_UPPER: Final = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_LOWER: Final = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
_BEFORE: Final = r"[^\r\n\p{L}\p{N}]?"
_SUFFIX: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
_PIECES: Final[tuple[str, ...]] = (
    r"[\p{Han}]+",
    f"{_BEFORE}{_UPPER}*{_LOWER}+{_SUFFIX}",
    f"{_BEFORE}{_UPPER}+{_LOWER}*{_SUFFIX}",
    r"\p{N}{1,3}",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
)
PATTERN: Final = "|".join(_PIECES)
"""The pre-tokenizer's pattern in the syntax of Rust's fancy-regex (`pat_str` of the model)."""

MAX_ENCODE_CHARS: Final = 400_000
"""Longer texts are cut here before encoding, as the model's own tokenizer does."""
MAX_RUN_CHARS: Final = 25_000
"""Longer runs of whitespace or of non-whitespace are cut here (openai/tiktoken#195)."""

IM_END: Final = 163_586
THINK: Final = 163_606
END_THINK: Final = 163_607

NAMED_SPECIALS: Final[dict[int, str]] = {
    163_584: "[BOS]",
    163_585: "[EOS]",
    IM_END: "<|im_end|>",
    163_587: "<|im_user|>",
    163_588: "<|im_assistant|>",
    163_590: "<|start_header_id|>",
    163_591: "<|end_header_id|>",
    163_593: "[EOT]",
    163_594: "<|im_system|>",
    163_595: "<|tool_calls_section_begin|>",
    163_596: "<|tool_calls_section_end|>",
    163_597: "<|tool_call_begin|>",
    163_598: "<|tool_call_argument_begin|>",
    163_599: "<|tool_call_end|>",
    163_601: "<|im_middle|>",
    163_602: "<|media_begin|>",
    163_603: "<|media_content|>",
    163_604: "<|media_end|>",
    163_605: "<|media_pad|>",
    THINK: "<think>",
    END_THINK: "</think>",
    163_838: "[UNK]",
    163_839: "[PAD]",
}

ADDED_IDS: Final[tuple[int, ...]] = (*range(163_595, 163_600), THINK, END_THINK)
"""Tokens not marked special: they survive `skip_special_tokens` and reach us as text."""

DEFAULT_SYSTEM_PROMPT: Final = "You are Kimi, an AI assistant created by Moonshot AI."
"""Injected by K2-Thinking always, by the K2.5 launch revision too: 18 prompt tokens."""

KIMI_K25: Final = "kimi-k2.5"
KIMI_K26: Final = "kimi-k2.6"
KIMI_K2_THINKING: Final = "kimi-k2-thinking"
VARIANTS: Final[tuple[str, ...]] = (KIMI_K25, KIMI_K26, KIMI_K2_THINKING)


def special_tokens() -> dict[str, int]:
    """All 256 reserved tokens, text to id; the unnamed ones carry their id in the text."""
    return {
        NAMED_SPECIALS.get(token, f"<|reserved_token_{token}|>"): token
        for token in range(N_RANKS, N_VOCAB)
    }
