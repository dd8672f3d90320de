"""The forms in which public prompt sets write a row (DESIGN §4): one function for each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from tui.demo.templates import Conversation, Family

Row = dict[str, Any]


def make_row(
    family: Family, said: Conversation, number: int, schemas: Mapping[str, Mapping[str, Any]]
) -> Row:
    """The row of a source file; `schemas` holds the function schemas by name."""
    row = _FORMS[family.form](family.name, said, number)
    if family.tools:
        tools = [schemas[name] for name in family.tools]
        row["tools"] = json.dumps(tools) if family.tools_as_text else tools
    return row


def _spoken(said: Conversation) -> Iterator[tuple[str, str]]:
    if said.system:
        yield "system", said.system
    for turn, reply in zip_longest(said.turns, said.replies):
        yield "user", turn
        if reply:
            yield "assistant", reply


def _messages(name: str, said: Conversation, number: int) -> Row:
    messages = [{"role": role, "content": text} for role, text in _spoken(said)]
    return {"id": f"{name}-{number:05}", "messages": messages}


def _conversations(name: str, said: Conversation, number: int) -> Row:
    names = {"system": "system", "user": "human", "assistant": "gpt"}
    spoken = [{"from": names[role], "value": text} for role, text in _spoken(said)]
    return {"id": f"{name}-{number:05}", "conversations": spoken}


def _turns(name: str, said: Conversation, number: int) -> Row:
    return {"question_id": number, "category": name, "turns": list(said.turns)} | _system(said)


def _prompt(name: str, said: Conversation, number: int) -> Row:
    key = str(uuid5(NAMESPACE_URL, f"{name}/{number}"))
    return {"uuid": key, "prompt": said.turns[0]} | _system(said)


def _question(name: str, said: Conversation, number: int) -> Row:
    return {"id": number, "kind": name, "question": said.turns[0]} | _system(said)


def _instruction(name: str, said: Conversation, number: int) -> Row:
    row: Row = {"id": f"{name}-{number:05}", "instruction": said.turns[0], "input": said.input}
    return row | _system(said)


def _system(said: Conversation) -> Row:
    return {"system": said.system} if said.system else {}


_FORMS: Mapping[str, Callable[[str, Conversation, int], Row]] = {
    "messages": _messages,
    "conversations": _conversations,
    "turns": _turns,
    "prompt": _prompt,
    "question": _question,
    "instruction": _instruction,
}
