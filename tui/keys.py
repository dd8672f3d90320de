"""Every screen's key bindings in one place; footer and help are drawn from what is live of it."""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding

from tui.draw.keybar import Key

_MOVE = Binding.Group("select")
_SCROLL = Binding.Group("scroll")
_PAGE = Binding.Group("")
_EDGE = Binding.Group("")
_NEXT = Binding.Group("next")
_DIGIT = Binding.Group("")
_THROTTLE = Binding.Group("throttle")

_DIGITS: list[Binding] = [
    Binding(str(number), f"choose_at({number - 1})", tooltip="select by number", group=_DIGIT)
    for number in range(1, 10)
]
_STEERING: list[Binding] = [
    Binding("p", "pause", "pause", tooltip="pause or resume work on the selected dataset"),
    Binding("P", "pause_run", "pause run", tooltip="pause or resume work on the whole run"),
    Binding(
        "plus",
        "step(1)",
        tooltip="raise or lower the ceiling in flight by about a tenth",
        group=_THROTTLE,
    ),
    Binding("minus", "step(-1)", group=_THROTTLE),
    Binding("equals_sign", "number", "number", tooltip="type the ceiling of requests in flight"),
    Binding("s", "skip", "skip", tooltip="skip the selected dataset, or take its skip back (asks)"),
    Binding("u", "undo", tooltip="take the last pause, throttle or skip back"),
    Binding("f", "freeze", "freeze", tooltip="freeze the view, to read it; work goes on"),
]
_COMMON: list[Binding] = [
    Binding("colon", "command", "command", tooltip="type a command; tab completes it"),
    Binding("t", "theme", tooltip="choose a theme, seen while choosing"),
    Binding("y", "copy", tooltip="copy this view as text (OSC 52), and save it to a file"),
    Binding("m", "mouse", tooltip="mouse on or off (off: the terminal selects text)"),
    Binding("q", "leave", "quit", tooltip="quit: asks what becomes of the run"),
    Binding("Q", "leave(True)", tooltip="quit, and leave the summary in the scrollback"),
    Binding("question_mark,f1", "help", "help", tooltip="this help"),
]
_BACK = Binding("escape,backspace", "back", "back", tooltip="back to the screen before")
_SCROLLING: list[Binding] = [
    Binding("j,down", "scroll(1)", tooltip="scroll by a line", group=_SCROLL),
    Binding("k,up", "scroll(-1)", group=_SCROLL),
    Binding("space,pagedown", "scroll_page(1)", tooltip="scroll by a page", group=_PAGE),
    Binding("b,pageup", "scroll_page(-1)", group=_PAGE),
    Binding("g,home", "scroll_edge(False)", tooltip="to the first or the last line", group=_EDGE),
    Binding("G,end", "scroll_edge(True)", group=_EDGE),
]
_NEIGHBOURS: list[Binding] = [
    Binding("n,right", "neighbour(1)", tooltip="the next or the previous dataset", group=_NEXT),
    Binding("N,left", "neighbour(-1)", group=_NEXT),
]
_FAILURES = Binding("e", "failures", "errors", tooltip="errors and failed prompts of all datasets")
_JOURNAL = Binding("o", "journal", "journal", tooltip="what was ordered and decided, with times")

OVERVIEW: list[Binding] = [
    Binding("j,down", "choose(1)", tooltip="select the next or the previous dataset", group=_MOVE),
    Binding("k,up", "choose(-1)", group=_MOVE),
    *_DIGITS,
    Binding("enter", "open", "detail", tooltip="everything about the selected dataset"),
    *_STEERING,
    _FAILURES,
    _JOURNAL,
    Binding("slash", "filter", "filter", tooltip="show only datasets whose name holds a text"),
    Binding("escape", "unfilter", tooltip="show all datasets again"),
    *_COMMON,
]
DATASET: list[Binding] = [
    _BACK,
    *_SCROLLING,
    *_NEIGHBOURS,
    *_DIGITS,
    Binding("enter", "rows", "read rows", tooltip="read the newest rows, tokens and all"),
    *_STEERING,
    _FAILURES,
    _JOURNAL,
    *_COMMON,
]
FAILURES: list[Binding] = [
    _BACK,
    Binding("j,down", "choose(1)", tooltip="select the next or the previous cause", group=_MOVE),
    Binding("k,up", "choose(-1)", group=_MOVE),
    *_SCROLLING[2:],
    *_NEIGHBOURS,
    *_DIGITS,
    Binding("r", "retry", "retry failed", tooltip="ask the dataset's failed prompts again (asks)"),
    Binding("x", "exclude", "exclude", tooltip="leave the selected provider out (asks)"),
    *_STEERING,
    _JOURNAL,
    *_COMMON,
]
JOURNAL: list[Binding] = [_BACK, *_SCROLLING, *_STEERING[1:5], _FAILURES, *_COMMON]
ROW: list[Binding] = [
    _BACK,
    *_SCROLLING,
    Binding("n,right", "older(1)", tooltip="the row before or after this one", group=_NEXT),
    Binding("N,left", "older(-1)", group=_NEXT),
    Binding("v", "tokens", "tokens", tooltip="token by token, or as text"),
    Binding("w", "suspects", "suspects", tooltip="go only to rows that are suspect, or to all"),
    *_COMMON,
]
APP_BINDINGS: list[Binding] = [
    Binding(
        "ctrl+c",
        "interrupt",
        tooltip="drain: finish what is in flight; again: stop at once",
        priority=True,
    ),
]
_SHOWN = {
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "question_mark": "?",
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "escape": "esc",
    "backspace": "bksp",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "colon": ":",
    "slash": "/",
    "f1": "F1",
}
_KEPT = (
    ("help", "quit", "back"),
    ("pause", "detail", "read rows", "retry failed", "exclude", "tokens"),
    ("pause run", "skip", "errors", "next", "suspects"),
    ("throttle", "scroll"),
    ("select", "journal"),
)
"""What a narrow footer keeps, the most important first."""
_RANKS = {short: rank for rank, shorts in enumerate(_KEPT) for short in shorts}
_LEAST = 5


def live(bindings: Iterable[Binding], *, every_key: bool) -> list[Key]:
    """Bindings as footer and help draw them: one entry per action or group, in the given order.

    `every_key` lists alternatives (`j ↓ k ↑`) as well, for the help.
    """
    groups: dict[object, list[Binding]] = {}
    for binding in bindings:
        # by identity: groups without a word for the footer would all be equal
        key = id(binding.group) if binding.group else binding.action
        groups.setdefault(key, []).append(binding)
    return [_entry(members, every_key) for members in groups.values()]


def _entry(members: list[Binding], every_key: bool) -> Key:
    first = members[0]
    short = first.group.description if first.group else first.description
    if not every_key:
        members = list({binding.action: binding for binding in reversed(members)}.values())[::-1]
    keys = [_SHOWN.get(binding.key, binding.key) for binding in members]
    digits = len(keys) > 1 and all(key.isdigit() for key in keys)
    text = f"{keys[0]}-{keys[-1]}" if digits else " ".join(keys)
    return Key(text, short, first.tooltip, _RANKS.get(short, _LEAST))
