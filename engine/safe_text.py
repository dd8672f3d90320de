"""Makes words from outside harmless on a terminal and in a log."""

from __future__ import annotations

import re

_SECRET = re.compile(r"\b(sk-|key-|Bearer\s+|eyJ)[A-Za-z0-9_.~+/*-]{6,}={0,2}", re.IGNORECASE)
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def safe_words(text: str, limit: int = 500) -> str:
    """`text` on one line of at most `limit` printable characters, without what looks like a key.

    Servers echo keys in their refusals ("Incorrect API key provided: sk-..."), and terminal
    escapes and bidirectional marks in them would reach the operator's screen.
    """
    words = " ".join(text[: limit * 4].split())
    if not words.isprintable():
        words = "".join(c if c.isprintable() else REPLACEMENT for c in words)
    words = _SECRET.sub(r"\1***", words)
    return words if len(words) <= limit else words[: limit - 1] + "…"


def label(value: object, limit: int = 200) -> str | None:
    """A short name from outside (an id, a provider, a model), or None where there is none."""
    if not isinstance(value, str):
        return None
    if len(value) <= limit and value.isprintable():
        return value.strip() or None
    return safe_words(value, limit) or None
