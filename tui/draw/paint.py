"""Styled text as data: spans with a role, and lines that fit a width by dropping fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine import format as fmt


class Span(NamedTuple):
    """A piece of safe text with the role that its colour stands for (themes.ROLES)."""

    text: str
    role: str = "text"
    bold: bool = False
    reverse: bool = False


Line = tuple[Span, ...]


class Field(NamedTuple):
    """Spans that stay together; on a narrow line those of the highest rank go first.

    Rank 0 stays to the last; a line that is too narrow even for these is cut.
    """

    spans: Line
    rank: int = 0


def line_width(line: Iterable[Span]) -> int:
    """Terminal cells of a line."""
    return sum(fmt.width(span.text) for span in line)


def plain(line: Iterable[Span]) -> str:
    """The text of a line."""
    return "".join(span.text for span in line)


def field(text: str, role: str = "text", rank: int = 0, *, bold: bool = False) -> Field:
    """A field of one span."""
    return Field((Span(text, role, bold),), rank)


def exactly(line: Sequence[Span], cells: int) -> Line:
    """The line cut (with `…`) or filled to exactly that many cells."""
    missing = cells - line_width(line)
    if missing >= 0:
        return (*line, Span(" " * missing)) if missing else tuple(line)
    kept: list[Span] = []
    room = cells
    for span in line:
        used = fmt.width(span.text)
        if used >= room:
            kept.append(span._replace(text=fmt.pad(span.text + " ", room)))
            break
        kept.append(span)
        room -= used
    return tuple(kept)


def arrange(
    cells: int,
    left: Sequence[Field],
    right: Sequence[Field] = (),
    *,
    gap: str = "  ",
) -> Line:
    """Fields from the left edge and fields at the right edge of a line of exactly `cells`.

    Empty fields take no gap. What does not fit goes by rank, the highest first; of one rank, the
    rightmost first.
    """
    lefts = [item for item in left if line_width(item.spans)]
    rights = [item for item in right if line_width(item.spans)]
    while _needed(lefts, rights, gap) > cells and _drop(lefts, rights):
        pass
    start, end = _joined(lefts, gap), _joined(rights, gap)
    middle = cells - line_width(start) - line_width(end)
    if not end or middle < 0:
        return exactly(start + end if middle >= 0 else start, cells)
    return (*start, Span(" " * middle), *end)


_MORE = "+12 more"
"""The room that the count of what is hidden takes."""


def fitting(cells: int, fields: Sequence[Field], gap: str) -> list[Field]:
    """The fields that stay where each takes its gap and what goes is counted: ` +2 more`."""
    kept, more = [item for item in fields if line_width(item.spans)], 0
    while kept and sum(line_width(item.spans) + fmt.width(gap) for item in kept) + more > cells:
        more = fmt.width(gap + _MORE)
        if not _drop(kept, []):
            break
    return kept


def _needed(lefts: Sequence[Field], rights: Sequence[Field], gap: str) -> int:
    both = fmt.width(gap) if lefts and rights else 0
    return line_width(_joined(lefts, gap)) + both + line_width(_joined(rights, gap))


def _drop(lefts: list[Field], rights: list[Field]) -> bool:
    fields = [*lefts, *rights]
    worst = max((item.rank for item in fields), default=0)
    if worst == 0:
        return False
    side = rights if any(item.rank == worst for item in rights) else lefts
    place = max(i for i, item in enumerate(side) if item.rank == worst)
    del side[place]
    return True


def _joined(fields: Sequence[Field], gap: str) -> Line:
    out: list[Span] = []
    for item in fields:
        if out:
            out.append(Span(gap, "dim"))
        out.extend(item.spans)
    return tuple(out)


def wrap(text: str, cells: int) -> list[str]:
    """Safe text in lines of at most `cells`, broken at spaces where there are any."""
    lines: list[str] = []
    line, used = "", 0
    for word in text.split(" "):
        room = cells - used - (1 if line else 0)
        if line and fmt.width(word) > room:
            lines.append(line)
            line, used = "", 0
        pieces = _pieces(word, cells)
        lines += pieces[:-1]
        line = f"{line} {pieces[-1]}" if line else pieces[-1]
        used = fmt.width(line)
    return [*lines, line] if line else lines


def _pieces(word: str, cells: int) -> list[str]:
    """A word cut where it is wider than a line."""
    if fmt.width(word) <= cells:
        return [word]
    pieces, piece, used = [], "", 0
    for char in word:
        wide = fmt.char_width(char)
        if used + wide > cells and piece:
            pieces.append(piece)
            piece, used = "", 0
        piece += char
        used += wide
    return [*pieces, piece]


LABEL = 10
"""Cells of the label column, its space included."""


def label(text: str) -> Span:
    """A dim label, right-aligned in the label column (`  prompts `)."""
    return Span(fmt.pad(text, LABEL - 1, right=True) + " ", "dim")
