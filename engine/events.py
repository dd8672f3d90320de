"""What happened, in the past tense: the engine emits these, the statistics fold them."""

from __future__ import annotations

from dataclasses import dataclass

from engine.faults.fault import Fault


@dataclass(frozen=True, slots=True)
class RowSaved:
    """A reply became a row and is with the operating system."""

    dataset: str
    prompt: str
    provider: str | None
    completion_tokens: int | None
    cost: float | None
    exactness: str
    flags: tuple[str, ...]
    finish_reason: str
    started_at: float
    """Epoch seconds at which the successful attempt was sent."""
    latency_s: float
    unseen: int = 0
    """Earlier attempts that may have been billed without our seeing their replies."""
    cached: bool = False
    """The reply is theirs, from the response cache: nothing was paid twice."""
    id: str = ""
    text: str = ""
    """The beginning of the answer, as the server gave it."""


@dataclass(frozen=True, slots=True)
class AttemptFailed:
    """A request was sent and did not become a row."""

    dataset: str
    prompt: str
    fault: Fault


@dataclass(frozen=True, slots=True)
class PromptFailed:
    """A prompt was given up."""

    dataset: str
    prompt: str
    fault: Fault
    id: str = ""
    attempts: int = 0


Event = RowSaved | AttemptFailed | PromptFailed
