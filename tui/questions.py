"""What the screen asks before it does something dear, with the numbers at stake."""

from __future__ import annotations

from typing import NamedTuple

from engine import format as fmt
from engine.money.budget import KNOWN_AFTER
from engine.view.snapshot import DatasetView, Snapshot
from tui.draw import words
from tui.parting import Exits


class Choice(NamedTuple):
    """An answer: the keys that give it, what comes back, and what it means."""

    keys: tuple[str, ...]
    answer: str
    text: str


class Question(NamedTuple):
    """A title, sentences, and the answers; esc and n always lead back."""

    title: str
    lines: tuple[str, ...]
    choices: tuple[Choice, ...]
    danger: bool = False


YES = ("y", "enter")
NO = ("n", "escape")
ANSWER_KEYS = (*YES, *NO, "q", "b", "d", "x")
"""Every key that can answer a question."""


def skip(view: DatasetView) -> Question:
    """Before a dataset is skipped."""
    waiting = f", {fmt.thousands(view.waiting)} of them wait for a retry" if view.waiting else ""
    flying = f"{fmt.plural(view.in_flight, 'request')} in flight will finish and be kept."
    return Question(
        f"Skip {words.label(view)}?",
        (
            f"{fmt.plural(view.left, 'prompt')} left will not be asked{waiting}.",
            flying if view.in_flight else "Nothing of it is in flight.",
            "The skip survives a resume; s on it again takes it back.",
        ),
        (Choice(YES, "yes", "skip it"), Choice(NO, "", "keep it")),
    )


def unskip(view: DatasetView) -> Question:
    """Before a skip is taken back."""
    return Question(
        f"Take the skip of {words.label(view)} back?",
        (f"{fmt.plural(view.left, 'prompt')} left will be asked again.",),
        (Choice(YES, "yes", "go on with it"), Choice(NO, "", "leave it skipped")),
    )


def retry(view: DatasetView) -> Question:
    """Before the failed prompts of a dataset are asked again."""
    each = view.cost_usd / view.rows if view.cost_usd and view.rows else None
    cost = f"about {fmt.money(each * view.failed)}" if each else "an unknown amount"
    return Question(
        f"Retry the failed prompts of {words.label(view)}?",
        (
            f"{fmt.thousands(view.failed)} of {fmt.plural(view.prompts, 'prompt')} were given up.",
            f"That costs {cost} if all of them succeed.",
            "Undo cannot take that back.",
        ),
        (Choice(YES, "yes", "ask them again"), Choice(NO, "", "leave them failed")),
    )


def exclude(snapshot: Snapshot, name: str) -> Question:
    """Before a provider is left out."""
    view = next((one for one in snapshot.providers if one.name == name), None)
    gave = "It has given nothing yet."
    if view is not None:
        rows, errors = fmt.plural(view.rows, "row"), fmt.plural(view.errors, "error")
        gave = f"Over the whole run it gave {rows} and {errors}."
    return Question(
        f"Leave {fmt.safe_text(name, 40)} out from now on?",
        (
            gave,
            "What is in flight finishes.",
            "Undo lets it in again; so does a restart of the run.",
        ),
        (Choice(YES, "yes", "leave it out"), Choice(NO, "", "keep it")),
        True,
    )


def end(snapshot: Snapshot, exits: Exits, *, stop: bool) -> Question:
    """Before a typed command drains or stops the run."""
    what = f"stop at once: {at_stake(snapshot)}"
    if not stop:
        what = f"finish the {fmt.thousands(snapshot.in_flight)} in flight, then end"
    return Question(
        f"{'Stop' if stop else 'Drain'} {fmt.safe_text(snapshot.run, 50)}?",
        (exits.again,),
        (Choice(YES, "yes", what), Choice(NO, "", "back to the run")),
        True,
    )


def leave(snapshot: Snapshot, exits: Exits | None = None) -> Question:
    """Before the screen is left while the run goes on."""
    exits = exits or Exits()
    flying = fmt.thousands(snapshot.in_flight)
    choices = []
    if exits.remote:
        choices.append(Choice(("q", "b"), "away", "leave this screen: the run goes on"))
    if snapshot.state != "draining":
        choices.append(Choice(("d",), "drain", f"drain: finish the {flying} in flight, then end"))
    if exits.background and not exits.remote:
        choices.append(Choice(("b",), "away", "go on in the background: the shell is yours"))
    choices.append(Choice(("x",), "stop", f"stop at once: {at_stake(snapshot)}"))
    choices.append(Choice(NO, "", "back to the run"))
    return Question(
        f"Quit {fmt.safe_text(snapshot.run, 50)}?",
        _what_quitting_means(snapshot, exits),
        tuple(choices),
        True,
    )


def _what_quitting_means(snapshot: Snapshot, exits: Exits) -> tuple[str, str]:
    draining = snapshot.state == "draining"
    state = "It is draining: nothing new is sent." if draining else "The run has work left."
    if exits.remote:
        where = f"process {snapshot.pid} on {fmt.safe_text(snapshot.host, 30)}"
        return f"{state} {where} does it.", "Drain and stop end it for every viewer."
    return state, exits.again


def at_stake(snapshot: Snapshot) -> str:
    """What a stop throws away, in requests and dollars."""
    flying = fmt.thousands(snapshot.in_flight)
    if not snapshot.in_flight:
        return "nothing is in flight"
    if snapshot.in_flight_cost_usd is None:
        return f"lose the {flying} in flight, billed at an unknown cost"
    usd = fmt.money(snapshot.in_flight_cost_usd)
    return f"lose the {flying} in flight, {_likely(snapshot)} {usd} billed"


def _likely(snapshot: Snapshot) -> str:
    """`up to` where replies of this session are too few, so that their worst case is reckoned."""
    flying = [view for view in snapshot.datasets if view.in_flight]
    unknown = any(view.rows - view.restored_rows < KNOWN_AFTER for view in flying)
    return "up to" if unknown else "about"
