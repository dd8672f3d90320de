"""The overview's key bindings in one table; footer and help are drawn from what is live of it."""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding

from tui.draw.keybar import Key

_MOVE = Binding.Group("select")
_DIGIT = Binding.Group("")
_THROTTLE = Binding.Group("throttle")

BINDINGS: list[Binding] = [
    Binding("j,down", "choose(1)", tooltip="select the next or the previous dataset", group=_MOVE),
    Binding("k,up", "choose(-1)", group=_MOVE),
    *(
        Binding(str(number), f"choose_at({number - 1})", tooltip="select by number", group=_DIGIT)
        for number in range(1, 10)
    ),
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
    Binding("f", "freeze", "freeze", tooltip="freeze the view, to read it; work goes on"),
    Binding("q", "leave", "quit", tooltip="quit: asks what becomes of the run"),
    Binding("Q", "leave(True)", tooltip="quit, and leave the summary in the scrollback"),
    Binding("question_mark,f1", "help", "help", tooltip="this help"),
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
    "escape": "esc",
    "f1": "F1",
}
_RANKS = {"help": 0, "quit": 0, "pause": 1, "pause run": 2, "skip": 2, "throttle": 3, "select": 4}
_LEAST = 5


def live(bindings: Iterable[Binding], *, every_key: bool) -> list[Key]:
    """Bindings as footer and help draw them: one entry per action or group, in the given order.

    `every_key` lists alternatives (`j ↓ k ↑`) as well, for the help.
    """
    groups: dict[object, list[Binding]] = {}
    for binding in bindings:
        groups.setdefault(binding.group or binding.action, []).append(binding)
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
