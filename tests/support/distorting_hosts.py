"""Hosts that distort what a model sampled, each in its own way, with the truth beside it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kimi_cases import vocabulary

from engine.tokens import kimi
from engine.tokens.pieces import split

SENTENCES = (
    "The user asks for the sum of 12 and 345.",
    "First, divide both sides by 3",
    "So the answer is $48/2 = 24$ clips",
    "Let me check: 7 * 6 = 42.",
    "`for i in range(10):`",
    "Here is **bold** text!",
    "\u8bf7\u89e3\u91ca\u6295\u673a\u89e3\u7801\uff0c\u5e76\u4e3e\u4f8b\u8bf4\u660e\u3002",
    "2. Wash the dishes",
    "caf\u00e9 na\u00efve \u2014 done",
    "```\nprint(1)\n```",
)
SECTION = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.get:{}<|tool_call_argument_begin|>"
    '{{"city": "Oslo"}}<|tool_call_end|><|tool_calls_section_end|>'
)


@dataclass(frozen=True, slots=True)
class Host:
    """How a host gives back what was sampled."""

    name: str
    spaced: bool = False
    streamed: bool = False
    trims: bool = False
    inline: bool = False
    counts_end: bool = True


SIX = (
    Host("verbatim"),
    Host("spaced", spaced=True),
    Host("streamed", spaced=True, streamed=True),
    Host("trimmed", trims=True),
    Host("inline", inline=True),
    Host("uncounted", counts_end=False),
)


def rows(
    hosts: tuple[Host, ...], number: int, *, seed: int = 1, habit: float = 0.03, split_share: float
) -> Iterator[tuple[dict[str, Any], list[int]]]:
    """Rows (the part that grading reads) and the ids that were sampled.

    `habit`: how often the model writes a newline at each edge; `split_share`: in which share of
    rows it samples one token as two.
    """
    rng = random.Random(seed)
    for index in range(number):
        host = hosts[index % len(hosts)]
        text, cut = _sampled(rng, habit)
        ids = vocabulary().encode(text)
        if rng.random() < split_share:
            _split_one(rng, ids)
        ids += [] if cut else [kimi.IM_END]
        yield _row(host, text, ids, cut=cut), ids


def _sampled(rng: random.Random, habit: float) -> tuple[str, bool]:
    def prose() -> str:
        return " ".join(rng.choices(SENTENCES, k=rng.randint(2, 6)))

    def newline(text: str) -> str:
        return text if rng.random() < habit else ""

    reasoning = prose() + newline("\n")
    content = newline("\n\n") + prose() + newline("\n")
    section = SECTION.format(rng.randint(0, 9)) if rng.random() < 0.1 else ""
    closing = "" if section and rng.random() < 0.2 else "</think>"
    if not closing or (section and rng.random() < 0.5):
        content = ""
    return reasoning + closing + content + section, rng.random() < 0.03


def _split_one(rng: random.Random, ids: list[int]) -> None:
    for _ in range(100):
        place = rng.randrange(len(ids))
        text = vocabulary().decode_bytes([ids[place]])
        if ids[place] >= kimi.N_RANKS or len(text) < 2 or not text.isascii():
            continue
        cut = rng.randint(1, len(text) - 1)
        halves = [vocabulary().encode_plain(part.decode()) for part in (text[:cut], text[cut:])]
        ids[place : place + 1] = [*halves[0], *halves[1]]
        return


def _row(host: Host, text: str, ids: list[int], *, cut: bool) -> dict[str, Any]:
    parts = [part for part in split(text) if part]
    shown = " " + " ".join(parts) if host.spaced else text
    reasoning, content = _fields(host, shown)
    if host.streamed and reasoning is not None and "</think>" in shown:
        reasoning = reasoning.removesuffix(" ")
    if host.trims:
        reasoning, content = reasoning and reasoning.strip(), content.strip()
    return {
        "provider": host.name,
        "reasoning": reasoning,
        "content": content,
        "finish_reason": "length" if cut else "stop",
        "usage": {"completion_tokens": len(ids) - (not host.counts_end and not cut)},
        "messages": [],
    }


def _trimmed_parts(shown: str) -> str:
    """Some hosts trim the fields before they put them together."""
    return "</think>".join(part.strip() for part in shown.split("</think>"))


def _fields(host: Host, shown: str) -> tuple[str | None, str]:
    if host.inline:
        return None, _trimmed_parts(shown) if host.trims else shown
    if "</think>" in shown:
        reasoning, _, content = shown.partition("</think>")
        return reasoning, content
    begin = shown.find("<|tool_calls_section_begin|>")
    return shown[:begin], shown[begin:]
