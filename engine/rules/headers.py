"""Request headers of a manifest: well-formed, no secret, and none that the client itself sets.

Names and values: RFC 9110 §5.1 and §5.5 (a field's value outside ASCII is obsolete, and the HTTP
client refuses it). No message repeats a value: it may be a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from engine.rules.problem import Problem
from engine.rules.secrets import is_secret

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "x-openrouter-cache",
        "x-openrouter-cache-clear",
        "x-openrouter-cache-ttl",
    }
)
"""What the request itself decides; another value would break it, or pay for what is not read."""


def header_problems(headers: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with each header."""
    seen: dict[str, str] = {}
    for name, value in headers.items():
        words = _name_fault(name) or _value_fault(name, value)
        first = seen.setdefault(name.lower(), name)
        if not words and first != name:
            words = f"{first} and {name} are one header: case does not count; keep one of them"
        if words:
            yield Problem((name,), words)


def _name_fault(name: str) -> str:
    if not name:
        return "a header needs a name"
    if not _NAME.fullmatch(name):
        return "is no header name: letters, digits and '-', without blanks or colons"
    if name.lower() in _OURS:
        return "is set by eaglegen-tui itself; take it out"
    return ""


def _value_fault(name: str, value: str) -> str:
    if is_secret(name, value):
        return (
            "would put a key into run.json; set EAGLEGEN_API_KEY "
            "(or OPENROUTER_API_KEY) in the environment or .env"
        )
    if "\r" in value or "\n" in value:
        return "the value holds a line break; write it in one line"
    if not value.isascii():
        return "the value holds characters outside ASCII; headers cannot, write them as %C3%A9 etc."
    if not value.replace("\t", " ").isprintable():
        return "the value holds a control character"
    return "the value begins or ends with a blank" if value != value.strip() else ""
