"""Dialogs at the bottom of the screen, so that the numbers above stay visible and alive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, TypeVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from engine import format as fmt
from tui import glyphs
from tui.draw.paint import Line, Span, exactly
from tui.palette import Palette
from tui.questions import ANSWER_KEYS, Question
from tui.widgets.canvas import Canvas

Answer = TypeVar("Answer")
INNER = 72
"""Cells of a dialog's text."""
_NAME_CELLS = 30
_FRAME = 4
"""Lines around a dialog's text: its border, and the message and keys below it."""
_NAMES = {"escape": "esc", "enter": "enter"}


def box(title: str, *, danger: bool = False) -> Vertical:
    """A dialog's frame."""
    frame = Vertical(classes="dialog danger" if danger else "dialog")
    frame.border_title = Content(title)  # a str would be read as markup
    return frame


class Standing(ModalScreen[Answer]):
    """A question that closes by itself, without an answer, once there is nothing to ask.

    `moot` says so, and says why on the message line.
    """

    def __init__(self, moot: Callable[[], bool]) -> None:
        super().__init__()
        self._moot = moot

    def close_if_moot(self) -> None:
        """Look again whether the question stands."""
        if self.is_current and self._moot():
            self.dismiss(None)


class AskScreen(Standing[str]):
    """Asks one question; comes back with the answer's word, or with `""` for no.

    Bindings, and no handler of keys: they also hear what was typed before the question was there.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding(key, f"press({key!r})") for key in ANSWER_KEYS]

    def __init__(self, palette: Palette, question: Question, moot: Callable[[], bool]) -> None:
        super().__init__(moot)
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
        title = self._palette.text(fmt.clip(self._question.title, INNER - 2))
        with box(title, danger=self._question.danger):
            yield canvas

    def _answers(self) -> list[Line]:
        return [
            (
                Span(
                    fmt.pad(" ".join(_NAMES.get(key, key) for key in choice.keys), 9),
                    "accent",
                    True,
                ),
                Span(fmt.clip(choice.text, INNER - 10)),
            )
            for choice in self._question.choices
        ]

    def action_press(self, key: str) -> None:
        """Take an answer's key; the others do nothing while the question stands."""
        for choice in self._question.choices:
            if key in choice.keys:
                self.dismiss(choice.answer)
                return


class NumberScreen(Standing[int]):
    """Asks for a whole number of at least 1."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "back")]

    def __init__(self, palette: Palette, title: str, note: str, moot: Callable[[], bool]) -> None:
        super().__init__(moot)
        self._palette = palette
        self._title = title
        self._note = note

    def compose(self) -> ComposeResult:
        """The box with the field."""
        note = Canvas(self._palette, name="note")
        note.paint([(Span(fmt.clip(self._note, INNER), "dim"),)])
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
        with box(self._title):
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


class LineScreen(ModalScreen[str | None]):
    """Asks for a line of text; `typed` hears every change, tab completes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        Binding("tab", "complete", "complete", priority=True),
    ]

    def __init__(
        self,
        palette: Palette,
        title: str,
        prompt: str,
        text: str = "",
        typed: Callable[[str], None] = lambda _: None,
        *,
        complete: Callable[[str], tuple[str, list[str]]] | None = None,
    ) -> None:
        """`complete` gives the line with what is sure, and what it could go on with."""
        super().__init__()
        self._palette = palette
        self._title = title
        self._prompt = prompt
        self._text = text
        self._typed = typed
        self._complete = complete

    def compose(self) -> ComposeResult:
        """The box with the field."""
        with box(self._palette.text(self._title)):
            if self._complete is not None:
                yield Canvas(self._palette, name="offers")
            with Horizontal(classes="line"):
                prompt = Canvas(self._palette, classes="prompt")
                prompt.paint([(Span(self._prompt, "accent", True),)])
                yield prompt
                entry = Input(self._text, max_length=200, compact=True, select_on_focus=False)
                entry.cursor_blink = False
                yield entry

    def on_mount(self) -> None:
        """Offer what there is."""
        self._offer()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Tell what was typed."""
        self._typed(event.value)
        self._offer()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Come back with the line."""
        self.dismiss(event.value)

    def action_complete(self) -> None:
        """Take over what is sure."""
        if self._complete is not None:
            entry = self.query_one(Input)
            entry.value, _ = self._complete(entry.value)
            entry.cursor_position = len(entry.value)

    def action_leave(self) -> None:
        """Come back without a line."""
        self.dismiss(None)

    def _offer(self) -> None:
        if self._complete is not None:
            _, offers = self._complete(self.query_one(Input).value)
            shown = "  ".join(fmt.safe_text(offer) for offer in offers)
            self.query_one("#offers", Canvas).paint([(Span(fmt.clip(shown, INNER), "dim"),)])


class Item(NamedTuple):
    """One of a few to pick: safe texts; `fault` marks what cannot be taken."""

    name: str
    called: str
    fault: bool = False


class PickScreen(ModalScreen[str | None]):
    """Picks one of a few; `shown` hears which one is under the cursor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,n", "leave(False)", "back"),
        Binding("enter,y", "leave(True)", "take"),
        Binding("j,down", "move(1)"),
        Binding("k,up", "move(-1)"),
    ]

    def __init__(
        self,
        palette: Palette,
        title: str,
        items: Sequence[Item],
        current: str = "",
        shown: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`current` is the name under the cursor at first."""
        super().__init__()
        self._palette = palette
        self._title = title
        self._items = items
        self._shown = shown
        names = [item.name for item in items]
        self._place = names.index(current) if current in names else 0
        self._canvas = Canvas(palette)

    def compose(self) -> ComposeResult:
        """The box with one line per item, and the keys."""
        self._canvas.styles.height = len(self._items) + 2
        self._draw()
        with box(self._palette.text(self._title)):
            yield self._canvas

    def _draw(self) -> None:
        lines: list[Line] = []
        column = min(_NAME_CELLS, 2 + max(fmt.width(item.name) for item in self._items))
        for place, item in enumerate(self._items):
            here = place == self._place
            mark = glyphs.CURSOR if here else " "
            entry: Line = (
                Span(f"{mark} ", "accent", True),
                Span(fmt.pad(item.name, column), "text", here),
                Span(item.called, "warn" if item.fault else "dim"),
            )
            lines.append(exactly(entry, INNER))
        keys = (("j k ", "choose   "), ("enter ", "take   "), ("esc ", "back"))
        told = [span for key, what in keys for span in (Span(key, "accent", True), Span(what))]
        self._canvas.paint([*lines, (), tuple(told)])

    def action_move(self, step: int) -> None:
        """Move the cursor, and show what it stands on."""
        self._place = (self._place + step) % len(self._items)
        self._draw()
        self._shown(self._items[self._place].name)

    def action_leave(self, take: bool) -> None:
        """Come back with what the cursor stands on, or with nothing."""
        self.dismiss(self._items[self._place].name if take else None)
