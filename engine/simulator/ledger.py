"""What the provider was asked and what it charged: the proof that nothing is paid twice."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import IO, TYPE_CHECKING, Any

import orjson

from engine.clock import iso

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """One request, written when its outcome is known.

    `prompt_hash` is over messages and tools, `body_hash` over these, the model and the sampling;
    `cost` is what was charged (USD); `cancelled` says that the client had gone by then. On a
    server of one's own a generation counts as charged though it costs nothing.
    """

    at: float
    id: str
    prompt_hash: str
    body_hash: str
    attempt: int
    provider: str | None
    status: int
    fault: str | None
    cost: float
    cached: bool
    cancelled: bool
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    latency_s: float


@dataclass(slots=True)
class Ledger:
    """Totals in memory, and every entry as a line of a file where one is given."""

    path: Path | None = None
    entries: list[Entry] = field(default_factory=list)
    requests: int = 0
    charged: int = 0
    cached: int = 0
    cancelled: int = 0
    cost_usd: float = 0.0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    by_status: Counter[int] = field(default_factory=Counter)
    by_fault: Counter[str] = field(default_factory=Counter)
    by_provider: Counter[str] = field(default_factory=Counter)
    charges: Counter[str] = field(default_factory=Counter)
    """Prompt hash: how often it was charged."""
    spent: dict[str, float] = field(default_factory=dict)
    """Prompt hash: what it cost in all (USD)."""
    max_in_flight: int = 0
    keep: bool = True
    """Keep the entries in memory too (tests); off for long runs."""
    _stream: IO[bytes] | None = None

    def __post_init__(self) -> None:
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self.path.open("ab")

    def add(self, entry: Entry) -> None:
        """Count an entry, and write it at once."""
        self.requests += 1
        self.cached += entry.cached
        self.cancelled += entry.cancelled
        self.by_status[entry.status] += 1
        if entry.fault:
            self.by_fault[entry.fault] += 1
        if entry.provider:
            self.by_provider[entry.provider] += 1
        if entry.cost > 0 or entry.completion_tokens > 0:
            self._charge(entry)
        if self.keep:
            self.entries.append(entry)
        if self._stream is not None:
            line = asdict(entry) | {"at": iso(entry.at)}
            self._stream.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            self._stream.flush()

    def _charge(self, entry: Entry) -> None:
        self.charged += 1
        self.cost_usd += entry.cost
        self.prompt_tokens += entry.prompt_tokens
        self.completion_tokens += entry.completion_tokens
        self.charges[entry.prompt_hash] += 1
        self.spent[entry.prompt_hash] = self.spent.get(entry.prompt_hash, 0.0) + entry.cost

    @property
    def paid_twice(self) -> dict[str, int]:
        """Prompt hash and number of charges, where there was more than one."""
        return {key: n for key, n in self.charges.items() if n > 1}

    def totals(self, *, by_prompt: bool = True) -> dict[str, Any]:
        """Return the totals as JSON can hold them."""
        totals: dict[str, Any] = {
            "requests": self.requests,
            "charged": self.charged,
            "cached": self.cached,
            "cancelled": self.cancelled,
            "cost_usd": self.cost_usd,
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "max_in_flight": self.max_in_flight,
            "by_status": {str(k): v for k, v in self.by_status.items()},
            "by_fault": dict(self.by_fault),
            "by_provider": dict(self.by_provider),
            "prompts_charged": len(self.charges),
            "paid_twice": self.paid_twice,
        }
        if by_prompt:
            totals["charges_by_prompt"] = dict(self.charges)
        return totals

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
