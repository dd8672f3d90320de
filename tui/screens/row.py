"""The row viewer: one row of rows.jsonl, its messages and answer, or its tokens one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from textual.binding import BindingType

from engine import format as fmt
from engine.disk.ledger import ROWS
from engine.view.snapshot import Snapshot
from tui import keys, rowfile
from tui.desk import Desk
from tui.draw import row as drawn
from tui.draw import words
from tui.draw.paint import Line
from tui.draw.table import text
from tui.rowfile import Place
from tui.screens.paged import Paged
from tui.tokenview import Piece, pieces, vocabulary_of

_LOOKED_AT = 5000
"""Rows that are read in search of a suspect one."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A row as it was read, and its tokens where it has any and the vocabulary is there."""

    place: Place
    row: dict[str, Any]
    prompt: Sequence[Piece] = ()
    answer: Sequence[Piece] = ()


class RowScreen(Paged, inherit_bindings=False):
    """Reads off the loop; the newest row where none is named."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.ROW]

    def __init__(self, desk: Desk, dataset: str, identifier: str | None) -> None:
        super().__init__(desk)
        self._dataset = dataset
        self._identifier = identifier
        self._loaded: _Loaded | None = None
        self._note = "reading"
        self._tokens = True
        self._suspects = False
        self._laid_out: tuple[int, list[Line]] = (0, [])

    def on_mount(self) -> None:
        """Read the row."""
        super().on_mount()
        self._go(0)

    def title_of(self, snapshot: Snapshot) -> str:
        """The dataset with its total, and which row."""
        view = next((one for one in snapshot.datasets if one.name == self._dataset), None)
        label = words.label(view) if view else fmt.safe_text(self._dataset)
        only = ", suspects only" if self._suspects else ""
        row = self._loaded.row.get("id", "") if self._loaded else ""
        return f"{label}  row {fmt.safe_text(str(row).rpartition('/')[2], 30)}{only}"

    def lines_of(self, snapshot: Snapshot, cells: int) -> Sequence[Line]:
        """The row, or why there is none; a new width is laid out off the loop."""
        del snapshot
        wide, lines = self._laid_out
        if self._loaded is None:
            return [text(self._note, cells)]
        if wide != cells:
            self._lay_out(cells)
        return lines or [text(self._note, cells)]

    def action_older(self, step: int) -> None:
        """To the row before (1) or after (-1) this one."""
        self._go(step)

    def action_tokens(self) -> None:
        """Token by token, or as text."""
        self._tokens = not self._tokens
        if self._loaded and not (self._loaded.prompt or self._loaded.answer):
            self.desk.helm.say("no tokens here: the row has no ids, or no vocabulary is at hand")
        self._laid_out = (0, [])
        self.refresh_view()

    def action_suspects(self) -> None:
        """Go only to suspect rows, or to all."""
        self._suspects = not self._suspects
        if self._suspects and not (self._loaded and drawn.suspect(self._loaded.row)):
            self._go(1)
        self.refresh_view()

    # off the loop

    def _go(self, step: int) -> None:
        self.run_worker(self._read(step), group="row", exclusive=True, exit_on_error=False)

    async def _read(self, step: int) -> None:
        try:
            loaded = await asyncio.to_thread(self._load, step)
        except (OSError, ValueError) as error:
            self._note = f"the row cannot be read: {fmt.safe_text(str(error), 200)}"
        else:
            if loaded is not None:
                self._loaded, self._laid_out, self.sheet.top = loaded, (0, []), 0
            elif self._loaded is None:
                self._note = "no row has been written yet"
            else:
                which = "suspect row" if self._suspects else "row"
                self.desk.helm.say(f"no {'older' if step > 0 else 'newer'} {which}", "warn")
        self.refresh_view()

    def _load(self, step: int) -> _Loaded | None:
        output = self.desk.helm.snapshot().output
        path = Path(output) / self._dataset / ROWS
        place = self._place(path, step)
        if place is None:
            return None
        row = rowfile.read(path, place)
        vocabulary = vocabulary_of(output) if row.get("completion_ids") else None
        if vocabulary is None:
            return _Loaded(place, row)
        prompt = pieces(vocabulary, row.get("prompt_ids") or ())
        return _Loaded(place, row, prompt, pieces(vocabulary, row["completion_ids"]))

    def _place(self, path: Path, step: int) -> Place | None:
        here = self._loaded.place if self._loaded else None
        if here is None or not step:
            named = rowfile.find(path, self._identifier) if self._identifier else None
            return named or next(rowfile.backwards(path), None)
        move = rowfile.before if step > 0 else rowfile.after
        for _ in range(_LOOKED_AT):
            here = move(path, here)
            if here is None or not self._suspects or drawn.suspect(rowfile.read(path, here)):
                return here
        return None

    def _lay_out(self, cells: int) -> None:
        loaded, tokens = self._loaded, self._tokens
        assert loaded is not None  # noqa: S101 - asked before
        self._laid_out = (cells, self._laid_out[1])

        async def lay_out() -> None:
            lines = await asyncio.to_thread(_lines, loaded, cells, tokens=tokens)
            if self._loaded is loaded and self._tokens == tokens and self._laid_out[0] == cells:
                self._laid_out = (cells, lines)
                self.refresh_view()

        self.run_worker(lay_out(), group="layout", exclusive=True, exit_on_error=False)


def _lines(loaded: _Loaded, cells: int, *, tokens: bool) -> list[Line]:
    if tokens and (loaded.prompt or loaded.answer):
        return drawn.as_tokens(loaded.row, loaded.prompt, loaded.answer, cells)
    return drawn.as_text(loaded.row, cells)
