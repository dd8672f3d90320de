"""What the detail screens show of a dataset's newest rows and failures, in constant memory."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

from engine.events import AttemptFailed, PromptFailed, RowSaved
from engine.format import safe_text
from engine.view.snapshot import FailureLine, RowLine

ROWS_KEPT, FAILURES_KEPT = 12, 20
TEXT_CELLS = 80
_TEXT_READ = 120
"""Characters of an answer that are looked at for its beginning."""
_CAUSES_MOST = 80
"""Providers are named from outside: the words of further causes are not kept."""


def head_of(reasoning: str | None, content: str | None) -> str:
    """The beginning of an answer, of its reasoning where it has no content."""
    return (content or reasoning or "")[:_TEXT_READ]


def bucket(tokens: int) -> int:
    """The smallest power of two that is not below `tokens`: the histogram's upper bound."""
    return 1 << max(0, tokens - 1).bit_length()


class Glimpse:
    """One dataset's newest rows and failures, lengths, finish reasons and the servers' words."""

    def __init__(self) -> None:
        self.rows: deque[RowLine] = deque(maxlen=ROWS_KEPT)
        self.failures: deque[FailureLine] = deque(maxlen=FAILURES_KEPT)
        self.lengths: Counter[int] = Counter()
        self.finish_reasons: Counter[str] = Counter()
        self._words: dict[tuple[str, str | None], str] = {}

    def restore(
        self,
        lengths: Counter[int],
        finish_reasons: Counter[str],
        failures: Iterable[FailureLine],
    ) -> None:
        """Begin with what earlier sessions left on disk."""
        self.lengths.update(lengths)
        self.finish_reasons.update(finish_reasons)
        self.failures.extend(failures)

    def row_saved(self, event: RowSaved, wall: float) -> None:
        """Take a row in; `wall` is epoch seconds."""
        if event.completion_tokens is not None:
            self.lengths[bucket(event.completion_tokens)] += 1
        self.finish_reasons[event.finish_reason] += 1
        line = RowLine(
            id=event.id,
            at=wall,
            provider=event.provider,
            tokens=event.completion_tokens,
            grade=event.exactness,
            flags=event.flags,
            finish_reason=event.finish_reason,
            latency_s=event.latency_s,
            text=safe_text(event.text, TEXT_CELLS),
        )
        self.rows.append(line)
        if self.failures:  # one that was retried has its row now
            left = (failure for failure in self.failures if failure.id != event.id)
            self.failures = deque(left, maxlen=FAILURES_KEPT)

    def attempt_failed(self, event: AttemptFailed) -> None:
        """Keep the newest words of each cause."""
        key = (event.fault.family, event.fault.provider)
        if key in self._words or len(self._words) < _CAUSES_MOST:
            self._words[key] = event.fault.message

    def prompt_failed(self, event: PromptFailed, wall: float) -> None:
        """Take a given-up prompt in; `wall` is epoch seconds."""
        fault = event.fault
        line = FailureLine(
            event.id or event.prompt, wall, fault.family, fault.message, event.attempts
        )
        self.failures.append(line)

    def words(self, family: str, provider: str | None) -> str:
        """What the server last said to this cause; empty where nothing is known."""
        return self._words.get((family, provider), "")

    def histogram(self) -> tuple[tuple[int, int], ...]:
        """(upper bound, rows) from the shortest to the longest, powers of two without a gap."""
        if not self.lengths:
            return ()
        bound, last = min(self.lengths), max(self.lengths)
        bounds = []
        while bound <= last:
            bounds.append((bound, self.lengths.get(bound, 0)))
            bound *= 2
        return tuple(bounds)
