"""What the keys mean that every full screen has: they act on the run and the chosen dataset."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from textual.binding import Binding
from textual.screen import Screen

from engine import format as fmt
from engine.commands import (
    Command,
    Drain,
    ExcludeProvider,
    IncludeProvider,
    RetryFailed,
    Skip,
    Stop,
    Throttle,
)
from engine.errors import UsageError
from tui import copies, keys, orders, questions, steering
from tui.desk import Desk
from tui.draw import notes, words
from tui.draw.keybar import Key
from tui.moot import moot
from tui.parting import Parting

_MESSAGE_FRAME = 11
"""Cells of the message line that are not its text: the edges, and the time of day."""


class Steered(Screen[None], inherit_bindings=False):
    """A full screen; `refresh_view` draws it anew and is called at the rate of the app."""

    AUTO_FOCUS = None

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.desk = desk

    def refresh_view(self) -> None:
        """Draw the newest snapshot, or the frozen one."""
        raise NotImplementedError

    def on_screen_resume(self) -> None:
        """Draw at once what came while another screen was on top."""
        self.refresh_view()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key's action is there for this viewer."""
        del parameters
        return action not in self.desk.viewer.exits.without

    def live_keys(self, *, every_key: bool = False) -> list[Key]:
        """The keys that do something now."""
        live = [active.binding for active in self.active_bindings.values() if active.enabled]
        if self._deaf():
            live = [one for one in live if one.action.partition("(")[0] not in steering.ACTIONS]
        declared = [one for one in self.BINDINGS if isinstance(one, Binding)]
        return keys.live(live, every_key=every_key, declared=declared)

    def choose(self, place: int) -> None:
        """Choose a dataset by its place, as a click on it does."""
        self.desk.choose(place)
        self.refresh_view()

    def action_choose_at(self, place: int) -> None:
        """Choose a dataset by its number."""
        self.choose(place)

    def action_neighbour(self, step: int) -> None:
        """Choose the next or the previous dataset."""
        self.desk.choose_next(step)
        self.refresh_view()

    def action_back(self) -> None:
        """To the screen below."""
        self.app.pop_screen()

    # steering

    def _deaf(self, command: Command | None = None) -> str:
        """Why no order is taken here; empty where one is."""
        steers = self.desk.viewer.exits.steers
        return steering.deaf(self.desk.helm.snapshot(), command, steers=steers)

    def _refuses(self, command: Command | None = None) -> bool:
        """Whether there is nothing to ask, as no order is taken; says why on the message line."""
        reason = self._deaf(command)
        if reason:
            self.desk.helm.say(reason, "warn")
            self.refresh_view()
        return bool(reason)

    def action_pause(self) -> None:
        """Pause or resume the chosen dataset."""
        view, helm = self.desk.current(), self.desk.helm
        if view is not None:
            self.desk.pin()
            helm.obey(steering.toggled(view, helm.wishes, helm.clock.monotonic()))
        self.refresh_view()

    def action_pause_run(self) -> None:
        """Pause or resume the run."""
        helm = self.desk.helm
        helm.obey(steering.toggled_run(helm.snapshot(), helm.wishes, helm.clock.monotonic()))
        self.refresh_view()

    def action_step(self, direction: int) -> None:
        """Raise or lower the ceiling by a step."""
        before = self.desk.helm.ceiling()
        after = steering.stepped(before, direction)
        if after != before:
            self.desk.helm.order(Throttle(after))
        self.refresh_view()

    def action_number(self) -> None:
        """Ask for the ceiling."""
        from tui.screens.dialogs import NumberScreen

        if self._refuses():
            return

        def decided(limit: int | None) -> None:
            if limit is not None:
                self.desk.helm.order(Throttle(limit))
            self.refresh_view()

        snapshot = self.desk.helm.snapshot()
        limit, ceiling = fmt.thousands(snapshot.limit), fmt.thousands(snapshot.limit_ceiling)
        title, note = "Ceiling of requests in flight", f"now {ceiling}, in use {limit}"
        gone = self._moot(Throttle(snapshot.limit_ceiling))
        self.app.push_screen(NumberScreen(self.desk.palette, title, note, gone), decided)

    def action_skip(self) -> None:
        """Ask whether to skip the chosen dataset, or to take its skip back."""
        view = self.desk.current()
        if view is None:
            return
        self.desk.pin()
        decision = steering.skipping(view)
        if isinstance(decision, str):
            self.desk.helm.obey(decision)
            self.refresh_view()
            return
        skips = isinstance(decision, Skip)
        self.ask_for(questions.skip(view) if skips else questions.unskip(view), decision)

    def action_retry(self) -> None:
        """Ask whether to ask the chosen dataset's failed prompts again."""
        view = self.desk.current()
        if view is None:
            return
        self.desk.pin()
        if not view.failed:
            self.desk.helm.say(f"{words.label(view)} has no failed prompts", "warn")
            self.refresh_view()
            return
        self.ask_for(questions.retry(view), RetryFailed(view.name))

    def action_exclude(self) -> None:
        """Ask which provider to leave out, or to let in again."""
        from tui.screens import providers

        if self._refuses():
            return
        providers.choose(self.app, self.desk, self.turn)
        self.refresh_view()

    def turn(self, order: ExcludeProvider | IncludeProvider) -> None:
        """Let a provider in again, or ask whether to leave it out."""
        helm = self.desk.helm
        if isinstance(order, IncludeProvider):
            helm.order(order)
            self.refresh_view()
        else:
            self.ask_for(questions.exclude(helm.snapshot(), order.provider), order)

    def action_undo(self) -> None:
        """Take the last command back."""
        self.desk.helm.undo()
        self.refresh_view()

    def action_freeze(self) -> None:
        """Freeze the view, or thaw it."""
        self.desk.freeze()
        self.refresh_view()

    def action_failures(self) -> None:
        """Errors and failed prompts of all datasets."""
        from tui.screens.failures import FailuresScreen

        self.app.push_screen(FailuresScreen(self.desk))

    def action_journal(self) -> None:
        """What was ordered and decided."""
        from tui.screens.journal import JournalScreen

        self.app.push_screen(JournalScreen(self.desk))

    def action_leave(self, summary: bool = False) -> None:
        """Leave a run that has ended or not begun; ask what becomes of one that goes on."""
        desk, exits = self.desk, self.desk.viewer.exits
        if desk.helm.handle.ended:
            desk.leave()
            return

        def leave_with(command: Command) -> None:
            desk.leave()
            desk.helm.order(command)

        def away() -> None:
            desk.viewer.depart(Parting.AWAY, summary=summary)

        if not exits.steers:
            away()
            return
        if desk.helm.snapshot().state == "starting" and not exits.remote:
            leave_with(Stop())  # nothing has been sent: there is nothing to ask
            return
        self.ask(
            questions.leave(desk.helm.snapshot(), exits),
            {
                "drain": lambda: leave_with(Drain()),
                "stop": lambda: leave_with(Stop()),
                "away": away,
            },
        )

    def action_command(self) -> None:
        """Type a command."""
        from tui.screens.dialogs import LineScreen

        helm = self.desk.helm

        def typed(line: str | None) -> None:
            try:
                order = orders.parse(line or "", helm.snapshot())
            except UsageError as error:
                helm.say(fmt.safe_text(str(error)), "warn")
                order = None
            if order is not None:
                self._carry_out(order)
            self.refresh_view()

        def complete(line: str) -> tuple[str, list[str]]:
            return orders.complete(line, helm.snapshot())

        screen = LineScreen(self.desk.palette, "Command", ":", complete=complete)
        self.app.push_screen(screen, typed)

    def _carry_out(self, order: Command | orders.Act) -> None:
        """Do what was typed; what is dear asks as its key does."""
        from tui.screens import theme

        snapshot = self.desk.helm.snapshot()
        views = {view.name: view for view in snapshot.datasets}
        match order:
            case orders.Act("go", name):
                self.choose(list(views).index(name))
            case orders.Act("use_theme", name):
                theme.use(self.desk, name)
            case orders.Act(action, _):
                getattr(self, f"action_{action}")()
            case Skip(name):
                self.ask_for(questions.skip(views[name]), order)
            case RetryFailed(str(name)):
                self.ask_for(questions.retry(views[name]), order)
            case ExcludeProvider(name):
                self.ask_for(questions.exclude(snapshot, name), order)
            case Drain() | Stop():
                exits = self.desk.viewer.exits
                self.ask_for(questions.end(snapshot, exits, stop=isinstance(order, Stop)), order)
            case _:
                self.desk.helm.order(order)

    def action_theme(self) -> None:
        """Choose a theme; each is seen while the cursor stands on it."""
        from tui.screens import theme

        theme.pick(self.app, self.desk, self.refresh_view)

    def action_copy(self) -> None:
        """Copy the view as text and save it."""
        self.run_worker(self._copy(self.as_text()), exit_on_error=False)

    async def _copy(self, text: str) -> None:
        said = f"copied {fmt.plural(text.count(chr(10)), 'line')}"
        if len(text.encode()) <= copies.CLIPBOARD_BYTES:
            self.app.copy_to_clipboard(text)
        else:
            said = "too long for the terminal's clipboard"
        view = self.desk.current()
        at = self.desk.helm.clock.wall()
        try:
            path = await asyncio.to_thread(copies.save, text, view.name if view else "run", at)
        except OSError as error:
            self.desk.helm.say(f"{said}; not saved: {fmt.safe_text(str(error))}", "warn")
        else:
            room = self.size.width - _MESSAGE_FRAME
            self.desk.helm.say(copies.said(said, path, room))
        self.refresh_view()

    def as_text(self) -> str:
        """What `y` copies."""
        raise NotImplementedError

    def action_mouse(self) -> None:
        """Mouse on or off."""
        on = self.desk.viewer.toggle_mouse()
        off = "mouse off: the terminal selects text again"
        self.desk.helm.say("mouse on: click a dataset, scroll with the wheel; m off" if on else off)
        self.refresh_view()

    def action_help(self) -> None:
        """The live keys, and how to read the screen."""
        from tui.screens.help import HelpScreen

        entries, measured = self.live_keys(every_key=True), self.desk.viewer.measured
        self.app.push_screen(HelpScreen(self.desk.palette, entries, notes.LEGEND, measured))

    def ask_for(self, question: questions.Question, command: Command) -> None:
        """Ask, and send the command on yes."""
        if not self.desk.viewer.exits.steers:
            self.desk.helm.order(command)  # who takes no orders says so, and nothing is asked
        elif not self._refuses(command):
            self.ask(question, {"yes": lambda: self.desk.helm.order(command)}, command)

    def ask(
        self,
        question: questions.Question,
        answers: dict[str, Callable[[], None]],
        about: Command | None = None,
    ) -> None:
        """Ask, and do what belongs to the answer; not when `about` has come about meanwhile."""
        from tui.screens.dialogs import AskScreen

        gone = self._moot(about)

        def answered(answer: str | None) -> None:
            act = answers.get(answer or "")
            if act is not None and not gone():
                act()
            self.refresh_view()

        self.app.push_screen(AskScreen(self.desk.palette, question, gone), answered)

    def _moot(self, command: Command | None) -> Callable[[], bool]:
        """Whether there is nothing to ask any more; says why on the message line."""
        helm = self.desk.helm

        def gone() -> bool:
            ended = "the run has ended" if helm.handle.ended else ""
            reason = ended or moot(command, helm.snapshot())
            if reason:
                helm.say(f"no longer: {reason}", "warn")
            return bool(reason)

        return gone
