"""What a line of a run's files has to be: one door for each kind of record (DESIGN §6).

Each says what is wrong with a JSON value, or nothing where it is a record of its kind; whatever
passed may be read without further thought. Pure and cheap: a resume asks it of every new line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from engine.wire.usage import count, dollars

_NONE: Final = type(None)
_PLACE: Final = re.compile(r"[0-9a-f]{16}\.[0-9]{1,9}#[0-9]{1,6}")
_MOST: Final = 1 << 48
"""Beyond every place in a source and every number of an attempt."""
_YEARS: Final = (1971, 9000)
"""Times that can be moved by a latency or a zone and still be shown."""
_LONGEST_S: Final = 1e8
"""Beyond every latency: three years."""
Types = Mapping[str, tuple[type, ...]]
_ROW: Final[Types] = {
    "id": (str,),
    "prompt_hash": (str, _NONE),
    "dataset": (str,),
    "index": (int,),
    "turn": (int,),
    "messages": (list,),
    "tools": (list, _NONE),
    "reasoning": (str, _NONE),
    "content": (str, _NONE),
    "tool_calls": (list, _NONE),
    "prompt_ids": (list, _NONE),
    "completion_ids": (list, _NONE),
    "exactness": (str,),
    "flags": (list,),
    "finish_reason": (str,),
    "native_finish_reason": (str, _NONE),
    "model": (str, _NONE),
    "provider": (str, _NONE),
    "generation_id": (str, _NONE),
    "usage": (dict,),
    "attempts": (int, _NONE),
    "latency_s": (int, float, _NONE),
}
_MAY_LACK: Final = tuple(name for name, types in _ROW.items() if _NONE in types)
_NUMBERS: Final = ("index", "turn", "attempts")
_COUNTS: Final = ("prompt_tokens", "completion_tokens", "reasoning_tokens")
_SENT: Final[Types] = {"id": (str,), "attempt": (int,), "at": (str,), "ignore": (list, _NONE)}
_ATTEMPT: Final[Types] = {
    "id": (str,),
    "attempt": (int,),
    "family": (str,),
    "provider": (str, _NONE),
    "status": (int, _NONE),
    "message": (str, _NONE),
    "cost": (int, float, _NONE),
    "sent": (bool, _NONE),
    "started_at": (str, _NONE),
    "latency_s": (int, float, _NONE),
}
_FAILURE: Final[Types] = {
    "id": (str, _NONE),
    "index": (int, _NONE),
    "family": (str,),
    "message": (str, _NONE),
    "attempts": (int, _NONE),
    "at": (str, _NONE),
}


class Door(Protocol):
    """Says what is wrong with a JSON value as a record of a dataset; empty where it is one."""

    def __call__(self, record: Any, dataset: str) -> str:
        """What is wrong."""
        ...


def row_problem(record: Any, dataset: str) -> str:
    """Of a line of a dataset's rows.jsonl."""
    if type(record) is not dict:
        return "a line that is no row"
    if wrong := _wrong_type(record, _ROW) or _wrong_number(record, _NUMBERS):
        return f"no row: {wrong}"
    if wrong := _wrong_latency(record):
        return f"no row: {wrong}"
    if wrong := _wrong_id(record["id"], dataset, "row"):
        return wrong
    if wrong := _wrong_parts(record) or _wrong_usage(record["usage"]):
        return f"no row: {wrong}"
    return ""


def filled(row: dict[str, Any]) -> dict[str, Any]:
    """A row that passed, with null for each field that it lacks: unknown is null."""
    for name in _MAY_LACK:
        row.setdefault(name, None)
    return row


def sent_problem(record: Any, dataset: str) -> str:
    """Of a line of sent.jsonl."""
    if wrong := _plain(record, _SENT, dataset, "at"):
        return wrong
    hosts = record.get("ignore") or ()
    return "" if all(type(host) is str for host in hosts) else "no record: ignore names no hosts"


