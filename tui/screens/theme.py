"""The theme picker: each theme is seen while the cursor stands on it."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import App

import themes
from engine import format as fmt
from tui.desk import Desk
from tui.screens.dialogs import Item, PickScreen

_NAME_CELLS = 24


def pick(app: App[None], desk: Desk, done: Callable[[], None]) -> None:
    """Let the person choose; `done` is called when the picker has closed."""
    before = desk.palette.theme.name
    entries: dict[str, themes.Listed] = {}
    for entry in themes.listed():
        name = fmt.safe_text(entry.name, _NAME_CELLS)
        entries[f"{name} (own)" if name in entries else name] = entry

    def shown(name: str) -> None:
        if not entries[name].fault:
            use(desk, entries[name].name)

    def chosen(name: str | None) -> None:
        entry = entries.get(name or "")
        if entry is None or entry.fault:
            use(desk, before)
        if entry is not None and entry.fault:
            desk.helm.say(fmt.safe_text(entry.fault), "warn")
        done()

    items = [
        Item(name, fmt.safe_text(entry.fault or entry.label), bool(entry.fault))
        for name, entry in entries.items()
    ]
    app.push_screen(PickScreen(desk.palette, "Theme", items, before, shown), chosen)


def use(desk: Desk, name: str) -> None:
    """Draw in this theme from now on, or say why it cannot be."""
    try:
        desk.viewer.use_theme(name)
    except (themes.ThemeError, OSError) as error:
        desk.helm.say(fmt.safe_text(str(error)), "warn")
