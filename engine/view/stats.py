"""Folds events into the numbers that the snapshot shows; one writer, constant memory."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from engine.disk.ledger import Ledger
from engine.events import AttemptFailed, Event, PromptFailed, RowSaved
from engine.money.budget import Expectation
from engine.money.resend import unseen
from engine.verdicts.verdict import VerdictBook
from engine.view.glimpse import Glimpse
from engine.view.happenings import Happenings
from engine.view.series import Axis, Families, Gauge, Quantiles, Recent

PRICED_AFTER = 10
"""Rows after which their mean cost stands for that of a reply which was never seen."""
EXPORTABLE = frozenset({"engine", "matched"})


@dataclass(slots=True)
class Totals:
    """Counts that survive a resume: the ledger's plus this session's."""

    rows: int = 0
    restored_rows: int = 0
    completion_tokens: int = 0
    exportable_tokens: int = 0
    cost_usd: float = 0.0
    costs_known: int = 0
    costs_unknown: int = 0
    attempt_errors: int = 0
    unseen: int = 0
    """Attempts without a row that may have been billed, their replies not having been seen."""
    doubted: int = 0
    """Those of them whose generation has got its row from another request in this session."""
    unpriced: int = 0
    """Rows whose cost nobody told."""
    exactness: Counter[str] = field(default_factory=Counter)
    flags: Counter[str] = field(default_factory=Counter)

    def restore(self, ledger: Ledger) -> None:
        """Begin with what is on disk."""
        self.rows = self.restored_rows = ledger.rows
        self.completion_tokens = ledger.completion_tokens
        self.exportable_tokens = ledger.exportable_tokens
        self.cost_usd = ledger.cost_usd
        self.costs_known = ledger.costs_known
        self.costs_unknown = ledger.costs_unknown
        self.attempt_errors = ledger.attempt_errors
        self.exactness.update(ledger.exactness)
        self.flags.update(ledger.flags)

    def count_cost(self, cost: float | None, *, sent: bool) -> None:
        """Add a known cost, or note that one is unknown."""
        if cost is not None:
            self.cost_usd += cost
            self.costs_known += 1
        elif sent:
            self.costs_unknown += 1

    @property
    def cost(self) -> float | None:
        """USD; None while nothing is known of it."""
        return self.cost_usd if self.costs_known or not self.costs_unknown else None


class DatasetStats:
    """One dataset's numbers."""

    def __init__(self, start: float, *, worst_tokens: float, worst_cost: float) -> None:
        self.totals = Totals()
        self.rate = Axis(start)
        self.errors = Families(start)
        self.happenings = Happenings()
        self.recent = Recent()
        self.latency = Quantiles()
        self.generated = Quantiles()
        """Seconds of the replies that were generated for this session."""
        self.tokens = Expectation(worst_tokens)
        self.costs = Expectation(worst_cost)
        self.verdicts = VerdictBook()
        self.glimpse = Glimpse()

    def restore(self, ledger: Ledger) -> None:
        """Begin with what is on disk; rates and expectations are this session's own."""
        self.totals.restore(ledger)
        self.latency = ledger.latency
        self.glimpse.restore(ledger.lengths, ledger.finish_reasons, ledger.given_up)

    @property
    def row_usd(self) -> float:
        """USD that a row has come to over all sessions; the worst case while too few are known."""
        priced = self.totals.rows - self.totals.unpriced
        return self.totals.cost_usd / priced if priced >= PRICED_AFTER else self.costs.mean

    @property
    def risked_usd(self) -> float:
        """USD that may have been spent beyond what is known, as a cap has to reckon with it.

        Three standard deviations above the expectation: costs scatter about as much as their mean.
        """
        count = self.totals.unseen + self.totals.unpriced
        return (count + 3.0 * math.sqrt(count)) * self.row_usd

    def paid_twice(self, *, caches: bool) -> int:
        """Attempts that may be paid beside their row; the response cache makes a resend free."""
        return self.totals.doubted if caches else self.totals.unseen


@dataclass(slots=True)
class ProviderStats:
    """One provider's numbers over the run."""

    rows: int = 0
    errors: int = 0
    completion_tokens: int = 0
    cost: Totals = field(default_factory=Totals)
    recent: Recent = field(default_factory=Recent)


