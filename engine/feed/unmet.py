"""Which prompts on disk a source has not shown yet: what is left at its end is no longer in it."""

from __future__ import annotations

from engine.disk.keytable import prompt_number
from engine.disk.ledger import Ledger


class Unmet:
    """Prompts with rows or a failure that were not met so far; a byte for each."""

    def __init__(self, ledger: Ledger) -> None:
        ledger.seal()
        self._prompts = ledger.prompts
        self._met = bytearray(len(ledger.prompts))
        self._failed = set(ledger.failed)
        self.ok = len(ledger.prompts) - sum(map(ledger.known, self._failed))
        """Prompts with rows that were not given up."""

    @property
    def failed(self) -> int:
        """Prompts that were given up."""
        return len(self._failed)

    def meet(self, key: str) -> None:
        """The source has this prompt."""
        place = self._prompts.find(prompt_number(key))
        first = place >= 0 and not self._met[place]
        if first:
            self._met[place] = 1
        if key in self._failed:
            self._failed.remove(key)
        elif first:
            self.ok -= 1
