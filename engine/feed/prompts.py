"""A source row becomes a Prompt: normalised messages, tools, content hash, and its turns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from engine.manifest import Turns

Message = dict[str, Any]

_ROLES = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "chatgpt": "assistant",
    "bard": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
}
_GIVEN = ("name", "tool_calls", "tool_call_id")


class Counts(Protocol):
    """How often each prompt was met: a dictionary does, or something smaller."""

    def get(self, key: bytes, default: int, /) -> int:
        """The count of a prompt's first 8 bytes of hash."""
        ...

    def __setitem__(self, key: bytes, count: int, /) -> None: ...


class RowError(Exception):
    """A row that cannot be a prompt; the text says why, for failures.jsonl and the screen."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """One source row, ready to be asked. `key` (hash16.occurrence) survives any reordering."""

    dataset: str
    index: int
    key: str
    hash: str
    messages: tuple[Message, ...]
    tools: list[Any] | None
    mode: Turns
    turns: tuple[int, ...]
    """The numbers of the user turns to answer, in order."""

    def id(self, turn: int) -> str:
        """The resume key of one generation (DESIGN §6)."""
        return f"{self.dataset}/{self.key}#{turn}"


@dataclass(frozen=True, slots=True)
class InvalidRow:
    """A source row that could not be read: where it is, and why."""

    dataset: str
    index: int
    line: int
    reason: str


def normalise(row: Any) -> tuple[list[Message], list[Any] | None]:
    """Messages and tools of one row in any accepted form (DESIGN §4); raises RowError."""
    if not isinstance(row, Mapping):
        raise RowError(f"the row is {_kind(row)}, not an object")
    messages = _messages(row)
    system = row.get("system")
    if isinstance(system, str) and system and not (messages and messages[0]["role"] == "system"):
        messages.insert(0, {"role": "system", "content": system})
    if not any(message["role"] == "user" for message in messages):
        raise RowError("no user message")
    return messages, _tools(row.get("tools"))


def make_prompt(row: Any, *, dataset: str, index: int, turns: Turns, occurrences: Counts) -> Prompt:
    """Normalise a row and number its exact doubles (`occurrences` is updated)."""
    messages, tools = normalise(row)
    digest = prompt_hash(messages, tools)
    short = bytes.fromhex(digest[:16])
    occurrence = occurrences.get(short, 0)
    occurrences[short] = occurrence + 1
    mode: Turns = "last" if any(m["role"] == "tool" for m in messages) else turns
    users = sum(message["role"] == "user" for message in messages)
    numbers = {"all": range(users), "first": range(1), "last": range(users - 1, users)}[mode]
    return Prompt(
        dataset=dataset,
        index=index,
        key=f"{digest[:16]}.{occurrence}",
        hash=digest,
        messages=tuple(messages),
        tools=tools,
        mode=mode,
        turns=tuple(numbers),
    )


def prompt_hash(messages: Sequence[Message], tools: list[Any] | None) -> str:
    """sha256 over the canonical JSON of all normalised messages and tools (DESIGN §6)."""
    text = json.dumps(
        {"messages": list(messages), "tools": tools},
        ensure_ascii=False,
        sort_keys=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def served_messages(prompt: Prompt, turn: int, answers: Sequence[str]) -> list[Message]:
    """What the model is given for one turn.

    `answers` are our own earlier contents, used by `all` only; `last` keeps the source's own
    history, and an open tool chain at the source's end stays open.
    """
    if prompt.mode == "last":
        return _history(prompt.messages)
    served: list[Message] = []
    asked = 0
    for message in prompt.messages:
        if message["role"] == "assistant" and asked:
            continue
        served.append(message)
        if message["role"] == "user":
            asked += 1
            if asked > turn:
                break
            served.append({"role": "assistant", "content": answers[asked - 1]})
    return served


def _history(messages: Sequence[Message]) -> list[Message]:
    if messages[-1]["role"] == "tool":
        return list(messages)
    last = max(i for i, message in enumerate(messages) if message["role"] == "user")
    return list(messages[: last + 1])


def _messages(row: Mapping[str, Any]) -> list[Message]:
    for key in ("messages", "conversations", "prompt"):  # some sets keep a chat under "prompt"
        if isinstance(row.get(key), list):
            return [_message(item) for item in row[key]]
    if isinstance(row.get("turns"), list):
        return [{"role": "user", "content": _text(turn, "a turn")} for turn in row["turns"]]
    for key in ("prompt", "question"):
        if row.get(key) is not None:
            return [{"role": "user", "content": _text(row[key], key)}]
    if row.get("instruction") is not None:
        return [{"role": "user", "content": _instruction(row)}]
    raise _no_prompt(row)


def _no_prompt(row: Mapping[str, Any]) -> RowError:
    for key in ("messages", "conversations", "turns"):
        if row.get(key) is not None:
            return RowError(f"{key} is {_kind(row[key])}, not a list")
    known = "messages, conversations, turns, prompt, question, instruction"
    return RowError(f"none of {known} is in the row")


def _instruction(row: Mapping[str, Any]) -> str:
    text = _text(row["instruction"], "instruction")
    extra = row.get("input")
    return f"{text}\n\n{extra}" if isinstance(extra, str) and extra.strip() else text


def _message(item: Any) -> Message:
    if not isinstance(item, Mapping):
        raise RowError(f"a message is {_kind(item)}, not an object")
    said = item.get("role", item.get("from"))
    role = _ROLES.get(said.lower()) if isinstance(said, str) else None
    if role is None:
        raise RowError(f"unknown role {said!r}"[:120])
    content = _content(item.get("content", item.get("value")), role, item)
    message: Message = {"role": role, "content": content}
    for key in _GIVEN:
        if item.get(key) is not None:
            message[key] = item[key]
    reasoning = item.get("reasoning_content", item.get("reasoning"))
    if role == "assistant" and isinstance(reasoning, str):
        message["reasoning_content"] = reasoning
    return message


def _content(value: Any, role: str, item: Mapping[str, Any]) -> str | None:
    if isinstance(value, list):
        value = "".join(_part(part) for part in value)
    if value is None and role == "assistant" and item.get("tool_calls"):
        return None
    if not isinstance(value, str):
        raise RowError(f"the content of a {role} message is {_kind(value)}, not text")
    if role == "user" and not value.strip():
        raise RowError("a user message is empty")
    return value


def _part(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and part.get("type", "text") == "text":
        return _text(part.get("text"), "a content part")
    kind = part.get("type") if isinstance(part, Mapping) else _kind(part)
    raise RowError(f"content part {kind!r} is not text; images are not supported yet")


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise RowError(f"{what} is {_kind(value)}, not text")
    if not value.strip():
        raise RowError(f"{what} is empty")
    return value


def _tools(value: Any) -> list[Any] | None:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else None
        except ValueError as error:
            raise RowError(f"tools is not valid JSON: {error}") from None
    if value is None or value == []:
        return None
    if not isinstance(value, list) or not all(isinstance(tool, Mapping) for tool in value):
        raise RowError("tools is not a list of objects")
    return [_tool(tool) for tool in value]


def _tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    if "function" in tool or "name" not in tool:
        return tool
    return {"type": "function", "function": dict(tool)}


def _kind(value: Any) -> str:
    names = {type(None): "null", str: "text", bool: "a boolean", list: "a list", dict: "an object"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else "unreadable")