class RunStats:
    """The whole run's numbers."""

    def __init__(self, start: float) -> None:
        self.datasets: dict[str, DatasetStats] = {}
        self.providers: dict[str, ProviderStats] = {}
        self.rate = Axis(start)
        self.tokens_rate = Axis(start)
        self.errors_rate = Axis(start)
        self.errors = Families(start)
        self.happenings = Happenings()
        self.limit = Gauge(start)
        self.recent_rows = Recent()
        self.recent_tokens = Recent()
        self.rows = 0
        self.hopeless = 0
        """Prompts given up one after the other since the session's start, before any row."""
        self._folds: dict[type[Event], Callable[..., None]] = {
            RowSaved: self._row_saved,
            AttemptFailed: self._attempt_failed,
            PromptFailed: self._prompt_failed,
        }

    def fold(self, event: Event, now: float, wall: float) -> None:
        """Count one event; `now` monotonic, `wall` epoch seconds."""
        self._folds[type(event)](event, now, wall)

    def elapse(self, now: float, seconds: float, *, paused: bool, idle: frozenset[str]) -> None:
        """Tell every series that time has passed; `idle` datasets were not being worked on."""
        for axis in (self.rate, self.tokens_rate, self.errors_rate):
            axis.elapse(now, seconds, paused=paused)
        for name, stats in self.datasets.items():
            stats.rate.elapse(now, seconds, paused=paused or name in idle)

    def _row_saved(self, event: RowSaved, now: float, wall: float) -> None:
        self.rows += 1
        stats = self.datasets[event.dataset]
        totals = stats.totals
        tokens = event.completion_tokens or 0
        totals.rows += 1
        totals.completion_tokens += tokens
        totals.exactness[event.exactness] += 1
        totals.flags.update(event.flags)
        totals.count_cost(event.cost, sent=True)
        if event.cached:
            totals.unseen -= event.unseen
        else:
            totals.doubted += event.unseen
        totals.unpriced += event.cost is None
        if event.exactness in EXPORTABLE and not event.flags:
            totals.exportable_tokens += tokens
        stats.rate.add(now, 1)
        stats.recent.add(now, 1)
        if not event.cached:  # a hit says nothing of how long a generation takes
            stats.latency.add(event.latency_s)
            stats.generated.add(event.latency_s)
        stats.tokens.add(tokens, event.latency_s)
        if event.cost is not None:
            stats.costs.add(event.cost, event.latency_s)
        stats.verdicts.attempt_succeeded(
            wall, event.prompt, event.provider, started_at=event.started_at
        )
        stats.glimpse.row_saved(event, wall)
        self.rate.add(now, 1)
        self.tokens_rate.add(now, tokens)
        self.recent_rows.add(now, 1)
        self.recent_tokens.add(now, tokens)
        provider = self._provider(event.provider)
        provider.rows += 1
        provider.completion_tokens += tokens
        provider.recent.add(now, tokens)
        provider.cost.count_cost(event.cost, sent=True)

    def _attempt_failed(self, event: AttemptFailed, now: float, wall: float) -> None:
        fault = event.fault
        stats = self.datasets[event.dataset]
        totals = stats.totals
        totals.count_cost(fault.cost, sent=fault.sent)
        totals.unseen += unseen(fault)
        if not fault.counts:
            return
        totals.attempt_errors += 1
        self.errors_rate.add(now, 1)
        self.errors.add(now, fault.family)
        stats.errors.add(now, fault.family)
        self._provider(fault.provider).errors += 1
        stats.glimpse.attempt_failed(event)
        stats.verdicts.attempt_failed(
            wall,
            fault.family,
            fault.provider,
            event.prompt,
            scope=str(fault.scope),
            retry=fault.retry,
        )

    def _prompt_failed(self, event: PromptFailed, now: float, wall: float) -> None:
        del now
        self.hopeless += not self.rows
        stats = self.datasets[event.dataset]
        stats.verdicts.prompt_failed(wall, event.prompt, event.fault.family)
        stats.glimpse.prompt_failed(event, wall)

    def _provider(self, name: str | None) -> ProviderStats:
        return self.providers.setdefault(name or "unnamed", ProviderStats())
