"""How sure the token ids of rows are, in the grades' own names: only `engine` claims exactness."""

from __future__ import annotations

from typing import NamedTuple

from engine import format as fmt
from engine.view.snapshot import DatasetView
from tui import glyphs
from tui.draw.paint import Field, Line, Span, field


class Grade(NamedTuple):
    """A grade of DESIGN §6: its name, what it claims, and whether such rows are suspect."""

    name: str
    claim: str
    role: str = "text"


GRADES = (
    Grade("engine", "ids from the server itself"),
    Grade("matched", "canonical ids of the text, as many as were counted"),
    Grade("ambiguous", "more than one reading fits the count"),
    Grade("mismatch", "no reading fits the count", "warn"),
    Grade("unverified", "text only, or no count to check against"),
)
_RANK = {"engine": 1, "matched": 1}
"""On a narrow line these stay longest, beside the worst of the suspect ones."""


def counts(view: DatasetView) -> list[tuple[Grade, int]]:
    """The grades that rows have, the surest first."""
    found = [(grade, view.exactness.get(grade.name, 0)) for grade in GRADES]
    known = {grade.name for grade in GRADES}
    found += [
        (Grade(fmt.safe_text(name, 20), ""), count)
        for name, count in view.exactness.items()
        if name not in known
    ]
    return [(grade, count) for grade, count in found if count]


def flags(view: DatasetView) -> list[tuple[str, int]]:
    """The flags that rows have, the most frequent first; names are safe."""
    ordered = sorted(view.flags.items(), key=lambda item: -item[1])
    return [(fmt.safe_text(name, 24), count) for name, count in ordered if count]


def summary(view: DatasetView) -> list[Field]:
    """`12 engine  380 matched  9 ambiguous  ▲ suspect 3 mismatch  2 truncated` as fields."""
    fields: list[Field] = []
    for grade, count in counts(view):
        if grade.role == "text":
            number = (Span(fmt.thousands(count)), Span(f" {grade.name}", "dim"))
            fields.append(Field(number, _RANK.get(grade.name, 3)))
    return fields + suspects(view)


def suspects(view: DatasetView) -> list[Field]:
    """Rows that look successful and may not be good: wrong ids first, then the most frequent."""
    wrong = [(grade.name, n) for grade, n in counts(view) if grade.role == "warn"]
    parts = [f"{fmt.thousands(count)} {name}" for name, count in [*wrong, *flags(view)]]
    if not parts:
        return [field("none suspect", "dim", 5)] if view.rows else []
    head: Line = (Span(f"{glyphs.SUSPECT} suspect ", "warn", bold=True), Span(parts[0], "warn"))
    return [Field(head), *(field(text, "warn", 2) for text in parts[1:])]


def exportable(view: DatasetView) -> Line:
    """`6.4M exportable`: tokens of rows graded engine or matched and without a flag."""
    tokens = view.exportable_tokens
    return (Span("?" if tokens is None else fmt.compact(tokens)), Span(" exportable", "dim"))
