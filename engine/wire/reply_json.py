"""Parses reply bodies; a paid reply with broken characters or numbers is kept as far as readable.

Every string that comes out can be encoded as UTF-8 and every number serialised: invalid bytes and
lone surrogates become U+FFFD (which is never graded `matched`), too large integers become floats.
"""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair: left alone
    r"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    r"|\\."  # any other escape, so that \\ud800 is not taken for one
)
_SAFE_DIGITS = 18


def load(body: bytes) -> Any:
    """The document in `body`; raises ValueError where there is none to be read."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return _load_damaged(body)


def can_serialise(value: object) -> bool:
    """Whether the row writer can write this (orjson stops at 254 levels of nesting)."""
    try:
        orjson.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _load_damaged(body: bytes) -> Any:
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    mended = _ESCAPE.sub(lambda found: r"\ufffd" if found.group(1) else found.group(), text)
    try:
        return json.loads(
            mended,
            strict=False,  # raw control characters in strings: some hosts do not escape them
            parse_int=_int,
        )
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _int(digits: str) -> int | float:
    return int(digits) if len(digits) <= _SAFE_DIGITS else float(digits)
