"""What looks like a key: it must not stand where files and screens repeat it."""

from __future__ import annotations

import re

SECRET_VALUE = re.compile(r"(?i)\b(?:bearer|basic)\s|(?<![a-z])sk-")
_SECRET_WORDS = frozenset(
    {"authorization", "auth", "key", "apikey", "token", "secret", "password", "cookie"}
)


def is_secret(name: str, value: str) -> bool:
    """Whether a header of this name, or this value, would hold a key."""
    words = re.split(r"[^a-z]+", name.lower())
    return not _SECRET_WORDS.isdisjoint(words) or bool(SECRET_VALUE.search(value))
