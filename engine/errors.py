"""The one error tree and the one exit-code enum.

    EaglegenError                 a fault of ours (exit 1)
    ├── UsageError                the user can mend it; nothing was sent (exit 2)
    │   ├── ManifestError         file, key and line of a manifest
    │   ├── SourceError           a prompt source that cannot serve its dataset
    │   ├── IdentityError         the run directory belongs to a run with another identity
    │   ├── SettingsError         environment, `.env` or a command-line value
    │   └── VocabularyError       a vocabulary that is missing or not the pinned one
    ├── RunHeldError              another process does this run (exit 5)
    ├── RunUnreachableError       no live process answers on the run directory (exit 2)
    └── EndpointError             the endpoint ends the run: auth, credits, model, route (exit 4)

What happens to a single request is data (`engine.faults.fault.Fault`), never an exception.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process tells its caller (DESIGN §5)."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    INCOMPLETE = 3
    ENDPOINT = 4
    HELD = 5
    COST_CAP = 6
    INTERRUPTED = 130


class EaglegenError(Exception):
    """Root of everything this package raises on purpose.

    `hint` says what to do next; front ends print it on a line of its own.
    """

    exit_code = ExitCode.INTERNAL

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class UsageError(EaglegenError):
    """The command, a file or a value is wrong; nothing was sent."""

    exit_code = ExitCode.USAGE


class ManifestError(UsageError):
    """A manifest that cannot be run; names file, key and line where TOML gives it."""


class SourceError(UsageError):
    """A prompt source that is missing, unreadable as a whole, or shorter than its dataset."""


class IdentityError(UsageError):
    """The output folder holds a run with another identity."""


class SettingsError(UsageError):
    """A setting that is missing or malformed."""


class VocabularyError(UsageError):
    """A vocabulary that cannot be found, or whose sha256 is not the pinned one."""


class RunHeldError(EaglegenError):
    """Another process holds `run.lock`."""

    exit_code = ExitCode.HELD


class RunUnreachableError(UsageError):
    """No live process answers for this run directory."""


class EndpointError(EaglegenError):
    """The endpoint refuses the whole run: authentication, credits, model or route."""

    exit_code = ExitCode.ENDPOINT
