"""What operators ordered and when work was held, for the time axis; constant memory."""

from __future__ import annotations

from collections import deque

from engine.view.snapshot import EventSeries, Mark, Spell

MARKS_KEPT, SPELLS_KEPT = 64, 32
HELD = frozenset({"paused", "waiting"})
"""States in which a span is a spell: its silence is nobody's failure."""


class Happenings:
    """Times come in as monotonic seconds and leave as epoch seconds, as those of the series do."""

    def __init__(self) -> None:
        self._marks: deque[Mark] = deque(maxlen=MARKS_KEPT)
        self._spells: deque[Spell] = deque(maxlen=SPELLS_KEPT)
        self._since: tuple[float, str] | None = None

    def marked(self, now: float, command: str, text: str, dataset: str | None) -> None:
        """An operator's command was carried out."""
        self._marks.append(Mark(now, command, text, dataset))

    def entered(self, now: float, state: str) -> None:
        """The state from `now` on, as it is or as it was."""
        if self._since is not None and self._since[1] != state:
            start, held = self._since
            self._spells.append(Spell(start, now, held))
            self._since = None
        if self._since is None and state in HELD:
            self._since = (now, state)

    def series(self, now: float, wall: float) -> EventSeries:
        """All that is remembered, the oldest first."""
        late = wall - now
        spells = [Spell(s.start + late, (s.end or now) + late, s.state) for s in self._spells]
        if self._since is not None:
            spells.append(Spell(self._since[0] + late, None, self._since[1]))
        marks = (Mark(m.at + late, m.command, m.text, m.dataset) for m in self._marks)
        return EventSeries(tuple(marks), tuple(spells))
