"""The `:` command line: words into a command of the engine or the screen, and completion."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import themes
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
from engine.errors import UsageError
from engine.view.snapshot import Snapshot


class Act(NamedTuple):
    """What the screen itself does: an action's name, and what it is about."""

    action: str
    about: str = ""


class _Verb(NamedTuple):
    make: Callable[[str], Command | Act]
    kind: str = ""
    """What its word is: `dataset`, `provider`, `theme`, `number`, or empty for none."""
    optional: bool = False


_VERBS: dict[str, _Verb] = {
    "pause": _Verb(lambda name: Pause(name or None), "dataset", True),
    "resume": _Verb(lambda name: Resume(name or None), "dataset", True),
    "throttle": _Verb(lambda number: Throttle(int(number)), "number"),
    "skip": _Verb(Skip, "dataset"),
    "unskip": _Verb(Unskip, "dataset"),
    "retry": _Verb(lambda name: RetryFailed(name or None), "dataset", True),
    "exclude": _Verb(ExcludeProvider, "provider"),
    "include": _Verb(IncludeProvider, "provider"),
    "go": _Verb(lambda name: Act("go", name), "dataset"),
    "theme": _Verb(lambda name: Act("use_theme", name), "theme"),
    "errors": _Verb(lambda _: Act("failures")),
    "journal": _Verb(lambda _: Act("journal")),
    "copy": _Verb(lambda _: Act("copy")),
    "mouse": _Verb(lambda _: Act("mouse")),
    "help": _Verb(lambda _: Act("help")),
    "drain": _Verb(lambda _: Drain()),
    "stop": _Verb(lambda _: Stop()),
    "quit": _Verb(lambda _: Act("leave")),
}


def parse(line: str, snapshot: Snapshot) -> Command | Act | None:
    """What a line asks for; None for an empty one. Raises UsageError that says what is wrong.

    A verb, a dataset, a provider or a theme may be shortened as long as one is meant.
    """
    word, _, rest = line.strip().partition(" ")
    if not word:
        return None
    name = _one_of(word, list(_VERBS), "command")
    verb, rest = _VERBS[name], rest.strip()
    if not verb.kind and rest:
        raise UsageError(f"{name} takes nothing more")
    if verb.kind and not rest and not verb.optional:
        raise UsageError(f"{name} needs a {verb.kind}")
    if verb.kind == "number":
        rest = _number(name, rest)
    elif rest:
        rest = _one_of(rest, names(verb.kind, snapshot), verb.kind)
    return verb.make(rest)


def complete(line: str, snapshot: Snapshot) -> tuple[str, list[str]]:
    """The line with what is sure of its last word, and all that this word can be."""
    word, space, rest = line.lstrip().partition(" ")
    if not space:
        found = _starting(word, list(_VERBS))
        return _sure(word, found, " "), found
    verbs = _starting(word, list(_VERBS))
    verb = _VERBS.get(word) or (_VERBS[verbs[0]] if len(verbs) == 1 else None)
    found = _starting(rest.lstrip(), names(verb.kind, snapshot)) if verb else []
    return f"{word} {_sure(rest.lstrip(), found, '')}", found


def names(kind: str, snapshot: Snapshot) -> list[str]:
    """All that a word of this kind can be."""
    if kind == "dataset":
        return [view.name for view in snapshot.datasets]
    if kind == "provider":
        return [view.name for view in snapshot.providers]
    return [entry.name for entry in themes.listed()] if kind == "theme" else []


def _number(name: str, text: str) -> str:
    digits = text.replace(",", "").replace("_", "")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= len("999999999")):
        raise UsageError(f"{name} needs a whole number of at least 1, not {text!r}")
    if not int(digits):
        raise UsageError(f"{name} needs a whole number of at least 1")
    return digits


def _one_of(word: str, known: list[str], kind: str) -> str:
    exact = [name for name in known if name.lower() == word.lower()]
    found = exact or _starting(word, known)
    if len(found) == 1:
        return found[0]
    listed = ", ".join(found or known) or "none yet"
    what = "could be several" if found else "is not known"
    raise UsageError(f"{kind} {word!r} {what}: {listed}")


def _starting(word: str, known: list[str]) -> list[str]:
    return [name for name in known if name.lower().startswith(word.lower())]


def _sure(word: str, found: list[str], end: str) -> str:
    """The longest beginning that all of them share."""
    if not found:
        return word
    if len(found) == 1:
        return found[0] + end
    first, last = min(found), max(found)
    shared = next((n for n in range(len(first)) if first[: n + 1] != last[: n + 1]), len(first))
    return first[:shared] if shared >= len(word) else word
