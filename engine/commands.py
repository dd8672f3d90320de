"""What an operator can ask of a running engine; the keys, `control` and the socket all use these.

Wire form (DESIGN §6, control.sock): `{"command":"pause","dataset":null}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from engine.errors import UsageError


@dataclass(frozen=True, slots=True)
class Pause:
    """Stop new requests of one dataset, or of the run; what is in flight finishes."""

    dataset: str | None = None


@dataclass(frozen=True, slots=True)
class Resume:
    """Take a pause back."""

    dataset: str | None = None


@dataclass(frozen=True, slots=True)
class Throttle:
    """Set the ceiling of requests in flight."""

    limit: int


@dataclass(frozen=True, slots=True)
class Skip:
    """End a dataset's dispatch; survives a resume."""

    dataset: str


@dataclass(frozen=True, slots=True)
class Unskip:
    """Take a skip back."""

    dataset: str


@dataclass(frozen=True, slots=True)
class ExcludeProvider:
    """Ask the router to leave this provider out from now on."""

    provider: str


@dataclass(frozen=True, slots=True)
class IncludeProvider:
    """Take the exclusion of a provider back."""

    provider: str


@dataclass(frozen=True, slots=True)
class RetryFailed:
    """Put the prompts that were given up back into the schedule; of one dataset, or of all."""

    dataset: str | None = None


@dataclass(frozen=True, slots=True)
class Drain:
    """Finish what is in flight, then end."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Cancel what is in flight, then end."""


Command = (
    Pause
    | Resume
    | Throttle
    | Skip
    | Unskip
    | ExcludeProvider
    | IncludeProvider
    | RetryFailed
    | Drain
    | Stop
)

NAMES: dict[str, type[Command]] = {
    "pause": Pause,
    "resume": Resume,
    "throttle": Throttle,
    "skip": Skip,
    "unskip": Unskip,
    "exclude_provider": ExcludeProvider,
    "include_provider": IncludeProvider,
    "retry_failed": RetryFailed,
    "drain": Drain,
    "stop": Stop,
}
_NAME_OF = {kind: name for name, kind in NAMES.items()}


def name_of(command: Command) -> str:
    """The command's wire name."""
    return _NAME_OF[type(command)]


def to_wire(command: Command) -> dict[str, Any]:
    """The command as the object that control.sock and events.jsonl carry."""
    return {"command": name_of(command), **asdict(command)}


def from_wire(message: Mapping[str, Any]) -> Command:
    """Parse one command object; raises UsageError naming what is wrong."""
    name = message.get("command")
    kind = NAMES.get(name) if isinstance(name, str) else None
    if kind is None:
        raise UsageError(f"unknown command {name!r}", hint=f"known: {', '.join(NAMES)}")
    known = {field.name for field in fields(kind)}
    extra = set(message) - known - {"command"}
    if extra:
        raise UsageError(f"{name} does not take {', '.join(sorted(extra))}")
    values = {key: message[key] for key in known if message.get(key) is not None}
    _check(str(name), values)
    try:
        return kind(**values)
    except TypeError:
        missing = ", ".join(sorted(known - set(values)))
        raise UsageError(f"{name} needs {missing}") from None


def _check(name: str, values: Mapping[str, Any]) -> None:
    limit = values.get("limit", 1)
    if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
        raise UsageError(f"{name}: limit must be a whole number of at least 1, not {limit!r}")
    for key in ("dataset", "provider"):
        if not isinstance(values.get(key), str | None):
            raise UsageError(f"{name}: {key} must be a name, not {values[key]!r}")
