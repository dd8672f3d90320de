"""How to read the screen, for the help."""

from __future__ import annotations

from tui import glyphs
from tui.draw.paint import Line, Span


def _note(head: str, text: str) -> Line:
    return (Span(f"{head:<11}", "text", bold=True), Span(text, "dim"))


LEGEND: list[Line] = [
    _note("prompts", "ok + failed + invalid + in flight + left = manifest's total"),
    _note("errors", "failed attempts of all attempts; most are retried"),
    _note(
        "chart", f"from zero up to max; {glyphs.ZERO} nothing came; {glyphs.GAP} work was paused"
    ),
    _note("errors row", "the commonest family's letter: small few, capital many, reversed most"),
    _note("", "its number and its legend count all sessions, not only what the row shows"),
    _note("limit row", "the lowest limit of each column, against the highest shown"),
    _note("orders row", "p pause  r resume  t throttle  s skip  u unskip  x exclude  i include"),
    _note("", "f retry failed  d drain  X stop; P R the whole run; 2 to 9 so many"),
    _note("", f"{glyphs.GAP} paused  {glyphs.HELD} the engine waited  {glyphs.HERE} an order"),
    _note("rate", "rows written per second, most of them one prompt each"),
    _note("grades", "only engine ids are exact: the server gave them; matched ones are"),
    _note("", "the canonical ids of the text, and as many as the server counted"),
    _note("exportable", "tokens of rows graded engine or matched, without a flag"),
    _note("bar", f"{glyphs.FULL} done   {glyphs.HALF} in flight   {glyphs.REST} left"),
]
