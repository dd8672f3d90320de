"""How long the server asks us to wait, from wherever it says so.

The first of: header, `metadata.retry_after_seconds`, `metadata.headers`, `availability.retry_after`
(facts/openrouter.md §3). Absolute times are turned into seconds with the reply's own `Date`, so
that neither our clock nor its skew matters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

LONGEST_S = 7 * 86400.0
"""A longer wait than a week is a broken number."""
_EPOCH_MS = 1e12
"""Smaller numbers in X-RateLimit-Reset are another server's seconds."""


def retry_after_s(
    headers: Mapping[str, str],
    metadata: Mapping[str, Any],
    availability: Mapping[str, Any],
) -> float | None:
    """Seconds to wait, from 0 to a week; None where the server names none."""
    inner = metadata.get("headers")
    echoed = inner if isinstance(inner, dict) else {}
    for value in (
        _from_headers(headers, headers),
        _seconds(metadata.get("retry_after_seconds")),
        _seconds(metadata.get("retry_after_seconds_raw")),
        _from_headers(echoed, headers),
        _seconds(availability.get("retry_after")),
        _until(header(echoed, "x-ratelimit-reset"), headers),
        _until(header(headers, "x-ratelimit-reset"), headers),
    ):
        if value is not None:
            return value
    return None


def header(headers: Mapping[str, Any], name: str) -> str | None:
    """One header whatever its case; `name` in lower case."""
    value = headers.get(name)
    if value is None and isinstance(headers, dict):  # httpx.Headers ignores case by itself
        for key, candidate in headers.items():
            if isinstance(key, str) and key.lower() == name:
                value = candidate
                break
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value) if abs(value) < 1e300 else None  # noqa: PLR2004 - beyond a float's str
    return value if isinstance(value, str) else None


def _from_headers(headers: Mapping[str, Any], dated: Mapping[str, str]) -> float | None:
    milliseconds = _seconds(header(headers, "retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = header(headers, "retry-after")
    if value is None:
        return None
    seconds = _seconds(value)
    if seconds is not None:
        return seconds
    until, now = _http_date(value), _http_date(header(dated, "date"))
    return None if until is None or now is None else _seconds(max(0.0, until - now))


def _until(value: str | None, headers: Mapping[str, str]) -> float | None:
    """OpenRouter's X-RateLimit-Reset: milliseconds since the epoch."""
    reset = _number(value)
    now = _http_date(header(headers, "date"))
    if reset is None or now is None or reset < _EPOCH_MS:
        return None
    return _seconds(max(0.0, reset / 1000 - now))


def _seconds(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= LONGEST_S else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and len(value) > 40:  # noqa: PLR2004 - no number is so long
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _http_date(value: str | None) -> float | None:
    if value is None:
        return None
    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
