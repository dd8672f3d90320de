"""A Snapshot as JSON and back: what control.sock sends to the screens of other processes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

import orjson
from pydantic import TypeAdapter

from engine.view.frame import status
from engine.view.snapshot import Snapshot


def to_line(snapshot: Snapshot) -> bytes:
    """One JSON line: status.json's object, and under `screen` everything that the screens draw.

    A lone surrogate in a server's words becomes a question mark.
    """
    record: dict[str, Any] = {**status(snapshot), "screen": snapshot}
    try:
        return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        record["screen"] = asdict(snapshot)
        return (json.dumps(record, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def from_wire(record: Mapping[str, Any]) -> Snapshot:
    """The snapshot that `to_line` was given. Fields that this version does not know are left out.

    Raises KeyError or ValueError where the record is none of ours.
    """
    return _adapter().validate_python(record["screen"])


@cache
def _adapter() -> TypeAdapter[Snapshot]:
    return TypeAdapter(Snapshot)
