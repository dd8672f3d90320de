"""What kind of answer a prompt wants, guessed from its last user message."""

from __future__ import annotations

import re
from typing import Any

_SCRIPTS = (
    (re.compile(r"[\u3040-\u30ff]"), "ja"),
    (re.compile(r"[\uac00-\ud7af]"), "ko"),
    (re.compile(r"[\u4e00-\u9fff]"), "zh"),
    (re.compile(r"[\u0400-\u04ff]"), "ru"),
    (re.compile(r"[\u0600-\u06ff]"), "ar"),
)
_HINTS = (
    (
        re.compile(
            r"\b(?:der|die|und|nicht|ein|eine|ist|wie)\b(?:.*\b(?:der|das|und|ist|für|ich|ein)\b)"
        ),
        "de",
    ),
    (re.compile(r"\b(?:le|la|les|des|est|une|pour)\b.*\b(?:le|les|des|est|une|dans|que)\b"), "fr"),
    (re.compile(r"[¿¡]|\b(?:el|los|una|para)\b.*\b(?:el|los|una|por|que|como)\b"), "es"),
    (re.compile(r"\b(?:def|function|code|python|sql|javascript|rust|bug|regex|compile)\b"), "code"),
    (
        re.compile(
            r"\b(?:how many|how much|calculate|solve|sum of|percent|probability|equation)\b"
        ),
        "maths",
    ),
    (re.compile(r"\bsummar(?:y|i[sz]e)\b"), "summary"),
)
_LOOK = 2000
"""Characters that are looked at: a guess needs no more, and long prompts are frequent."""


def text_of(content: Any) -> str:
    """Return the text of a message's content: a string, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    return ""


def last_user_text(messages: list[Any]) -> str:
    """Return the text of the last message of the user, or an empty string."""
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "user":
            return text_of(message.get("content"))
    return ""


def kind_of(text: str) -> str:
    """Return the kind of paragraph (see `phrases.toml`) that answers this text."""
    head = text[:_LOOK]
    if not head.isascii():
        for script, kind in _SCRIPTS:
            if script.search(head):
                return kind
    head = head.lower().replace("\n", " ")
    return next((kind for hint, kind in _HINTS if hint.search(head)), "prose")
