"""Orders that this viewer did not give: those of `control`, of other screens, and of signals."""

from __future__ import annotations

from collections import Counter

from engine import format as fmt
from engine.view.snapshot import JournalEntry, Snapshot

_WHO = {
    "control": "control or another viewer",
    "screen": "the run's own screen",
    "stdout": "the reader of stdout went away",
}
"""The origins of orders (engine.steering) in words; signals have their own names."""


class Overheard:
    """Finds the newest orders of others in the journal; what was there at first is history."""

    def __init__(self, own: str) -> None:
        """`own` is the origin that only this viewer's orders have; empty where there is none."""
        self._own = own
        self._answers: Counter[str] = Counter()
        self._seen: float | None = None

    def answered(self, text: str) -> None:
        """An order of this viewer was carried out with these words, the journal's too."""
        self._answers[text] += 1

    def news(self, snapshot: Snapshot) -> str:
        """What others ordered since the last look, in words; empty where they ordered nothing."""
        newest = max((entry.at for entry in snapshot.journal), default=snapshot.started_at)
        seen, self._seen = self._seen, newest
        if seen is None:
            return ""
        fresh = (entry for entry in snapshot.journal if entry.at > seen)
        others = [entry for entry in fresh if entry.origin and not self._is_ours(entry)]
        if not others:
            return ""
        last = others[-1]
        who = _WHO.get(last.origin, fmt.safe_text(last.origin, 20))
        more = f" (and {fmt.thousands(len(others) - 1)} more)" if len(others) > 1 else ""
        return f"{who}: {fmt.safe_text(last.text)}{more}"

    def _is_ours(self, entry: JournalEntry) -> bool:
        if self._own:
            return entry.origin == self._own
        if not self._answers[entry.text]:
            return False
        self._answers[entry.text] -= 1
        return True
