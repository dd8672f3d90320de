"""Reads error bodies of every known shape into one record of their signs.

Shapes (facts/openrouter.md §3 and §7): OpenRouter's `{"error":{code,message,metadata}}`, its
availability form (`http_status`, `error_type`, `availability`), Zod's, vLLM's nested and flat ones,
SGLang's flat one, a bare string, FastAPI's `detail`, and error pages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.faults.retry_hints import retry_after_s
from engine.safe_text import label, safe_words

_UPSTREAM = re.compile(r"upstream error from ([^:]{1,60}):", re.IGNORECASE)
_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]{0,200}>")
_CODES = range(300, 600)


@dataclass(frozen=True, slots=True)
class ErrorSigns:
    """What an error body tells, before it is judged. `text` and `names` are in lower case."""

    message: str = ""
    text: str = ""
    """Message, raw upstream words, reasons and routing step together."""
    code: int | None = None
    error_type: str = ""
    names: tuple[str, ...] = ()
    """String codes and `type`, most specific first."""
    limit_source: str = ""
    reason: str = ""
    step: str = ""
    """`failed_routing_step`."""
    provider: str | None = None
    names_no_provider: bool = False
    """The body has a `provider_name`, and it is null: the router itself speaks."""
    flagged: bool = False
    """Moderation or a guardrail names what it found."""
    retryable: bool | None = None
    """`availability.retryable`."""
    retry_after_s: float | None = None
    page: bool = field(default=False)
    """The body is no JSON."""

    @property
    def upstream(self) -> bool:
        """The words are the provider's own, passed on by the router."""
        return self.text.startswith(("provider returned error", "upstream error"))


def read_error(body: object, headers: Mapping[str, str]) -> ErrorSigns:
    """The signs of a parsed error body, whole (`{"error": ...}`) or the error object alone."""
    error = _error_object(body)
    metadata = _dict(error, "metadata")
    availability = _dict(error, "availability") or _dict(metadata, "availability")
    message = _message(error)
    step = _lower(metadata.get("failed_routing_step"))
    parts = (message, *_details(metadata))
    words = safe_words(": ".join(part for part in parts if part))
    return ErrorSigns(
        message=words,
        text=" ".join(part for part in parts if part)[:4000].lower(),
        code=_code(error),
        error_type=_lower(metadata.get("error_type") or error.get("error_type")),
        names=_names(error, availability),
        limit_source=_lower(metadata.get("limit_source") or error.get("limit_source")),
        reason=_lower(metadata.get("reason") or error.get("reason")),
        step=step,
        provider=label(metadata.get("provider_name"), 80) or _named_in(message),
        names_no_provider="provider_name" in metadata and metadata["provider_name"] is None,
        flagged=any(metadata.get(key) for key in ("reasons", "flagged_input", "patterns")),
        retryable=_bool(availability.get("retryable")),
        retry_after_s=retry_after_s(headers, metadata, availability),
    )


def read_page(text: str, headers: Mapping[str, str]) -> ErrorSigns:
    """The signs of a body that is no JSON: an error page or a plain sentence."""
    title = _TITLE.search(text[:20_000])
    plain = title.group(1) if title else _TAG.sub(" ", text[:4000])
    return ErrorSigns(
        message=safe_words(plain),
        text=text[:20_000].lower(),
        retry_after_s=retry_after_s(headers, {}, {}),
        page=True,
    )


def _error_object(body: object) -> Mapping[str, Any]:
    inner: object = body
    if isinstance(body, dict):
        inner = body.get("error") or _first(body.get("errors")) or body
    if isinstance(inner, dict):
        return inner
    return {"message": inner} if isinstance(inner, str) else {}


def _message(error: Mapping[str, Any]) -> str:
    for key in ("message", "detail", "msg", "error_description", "title"):
        value = error.get(key)
        if isinstance(value, str) and value.strip():
            return value
        first = _first(value)
        if isinstance(first, dict) and isinstance(first.get("msg"), str):  # FastAPI's 422
            return str(first["msg"])
    return ""


def _details(metadata: Mapping[str, Any]) -> list[str]:
    """The parts of the metadata that say more than the message does."""
    reasons = metadata.get("reasons") or metadata.get("patterns")
    listed = reasons if isinstance(reasons, list) else []
    found = ", ".join(reason for reason in listed if isinstance(reason, str))
    values = (metadata.get("raw"), found, metadata.get("failed_routing_step"))
    return [value for value in values if isinstance(value, str)]


def _code(error: Mapping[str, Any]) -> int | None:
    """The first number that is an HTTP error code; SGLang writes it as the `type` ("503")."""
    for key in ("code", "http_status", "status", "type"):
        value = error.get(key)
        if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:  # noqa: PLR2004 - HTTP codes have three digits
            value = int(value)
        if type(value) is int and value in _CODES:
            return value
    return None


def _names(error: Mapping[str, Any], availability: Mapping[str, Any]) -> tuple[str, ...]:
    values = (error.get("code"), availability.get("code"), error.get("type"), error.get("name"))
    return tuple(_lower(value) for value in values if isinstance(value, str))


def _named_in(message: str) -> str | None:
    found = _UPSTREAM.match(message)
    return label(found.group(1), 80) if found else None


def _dict(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, dict) else {}


def _first(value: object) -> object:
    return value[0] if isinstance(value, list) and value else None


def _lower(value: object) -> str:
    return value[:100].lower() if isinstance(value, str) else ""


def _bool(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
