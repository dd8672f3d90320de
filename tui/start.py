"""`eaglegen-tui` alone in a terminal: recent runs, `demo` and `init`, to choose from."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

import themes
from engine import format as fmt
from engine.clock import SystemClock
from engine.disk.rundir import STATUS, is_held, read_json
from engine.plan import Options, Shard
from engine.settings import load_settings
from tui import glyphs
from tui.driver import PatientDriver
from tui.jobs import Watching, check_theme, run_manifest
from tui.memory import Recent, recent
from tui.palette import Palette

Act = Literal["attach", "resume", "status", "demo", "init"]
_FOLDER_CELLS = 60


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the start screen, and what enter does on it."""

    act: Act
    glyph: str
    title: str
    detail: str
    run: Recent | None = None


def start_screen() -> int:
    """Show the list and do what was chosen; returns the exit code."""
    settings = load_settings(Path.cwd())
    check_theme(settings.theme)
    app = StartApp(entries(recent(), SystemClock().wall()), theme=settings.theme)
    chosen = app.run(mouse=False)
    app.release()
    return 0 if chosen is None else _do(chosen)


def entries(runs: Sequence[Recent], now: float) -> list[Entry]:
    """The runs, live ones first, then `demo` and `init`; `now` in epoch seconds."""
    known = [_entry(run, now) for run in runs]
    known.sort(key=lambda entry: entry.act != "attach")
    return [
        *known,
        Entry("demo", glyphs.DOT, "demo", "the main job on a local provider, in two minutes"),
        Entry("init", glyphs.DOT, "init", "a manifest, sample prompts and .env to start from"),
    ]


def options_of(run: Recent) -> Options:
    """What the command line had added to the manifest, so that it is the same run again."""
    kept: dict[str, Any] = run.options
    return Options(
        only=tuple(kept.get("only") or ()),
        concurrency=kept.get("concurrency"),
        output=Path(run.folder),
        base_url=kept.get("base_url"),
        shard=Shard(**(kept.get("shard") or {})),
        allow_short=bool(kept.get("allow_short")),
        max_error_rate=kept.get("max_error_rate"),
    )


def _entry(run: Recent, now: float) -> Entry:
    status = read_json(Path(run.folder) / STATUS)
    status = status if isinstance(status, dict) else {}
    views = status.get("datasets") or []
    done = sum(view.get(part, 0) for view in views for part in ("ok", "failed", "invalid"))
    total = sum(view.get("prompts", 0) for view in views)
    act, glyph, word = _life(run, status)
    progress = f"{fmt.thousands(done)} of {fmt.plural(total, 'prompt')}" if views else "no report"
    began = f"started {fmt.ago(max(0.0, now - run.started_at))}"
    title = f"{fmt.safe_text(run.name, 30)}  {word}"
    detail = f"{progress}  {began}  {fmt.safe_text(run.folder, _FOLDER_CELLS)}"
    return Entry(act, glyph, title, detail, run)


def _life(run: Recent, status: dict[str, Any]) -> tuple[Act, str, str]:
    """What enter does, and the state as a glyph and in words."""
    if is_held(Path(run.folder)):
        return "attach", glyphs.RUNNING, f"live: {status.get('state', 'starting')}; enter attaches"
    if not Path(run.manifest).is_file() or not run.manifest:
        return "status", glyphs.STOPPED, "ended; enter shows how"
    if status.get("state") == "done":
        return "resume", glyphs.DONE, "done; enter looks at it again"
    return "resume", glyphs.PAUSED, "ended with work left; enter goes on with it"


def _do(entry: Entry) -> int:
    run = entry.run
    if entry.act == "demo":
        from tui.demo.run import run_demo

        return run_demo(scale=None, output=None, watching=Watching())
    if run is None:
        from tui.cli import init

        init(Path())
        return 0
    if entry.act == "attach":
        from tui.control import attach

        return attach(Path(run.folder), read_only=False)
    if entry.act == "status":
        from tui.status import show_status

        return show_status(Path(run.folder), as_json=False)
    return run_manifest(Path(run.manifest), options_of(run), Watching())


class StartApp(App[Entry], inherit_bindings=False):
    """The list; comes back with what was chosen, or None."""

    CSS = """
    Screen { background: $eg-background; }
    #head, #foot { padding: 0 1; color: $eg-dim; background: $eg-surface; }
    OptionList { background: $eg-background; border: none; height: 1fr; padding: 0; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape,ctrl+c", "quit_now"),
        Binding("j", "move(1)"),
        Binding("k", "move(-1)"),
    ]

    def __init__(self, shown: list[Entry], *, theme: str) -> None:
        loaded = themes.load("mono" if os.environ.get("NO_COLOR") else theme)
        super().__init__(driver_class=PatientDriver, ansi_color=loaded.mono)
        self._entries = shown
        translated = Palette(loaded).textual()
        self.register_theme(translated)
        self.theme = translated.name

    def compose(self) -> ComposeResult:
        """A line above, the list, a line below."""
        yield Static(Content("eaglegen-tui: recent runs of this machine"), id="head")
        yield OptionList(*(Option(_prompt(entry)) for entry in self._entries))
        yield Static(Content("enter opens   j k move   q quits"), id="foot")

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter."""
        self.exit(self._entries[event.option_index])

    def action_move(self, step: int) -> None:
        """Up or down."""
        listed = self.query_one(OptionList)
        if step > 0:
            listed.action_cursor_down()
        else:
            listed.action_cursor_up()

    def action_quit_now(self) -> None:
        """Leave without a choice."""
        self.exit()

    def release(self) -> None:
        """Take the hands off the terminal once the app is gone."""
        if isinstance(self._driver, PatientDriver):
            self._driver.quiet()


def _prompt(entry: Entry) -> Content:
    return Content(f"{entry.glyph} {entry.title}\n  {entry.detail}")
