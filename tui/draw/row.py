"""A row as lines: what is known of it, then its messages and answer, or its tokens one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engine import format as fmt
from tui.draw import grades, words
from tui.draw.paint import Line, Span, wrap
from tui.draw.table import head
from tui.tokenview import Piece

_CHUNK = 1500
"""Characters of a text that are made safe at a time: `safe_text` cuts what is longer."""
_CLAIMS = {grade.name: grade.claim for grade in grades.GRADES}


def suspect(row: Mapping[str, Any]) -> bool:
    """Whether a row looks successful and may not be good."""
    return bool(row.get("flags")) or row.get("exactness") == "mismatch"


def facts(row: Mapping[str, Any], cells: int) -> list[Line]:
    """What is known of the row."""
    given = row.get("usage")
    usage: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
    grade = str(row.get("exactness"))
    flags = " ".join(map(str, _list(row.get("flags"))))
    native = row.get("native_finish_reason")
    finish = f"{row.get('finish_reason')}{f' (native {native})' if native else ''}"
    tokens = (
        f"{_count(usage.get('prompt_tokens'))} prompt, "
        f"{_count(usage.get('completion_tokens'))} completion as the server counts; "
        f"{_ids_words(row.get('prompt_ids'), row.get('completion_ids'))}"
    )
    cost = usage.get("cost")
    asked = (
        f"{row.get('started_at')}, took {_seconds(row.get('latency_s'))}, "
        f"attempt {row.get('attempts')}, {fmt.money(cost if _number(cost) else None)}"
    )
    known: list[tuple[str, str, str]] = [
        ("id", f"{row.get('id')}  source row {row.get('index')}, turn {row.get('turn')}", "text"),
        ("grade", f"{grade}: {_CLAIMS.get(grade, '')}", "warn" if grade == "mismatch" else "text"),
        ("flags", flags or "none", "warn" if flags else "dim"),
        ("finish", finish, "text"),
        ("tokens", tokens, "text"),
        ("from", f"{row.get('provider') or '?'}, model {row.get('model')}", "text"),
        ("asked", asked, "text"),
    ]
    return [line for name, said, role in known for line in _fact(name, said, role, cells)]


def _fact(name: str, said: str, role: str, cells: int) -> Iterator[Line]:
    for place, part in enumerate(wrap(fmt.safe_text(said), max(8, cells - 9))):
        yield (Span(f"{name if place == 0 else '':>7}  ", "dim"), Span(part, role))


def as_text(row: Mapping[str, Any], cells: int) -> list[Line]:
    """Messages, reasoning, content and tool calls."""
    lines = facts(row, cells)
    for message in _list(row.get("messages")):
        if isinstance(message, Mapping):
            role = fmt.safe_text(str(message.get("role")), 20)
            lines += _section(role, "prompt", _words(message.get("content")), "dim", cells)
            lines += _calls(message.get("tool_calls"), "dim", cells)
    for name in ("reasoning", "content"):
        if row.get(name):
            lines += _section(f"assistant {name}", "supervised", _words(row[name]), "text", cells)
    return lines + _calls(row.get("tool_calls"), "text", cells)


def _section(title: str, note: str, words: str, role: str, cells: int) -> list[Line]:
    return [(), head(title, note), *((Span(part, role),) for part in paragraphs(words, cells))]


def _calls(calls: Any, role: str, cells: int) -> list[Line]:
    if not calls:
        return []
    said = json.dumps(calls, ensure_ascii=False, indent=1, default=str)
    return _section("tool calls", "", said, role, cells)


def paragraphs(text: str, cells: int) -> Iterator[str]:
    """Every line of an outside text, safe, wrapped, and uncut."""
    for paragraph in text.split("\n"):
        chunks = range(0, max(1, len(paragraph)), _CHUNK)
        safe = "".join(fmt.safe_text(paragraph[n : n + _CHUNK]) for n in chunks)
        yield from wrap(safe, max(1, cells)) or [""]


def as_tokens(
    row: Mapping[str, Any], prompt: Sequence[Piece], answer: Sequence[Piece], cells: int
) -> list[Line]:
    """The tokens one by one: each second one is bold, special ones stand out."""
    lines = facts(row, cells)
    for title, note, role, found in (
        ("prompt", "not supervised", "dim", prompt),
        ("answer", "supervised", "text", answer),
    ):
        lines += [(), head(title, f"{fmt.plural(len(found), 'piece')}, {note}")]
        lines += flow(found, role, cells)
    return lines


def flow(found: Sequence[Piece], role: str, cells: int) -> list[Line]:
    """Pieces in lines; a line break in a piece is shown and breaks the line."""
    lines: list[Line] = []
    line: list[Span] = []
    used = 0
    for number, piece in enumerate(found):
        look = Span("", "accent", True, True) if piece.special else Span("", role, number % 2 == 1)
        for place, part in enumerate(piece.text.split("\n")):
            if place:
                line.append(look._replace(text="\\n"))
                lines.append(tuple(line))
                line, used = [], 0
            for text in _fitted(fmt.safe_text(part), cells, used):
                if text is None:
                    lines.append(tuple(line))
                    line, used = [], 0
                else:
                    line.append(look._replace(text=text))
                    used += fmt.width(text)
    return [*lines, tuple(line)] if line else lines


def _fitted(text: str, cells: int, used: int) -> Iterator[str | None]:
    """The text in parts that fit; None where a new line begins."""
    part = ""
    for char in text:
        wide = fmt.char_width(char)
        if used + wide > cells:
            yield part
            yield None
            part, used = "", 0
        part += char
        used += wide
    yield part


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> str:
    return fmt.thousands(value) if isinstance(value, int) else fmt.UNKNOWN


def _ids_words(prompt: Any, completion: Any) -> str:
    if not isinstance(prompt, list) and not isinstance(completion, list):
        return "no ids here"
    return f"{_ids(prompt)} and {_ids(completion)} ids here"


def _ids(value: Any) -> str:
    return fmt.thousands(len(value)) if isinstance(value, list) else "no"


def _seconds(value: Any) -> str:
    return words.seconds(value) if _number(value) else fmt.UNKNOWN


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "" if content is None else json.dumps(content, ensure_ascii=False, default=str)
