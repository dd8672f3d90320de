"""Dialogs at the bottom of the screen, so that the numbers above stay visible and alive."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from engine import format as fmt
from tui.draw.keybar import Key, help_lines
from tui.draw.paint import Line, Span
from tui.palette import Palette
from tui.questions import Question
from tui.widgets.canvas import Canvas

_INNER = 72
_FRAME = 4
"""Lines around a dialog's text: its border, and the message and keys below it."""
_NAMES = {"escape": "esc", "enter": "enter"}


def _box(title: str, *, danger: bool = False) -> Vertical:
    box = Vertical(classes="dialog danger" if danger else "dialog")
    box.border_title = Content(title)  # a str would be read as markup
    return box


class AskScreen(ModalScreen[str]):
    """Asks one question; comes back with the answer's word, or with `""` for no."""

    def __init__(self, palette: Palette, question: Question) -> None:
        super().__init__()
        self._palette = palette
        self._question = question

    def compose(self) -> ComposeResult:
        """The box with the sentences and the answers."""
        answers = self._answers()
        lines = [*((Span(text),) for text in self._question.lines), (), *answers]
        if self.app.size.height < len(lines) + _FRAME:
            lines = answers  # a tiny screen keeps the keys
        canvas = Canvas(self._palette)
        canvas.styles.height = len(lines)
        canvas.paint(lines)
        with _box(fmt.clip(self._question.title, _INNER - 2), danger=self._question.danger):
            yield canvas

    def _answers(self) -> list[Line]:
        return [
            (
                Span(
                    fmt.pad(" ".join(_NAMES.get(key, key) for key in choice.keys), 9),
                    "accent",
                    True,
                ),
                Span(fmt.clip(choice.text, _INNER - 10)),
            )
            for choice in self._question.choices
        ]

    def on_key(self, event: events.Key) -> None:
        """Take an answer's key; nothing else does anything while the question stands."""
        event.stop()
        for choice in self._question.choices:
            if event.key in choice.keys:
                self.dismiss(choice.answer)
                return


class NumberScreen(ModalScreen[int | None]):
    """Asks for a whole number of at least 1."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "back")]

    def __init__(self, palette: Palette, title: str, note: str) -> None:
        super().__init__()
        self._palette = palette
        self._title = title
        self._note = note

    def compose(self) -> ComposeResult:
        """The box with the field."""
        note = Canvas(self._palette, name="note")
        note.paint([(Span(fmt.clip(self._note, _INNER), "dim"),)])
        keys = Canvas(self._palette)
        keys.paint(
            [
                (
                    Span("enter ", "accent", True),
                    Span("set   "),
                    Span("esc ", "accent", True),
                    Span("back"),
                )
            ]
        )
        with _box(self._title):
            yield note
            entry = Input(restrict=r"[0-9,_]*", max_length=9, compact=True)
            entry.cursor_blink = False
            yield entry
            yield keys

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Come back with the number, or say what is wrong with it."""
        digits = event.value.replace(",", "").replace("_", "")
        if digits and int(digits) >= 1:
            self.dismiss(int(digits))
            return
        self.query_one("#note", Canvas).paint(
            [(Span("a whole number of at least 1", "bad", True),)]
        )

    def action_leave(self) -> None:
        """Come back without a number."""
        self.dismiss(None)


class HelpScreen(ModalScreen[None]):
    """The live keys, and how to read the numbers."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1,n,enter", "leave", "close")
    ]

    def __init__(self, palette: Palette, keys: list[Key], notes: list[Line]) -> None:
        super().__init__()
        self._palette = palette
        self._keys = keys
        self._notes = notes

    def compose(self) -> ComposeResult:
        """The box with one line per key."""
        lines = [*help_lines(self._keys, _INNER), (), *self._notes]
        canvas = Canvas(self._palette)
        canvas.styles.height = len(lines)
        canvas.paint(lines)
        with _box("Keys (esc closes)"):
            yield canvas

    def action_leave(self) -> None:
        """Close."""
        self.dismiss(None)
