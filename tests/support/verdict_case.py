"""Plays attempts into a VerdictBook second by second, from 14:00:00 on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from engine.verdicts.verdict import VerdictBook, VerdictChange
from engine.view.snapshot import ErrorLine

START = datetime(2026, 11, 30, 14, 0, 0, tzinfo=UTC).timestamp()


def clock_text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S")


def at(text: str) -> float:
    """Epoch seconds of `14:02:10` on that day."""
    hours, minutes, seconds = (int(part) for part in text.split(":"))
    return START + (hours - 14) * 3600 + minutes * 60 + seconds


@dataclass
class Case:
    """One dataset under way; `now` moves on as attempts are played."""

    now: float = START
    book: VerdictBook = field(default_factory=lambda: VerdictBook(clock_text))
    seen: list[VerdictChange] = field(default_factory=list)
    _prompt: int = 0

    def fresh(self) -> int:
        """A prompt that was not used before."""
        self._prompt += 1
        return self._prompt

    def ok(self, prompt: int | None = None, provider: str | None = "siliconflow") -> None:
        self.book.attempt_succeeded(self.now, prompt or self.fresh(), provider)

    def bad(
        self,
        prompt: int | None = None,
        *,
        family: str = "rate_limit",
        provider: str | None = "siliconflow",
        scope: str = "provider",
        retry: bool = True,
    ) -> int:
        hit = prompt or self.fresh()
        self.book.attempt_failed(self.now, family, provider, hit, scope=scope, retry=retry)
        return hit

    def give_up(self, prompt: int, family: str = "rate_limit") -> None:
        self.book.prompt_failed(self.now, prompt, family)

    def play(self, until: str, second: Callable[[int], None]) -> None:
        """Call `second(i)` for each whole second until a time of day, looking as a screen would."""
        index = 0
        while self.now < at(until):
            second(index)
            self.look()
            self.now += 1.0
            index += 1

    def calm(self, until: str, per_s: int = 20, provider: str | None = "siliconflow") -> None:
        """Only successes."""

        def second(_index: int) -> None:
            for _ in range(per_s):
                self.ok(provider=provider)

        self.play(until, second)

    def idle(self, until: str) -> None:
        """Nothing ends."""
        self.play(until, lambda _i: None)

    def look(self) -> tuple[ErrorLine, ...]:
        lines = self.book.lines(self.now)
        self.seen += self.book.changes()
        return lines

    def line(self, family: str = "rate_limit", provider: str | None = "siliconflow") -> ErrorLine:
        found = [
            line for line in self.look() if line.family == family and line.provider == provider
        ]
        assert len(found) == 1
        return found[0]

    def verdicts(self, family: str = "rate_limit") -> list[str]:
        """The verdicts that a family went through."""
        return [change.new for change in self.seen if change.family == family]
