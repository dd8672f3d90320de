"""Leaving a provider out, or taking that back: which one, where the cursor does not say."""

from __future__ import annotations

from collections.abc import Callable

from textual.app import App

from engine import format as fmt
from engine.commands import ExcludeProvider, IncludeProvider
from engine.view.snapshot import ProviderView, Snapshot
from tui.desk import Desk
from tui.screens.dialogs import Item, PickScreen

_NAME_CELLS = 28
_EXCLUDED = "excluded"
"""The state of such a provider in the snapshot."""
Chosen = Callable[[ExcludeProvider | IncludeProvider], None]


def choose(app: App[None], desk: Desk, chosen: Chosen) -> None:
    """Let the person pick a provider; `chosen` hears what is to become of it."""
    views = {fmt.safe_text(view.name, _NAME_CELLS): view for view in desk.helm.snapshot().providers}
    if not views:
        desk.helm.say("no provider has answered yet: nothing to leave out", "warn")
        return

    def picked(name: str | None) -> None:
        if name is not None:
            chosen(turned(desk.helm.snapshot(), views[name].name))

    items = [Item(name, _what(view)) for name, view in views.items()]
    title = "Leave a provider out, or let one in again"
    app.push_screen(PickScreen(desk.palette, title, items), picked)


def turned(snapshot: Snapshot, name: str) -> ExcludeProvider | IncludeProvider:
    """What `x` means for a provider: out, or in again where it is out."""
    out = any(view.name == name and is_out(view) for view in snapshot.providers)
    return IncludeProvider(name) if out else ExcludeProvider(name)


def is_out(view: ProviderView) -> bool:
    """Whether the router is asked to leave it out."""
    return view.state == _EXCLUDED


def _what(view: ProviderView) -> str:
    gave = f"{fmt.plural(view.rows, 'row')}, {fmt.plural(view.errors, 'error')}"
    return f"{gave}; left out" if is_out(view) else gave