def attempt_problem(record: Any, dataset: str) -> str:
    """Of a line of attempts.jsonl."""
    if wrong := _plain(record, _ATTEMPT, dataset, "started_at"):
        return wrong
    if wrong := _wrong_latency(record):
        return f"no record: {wrong}"
    cost = record.get("cost")
    return "" if cost is None or dollars(cost) is not None else "no record: cost is no amount"


def failure_problem(record: Any, dataset: str) -> str:
    """Of a line of failures.jsonl; an unreadable source row has no id, and says why."""
    wrong = _plain(record, _FAILURE, dataset, "at")
    if wrong or record.get("id") is not None:
        return wrong
    named = record.get("index") is not None and record.get("message") is not None
    return "" if named else "no record: index or message is missing"


def event_problem(record: Any) -> str:
    """Of a line of events.jsonl."""
    return "" if type(record) is dict and type(record.get("kind")) is str else "no journal entry"


def _plain(record: Any, types: Types, dataset: str, moment: str) -> str:
    if type(record) is not dict:
        return "a line that is no record"
    wrong = _wrong_type(record, types) or _wrong_number(record, ("attempt", "attempts", "index"))
    if not wrong and record.get(moment) is not None and not is_moment(record[moment]):
        wrong = f"{moment} is no time"
    if wrong:
        return f"no record: {wrong}"
    return "" if record.get("id") is None else _wrong_id(record["id"], dataset, "record")


def _wrong_type(record: Mapping[str, Any], types: Types) -> str:
    for name, known in types.items():
        if type(record.get(name)) not in known:
            return f"{name} is missing or of a wrong type"
    return ""


def _wrong_number(record: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = record.get(name)
        if value is not None and not 0 <= value < _MOST:
            return f"{name} is no such number"
    return ""


def _wrong_latency(record: Mapping[str, Any]) -> str:
    seconds = record.get("latency_s")
    fits = seconds is None or 0 <= seconds <= _LONGEST_S
    return "" if fits else "latency_s is no such time"


def _wrong_id(identifier: str, dataset: str, what: str) -> str:
    prefix = f"{dataset}/"
    if identifier.startswith(prefix) and _PLACE.fullmatch(identifier, len(prefix)):
        return ""
    place = identifier.rpartition("/")[2]
    if _PLACE.fullmatch(place):
        return f"{identifier[:80]} belongs to another dataset"
    return f"no {what}: {identifier[:80]!r} is no id"


def _wrong_parts(row: Mapping[str, Any]) -> str:
    """What stands inside a row's lists."""
    for message in row["messages"]:
        if type(message) is not dict:
            return "a message is no object"
        if type(message.get("role")) is not str:
            return "a message has no role"
        if type(message.get("content")) not in (str, _NONE):
            return "the content of a message is no text"
    for name in ("prompt_ids", "completion_ids"):
        if row.get(name) and not _all_numbers(row[name]):
            return f"{name} are no numbers"
    return "" if all(type(flag) is str for flag in row["flags"]) else "a flag is no word"


def _all_numbers(values: list[Any]) -> bool:
    try:  # a sum is ten times as fast as a look at each, and a row has thousands
        return type(sum(values)) is int
    except TypeError:
        return False


def _wrong_usage(usage: Mapping[str, Any]) -> str:
    for name in _COUNTS:
        value = usage.get(name)
        if value is not None and count(value) is None:
            return f"usage.{name} is no count"
    cost = usage.get("cost")
    return "" if cost is None or dollars(cost) is not None else "usage.cost is no amount"


def moment(text: Any) -> float:
    """A record's time (ISO 8601) as epoch seconds; raises ValueError where it is none."""
    return datetime.fromisoformat(str(text)).timestamp()


def is_moment(text: str) -> bool:
    """Whether a text is a time of a known zone, ISO 8601."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return False
    return when.tzinfo is not None and _YEARS[0] <= when.year < _YEARS[1]


PROBLEMS: Final[Mapping[str, Door]] = {
    "rows.jsonl": row_problem,
    "attempts.jsonl": attempt_problem,
    "failures.jsonl": failure_problem,
    "sent.jsonl": sent_problem,
}
"""Per file of a dataset what is wrong with a JSON value as a record of that dataset."""
