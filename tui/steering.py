"""What a key asks of the engine: pure decisions from the newest snapshot and the last wishes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field

from engine import format as fmt
from engine.commands import (
    Command,
    Drain,
    ExcludeProvider,
    IncludeProvider,
    Pause,
    Resume,
    RetryFailed,
    Skip,
    Stop,
    Throttle,
    Unskip,
)
from engine.view.snapshot import DatasetView, Snapshot
from tui.draw import words

_WISH_S = 3.0
"""Seconds for which a wish outlives a snapshot that does not show it yet."""
_STEPS = (1, 2, 5)
_OPPOSITES: dict[type[Command], Callable[..., Command]] = {
    Pause: Resume,
    Resume: Pause,
    Skip: Unskip,
    Unskip: Skip,
    ExcludeProvider: IncludeProvider,
    IncludeProvider: ExcludeProvider,
}


ACTIONS = frozenset({"pause", "pause_run", "step", "number", "skip", "undo", "retry", "exclude"})
"""Actions of the keys that end in an order: no footer offers them where none is taken."""


def deaf(snapshot: Snapshot, command: Command | None, *, steers: bool) -> str:
    """Why no order, or not this one, is taken, with what takes its place; empty where one is."""
    if snapshot.exit_code is None:
        return "" if steers else "attached read-only: no command is sent"
    if not isinstance(command, RetryFailed):
        return "the run has ended"
    chosen = (view for view in snapshot.datasets if command.dataset in {None, view.name})
    failed = fmt.thousands(sum(view.failed for view in chosen))
    return f"the run has ended: `run --retry-failed` takes up its {failed} failed"


def step_of(ceiling: int) -> int:
    """About a tenth of the ceiling, as 1, 2 or 5 times a power of ten: 2000 → 200, 150 → 10."""
    tenth, size = max(1, ceiling // 10), 1
    while size * 10 <= tenth:
        size *= 10
    return max(step * size for step in _STEPS if step * size <= tenth)


def stepped(ceiling: int, direction: int) -> int:
    """The next round ceiling up (+1) or down (-1), never below 1."""
    if direction < 0:
        step = step_of(max(1, ceiling - 1))
        return max(1, (ceiling - 1) // step * step)
    step = step_of(ceiling)
    return (ceiling // step + 1) * step


@dataclass
class Wishes:
    """What was asked and may not show yet, so that a second press means what it seems to."""

    _paused: dict[str | None, tuple[bool, float]] = field(default_factory=dict)
    _ceiling: tuple[int, float] | None = None

    def note(self, command: Command, now: float) -> None:
        """Remember a command that was just sent; `now` is monotonic."""
        if isinstance(command, Pause | Resume):
            self._paused[command.dataset] = (isinstance(command, Pause), now + _WISH_S)
        elif isinstance(command, Throttle):
            self._ceiling = (command.limit, now + _WISH_S)

    def refused(self, command: Command) -> None:
        """Forget a command that the engine refused."""
        if isinstance(command, Pause | Resume):
            self._paused.pop(command.dataset, None)
        elif isinstance(command, Throttle):
            self._ceiling = None

    def ceiling(self, snapshot: Snapshot, now: float) -> int:
        """The ceiling to step from."""
        if self._ceiling is not None and now < self._ceiling[1]:
            return self._ceiling[0]
        return snapshot.limit_ceiling

    def paused(self, key: str | None, shown: bool, now: float) -> bool:
        """Whether the dataset (None: the run) is paused, or is about to be."""
        wish = self._paused.get(key)
        return wish[0] if wish is not None and now < wish[1] else shown


def toggled_run(snapshot: Snapshot, wishes: Wishes, now: float) -> Command | str:
    """Pause or resume the whole run; a sentence where there is nothing to pause."""
    if snapshot.exit_code is not None:
        return "the run has ended: nothing to pause"
    if snapshot.state == "draining":
        return "the run is draining: nothing new is sent anyway"
    if snapshot.state == "paused" and not wishes.paused(None, snapshot.paused, now):
        return "each dataset left is paused by itself: p resumes them one by one"
    return Resume() if wishes.paused(None, snapshot.paused, now) else Pause()


def toggled(view: DatasetView, wishes: Wishes, now: float) -> Command | str:
    """Pause or resume one dataset; a sentence where that makes no sense."""
    if view.state in {"done", "budget", "skipped"}:
        word = words.dataset_state(view).text.lower()
        return f"{words.label(view)} is {word}: nothing to pause"
    if wishes.paused(view.name, view.state == "paused", now):
        return Resume(view.name)
    return Pause(view.name)


def skipping(view: DatasetView) -> Command | str:
    """Skip or unskip one dataset; a sentence where there is nothing left to skip."""
    if view.state == "skipped":
        return Unskip(view.name)
    if view.state in {"done", "budget"}:
        word = words.dataset_state(view).text.lower()
        return f"{words.label(view)} is {word}: nothing to skip"
    return Skip(view.name)


def inverse(command: Command, ceiling: int) -> Command | None:
    """What takes a command back; `ceiling` is the one before it. None where nothing does."""
    if isinstance(command, Throttle):
        return Throttle(ceiling)
    opposite = _OPPOSITES.get(type(command))
    return None if opposite is None else opposite(*asdict(command).values())


def asked(command: Command) -> str:
    """What the message line says until the engine answers."""
    match command:
        case Pause(dataset) | Resume(dataset):
            verb = "pausing" if isinstance(command, Pause) else "resuming"
            return f"{verb} {fmt.safe_text(dataset) if dataset else 'the whole run'}"
        case Throttle(limit):
            return f"setting the ceiling to {fmt.thousands(limit)} in flight"
        case Drain() | Stop():
            return "draining" if isinstance(command, Drain) else "stopping"
    return _asked_of(command)


def _asked_of(command: Command) -> str:
    match command:
        case Skip(name):
            return f"skipping {fmt.safe_text(name)}"
        case Unskip(name):
            return f"taking the skip of {fmt.safe_text(name)} back"
        case ExcludeProvider(name):
            return f"leaving {fmt.safe_text(name)} out"
        case IncludeProvider(name):
            return f"letting {fmt.safe_text(name)} answer again"
        case RetryFailed(name):
            return f"retrying the failed prompts of {fmt.safe_text(name) if name else 'the run'}"
    return "working"
