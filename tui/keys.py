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
    Binding(
        "p", "pause", "pause", tooltip="pause or resume work on the selected dataset", id="pause"
    ),
    Binding(
        "P",
        "pause_run",
        "pause run",
        tooltip="pause or resume work on the whole run",
        id="pause_run",
    ),
    Binding(
        "plus",
        "step(1)",
        tooltip="raise or lower the ceiling in flight by about a tenth",
        group=_THROTTLE,
        id="throttle_up",
    ),
    Binding("minus", "step(-1)", group=_THROTTLE, id="throttle_down"),
    Binding(
        "equals_sign",
        "number",
        "number",
        tooltip="type the ceiling of requests in flight",
        id="throttle_number",
    ),
    Binding(
        "s",
        "skip",
        "skip",
        tooltip="skip the selected dataset, or take its skip back (asks)",
        id="skip",
    ),
    Binding("u", "undo", tooltip="take the last order back; again: the one before it", id="undo"),
    Binding(
        "f", "freeze", "freeze", tooltip="freeze the view, to read it; work goes on", id="freeze"
    ),
]
_COMMON: list[Binding] = [
    Binding(
        "colon", "command", "command", tooltip="type a command; tab completes it", id="command"
    ),
    Binding("q", "leave", "quit", tooltip="quit: asks what becomes of the run", id="quit"),
    Binding(
        "Q",
        "leave(True)",
        tooltip="quit, and leave the summary in the scrollback",
        id="quit_summary",
    ),
    Binding("question_mark,f1", "help", "help", tooltip="this help", id="help"),
    Binding("t", "theme", tooltip="choose a theme, seen while choosing", id="theme"),
    Binding(
        "y", "copy", tooltip="copy this view as text (OSC 52), and save it to a file", id="copy"
    ),
    Binding("m", "mouse", tooltip="mouse on or off (off: the terminal selects text)", id="mouse"),
]
_BACK = Binding("escape,backspace", "back", "back", tooltip="back to the screen before", id="back")
_SCROLLING: list[Binding] = [
    Binding("j,down", "scroll(1)", tooltip="scroll by a line", group=_SCROLL, id="scroll_down"),
    Binding("k,up", "scroll(-1)", group=_SCROLL, id="scroll_up"),
    Binding(
        "space,pagedown", "scroll_page(1)", tooltip="scroll by a page", group=_PAGE, id="page_down"
    ),
    Binding("b,pageup", "scroll_page(-1)", group=_PAGE, id="page_up"),
    Binding(
        "g,home",
        "scroll_edge(False)",
        tooltip="to the first or the last line",
        group=_EDGE,
        id="first_line",
    ),
    Binding("G,end", "scroll_edge(True)", group=_EDGE, id="last_line"),
]
_NEIGHBOURS: list[Binding] = [
    Binding(
        "n,right",
        "neighbour(1)",
        tooltip="the next or the previous dataset",
        group=_NEXT,
        id="next_dataset",
    ),
    Binding("N,left", "neighbour(-1)", group=_NEXT, id="previous_dataset"),
]
_FAILURES = Binding(
    "e", "failures", "errors", tooltip="errors and failed prompts of all datasets", id="errors"
)
_JOURNAL = Binding(
    "o", "journal", "journal", tooltip="what was ordered and decided, with times", id="journal"
)
_REMEDIES: list[Binding] = [
    Binding(
        "r",
        "retry",
        tooltip="ask the selected dataset's failed prompts again (asks)",
        id="retry_failed",
    ),
    Binding(
        "x",
        "exclude",
        tooltip="leave a provider out (asks), or let one in again",
        id="exclude_provider",
    ),
]

