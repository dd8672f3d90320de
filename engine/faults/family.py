"""What an error family is: one row of the table in `engine.faults.families`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """Whom a fault concerns, and so what has to act."""

    ATTEMPT = "attempt"
    PROMPT = "prompt"
    PROVIDER = "provider"
    ACCOUNT = "account"
    RUN = "run"


@dataclass(frozen=True, slots=True)
class Family:
    """One row of the table."""

    name: str
    scope: Scope
    retry: bool
    tries: int | None
    """Own cap on the attempts of one prompt; None: the manifest's `max_attempts`."""
    wait_s: float | None
    """Seconds to wait where the server names none; None: back-off with jitter."""
    sent: bool
    """False only where surely nothing reached the server."""
    counts: bool
    """False where the attempt ended by our own doing: no error of the endpoint."""
    words: str
    """What it means, one short sentence."""
    action: str
    """What the operator can do; empty where there is nothing to do."""


def passing(
    name: str,
    words: str,
    *,
    scope: Scope = Scope.PROVIDER,
    tries: int | None = None,
    wait_s: float | None = None,
    sent: bool = True,
    counts: bool = True,
    action: str = "",
) -> Family:
    """A row for what may pass: another attempt can help."""
    return Family(name, scope, True, tries, wait_s, sent, counts, words, action)


def final(
    name: str,
    words: str,
    *,
    scope: Scope,
    sent: bool = True,
    counts: bool = True,
    action: str = "",
) -> Family:
    """A row for what stays as it is until somebody mends it."""
    return Family(name, scope, False, 1, None, sent, counts, words, action)