OVERVIEW: list[Binding] = [
    Binding(
        "j,down",
        "choose(1)",
        tooltip="select the next or the previous dataset",
        group=_MOVE,
        id="select_next",
    ),
    Binding("k,up", "choose(-1)", group=_MOVE, id="select_previous"),
    *_DIGITS,
    Binding("enter", "open", "detail", tooltip="everything about the selected dataset", id="open"),
    *_STEERING,
    _FAILURES,
    *_REMEDIES,
    _JOURNAL,
    Binding(
        "slash",
        "filter",
        "filter",
        tooltip="show only datasets whose name holds a text",
        id="filter",
    ),
    Binding("escape", "unfilter", tooltip="show all datasets again", id="unfilter"),
    *_COMMON,
]
DATASET: list[Binding] = [
    _BACK,
    *_SCROLLING,
    *_NEIGHBOURS,
    *_DIGITS,
    Binding(
        "enter", "rows", "read rows", tooltip="read the newest rows, tokens and all", id="read_rows"
    ),
    *_STEERING,
    _FAILURES,
    *_REMEDIES,
    _JOURNAL,
    *_COMMON,
]
FAILURES: list[Binding] = [
    _BACK,
    Binding(
        "j,down",
        "choose(1)",
        tooltip="select the next or the previous cause",
        group=_MOVE,
        id="select_next",
    ),
    Binding("k,up", "choose(-1)", group=_MOVE, id="select_previous"),
    *_SCROLLING[2:],
    *_NEIGHBOURS,
    *_DIGITS,
    Binding(
        "r",
        "retry",
        "retry failed",
        tooltip="ask the dataset's failed prompts again (asks)",
        id="retry_failed",
    ),
    Binding(
        "x",
        "exclude",
        "exclude",
        tooltip="leave the selected provider out (asks), or let it in again",
        id="exclude_provider",
    ),
    *_STEERING,
    _JOURNAL,
    *_COMMON,
]
JOURNAL: list[Binding] = [_BACK, *_SCROLLING, *_STEERING[1:5], _FAILURES, *_COMMON]
ROW: list[Binding] = [
    _BACK,
    *_SCROLLING,
    Binding(
        "n,right",
        "older(1)",
        tooltip="the row before or after this one",
        group=_NEXT,
        id="next_row",
    ),
    Binding("N,left", "older(-1)", group=_NEXT, id="previous_row"),
    Binding("v", "tokens", "tokens", tooltip="token by token, or as text", id="tokens"),
    Binding(
        "w",
        "suspects",
        "suspects",
        tooltip="go only to rows that are suspect, or to all",
        id="suspects",
    ),
    *_COMMON,
]
_INTERRUPT = "ctrl+c"
APP_BINDINGS: list[Binding] = [
    Binding(
        _INTERRUPT,
        "interrupt",
        tooltip="drain: finish what is in flight; again: stop at once",
        priority=True,
    ),
]
SCREENS = {
    "overview": OVERVIEW,
    "dataset": DATASET,
    "errors": FAILURES,
    "journal": JOURNAL,
    "rows": ROW,
}
"""What is live together; a binding's `id` is the name that a keymap calls it by (tui.keymap)."""
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
    ("pause run", "speed", "1 min", "skip", "errors", "next", "suspects"),
    ("throttle", "scroll"),
    ("select", "journal"),
)
"""What a narrow footer keeps, the most important first."""
_RANKS = {short: rank for rank, shorts in enumerate(_KEPT) for short in shorts}
_LEAST = 5
_OTHER_WAY = {
    "throttle_down": "lower the ceiling in flight by about a tenth",
    "select_previous": "select the previous one",
    "scroll_up": "scroll up by a line",
    "page_up": "scroll up by a page",
    "last_line": "to the last line",
    "previous_dataset": "the previous dataset",
    "previous_row": "the row before this one",
}


def live(
    bindings: Iterable[Binding], *, every_key: bool, declared: Iterable[Binding] = ()
) -> list[Key]:
    """Bindings as footer and help draw them: one entry per action or group.

    They stand in the order in which they were `declared`, the others after them: those that a
    keymap has mapped come last from Textual.

    `every_key` lists alternatives (`j ↓ k ↑`) as well, for the help.
    """
    places = {binding.id or binding.key: place for place, binding in enumerate(declared)}
    last = len(places)
    places.setdefault(_INTERRUPT, places.get("quit_summary", last))
    groups: dict[object, list[Binding]] = {}
    for binding in sorted(bindings, key=lambda one: places.get(one.id or one.key, last)):
        # by identity: groups without a word for the footer would all be equal
        key = id(binding.group) if binding.group else binding.action
        groups.setdefault(key, []).append(binding)
    return [_entry(members, every_key) for members in groups.values()]


def shown(key: str) -> str:
    """A key as people know it."""
    return _SHOWN.get(key, key)


def sentence(binding: Binding) -> str:
    """What a binding does; of a group only the first one says it."""
    return binding.tooltip or _OTHER_WAY.get(binding.id or "", "")


def _entry(members: list[Binding], every_key: bool) -> Key:
    first = members[0]
    short = first.group.description if first.group else first.description
    if not every_key:
        members = list({binding.action: binding for binding in reversed(members)}.values())[::-1]
    keys = [shown(binding.key) for binding in members]
    digits = len(keys) > 1 and all(key.isdigit() for key in keys)
    text = f"{keys[0]}-{keys[-1]}" if digits else " ".join(keys)
    return Key(text, short, first.tooltip, _RANKS.get(short, _LEAST))
