"""Says whether one more request of a dataset may start, by tokens and by dollars."""

from __future__ import annotations

from collections.abc import Callable

from engine.money.budget import fits, fits_hard
from engine.plan import DEFAULT_MAX_TOKENS, DatasetPlan, Plan
from engine.schedule import Schedule
from engine.view.stats import DatasetStats, RunStats

LOOK_EVERY_S = 0.25
"""How long an expectation stands: with 2000 in flight a new one takes a millisecond."""
_CENT = 0.01


class Gate:
    """Budgets of the run and of its datasets, in-flight requests reckoned in."""

    def __init__(self, plan: Plan, stats: RunStats) -> None:
        self._cap = plan.manifest.limits.max_cost_usd
        self._plans = {dataset.name: dataset for dataset in plan.datasets}
        self._stats = stats
        self._schedule: Schedule | None = None
        self._looked: dict[str, float] = {}
        self._balance: float | None = None
        self._spent_at_balance = 0.0

    def attach(self, schedule: Schedule) -> None:
        """Name the schedule whose requests in flight count."""
        self._schedule = schedule

    def allows(self, name: str, in_flight: int) -> bool:
        """Whether a further request fits beside `in_flight` ones of the same dataset."""
        dataset = self._plans[name].dataset
        stats = self._stats.datasets[name]
        self._look(name)
        tokens = stats.tokens.reserve(in_flight + 1)
        if not fits(dataset.token_budget, stats.totals.completion_tokens, in_flight, tokens):
            return False
        cost = stats.costs.reserve(in_flight + 1)
        spent = stats.totals.cost_usd + stats.risked_usd
        if not fits_hard(dataset.max_cost_usd, spent, cost):
            return False
        if self._cap is None and self._balance is None:
            return True
        flying = self.in_flight_cost()
        spent = self.spent() + self.risked()
        return fits_hard(self._cap, spent, flying + stats.costs.each) and fits_hard(
            self.funds(), 0.0, flying + _held(stats)
        )

    def see_balance(self, usd: float | None) -> None:
        """The account's balance as just read; None where it is not known."""
        self._balance = usd
        self._spent_at_balance = self.spent()

    def funds(self) -> float | None:
        """USD the account holds, by the last reading less what was spent since."""
        if self._balance is None:
            return None
        return self._balance - (self.spent() - self._spent_at_balance)

    def short_of_funds(self) -> bool:
        """Whether the balance holds no further request beside those in flight."""
        funds = self.funds()
        return funds is not None and self.in_flight_cost() + self._cheapest(_held) > funds

    def funds_words(self) -> str:
        """How much there is, and how much the prompts left are expected to need."""
        need = sum(self._rest(name) for name in self._plans)
        return (
            f"the balance is ${self.funds() or 0.0:,.2f}, what is left needs about ${need:,.2f}; "
            "top up and the run goes on by itself"
        )

    def spent(self) -> float:
        """USD known to be spent over all sessions."""
        return sum(stats.totals.cost_usd for stats in self._stats.datasets.values())

    def risked(self) -> float:
        """USD that may have been spent besides: replies never seen, rows without a cost."""
        return sum(stats.risked_usd for stats in self._stats.datasets.values())

    def in_flight_cost(self) -> float:
        """USD that the requests in flight are expected to come to."""
        if self._schedule is None:
            return 0.0
        queues = self._schedule.queues.values()
        return sum(
            self._stats.datasets[queue.name].costs.reserve(len(queue.in_flight)) for queue in queues
        )

    def reached(self, name: str) -> bool:
        """Whether the dataset has reached its own token or dollar budget."""
        dataset = self._plans[name].dataset
        stats = self._stats.datasets[name]
        tokens, cap = dataset.token_budget, dataset.max_cost_usd
        spent = stats.totals.cost_usd + stats.risked_usd
        return (tokens is not None and stats.totals.completion_tokens >= tokens) or (
            cap is not None and spent + stats.costs.each > cap
        )

    def capped(self) -> bool:
        """Whether `max_cost_usd` leaves no room for one more request of any dataset."""
        if self._cap is None:
            return False
        spent = self.spent() + self.risked()
        return spent + self.in_flight_cost() + self._cheapest(_expected) > self._cap

    def cap_words(self) -> str:
        """What the cap has gone into."""
        unsure = self.risked()
        besides = f", up to {_usd(unsure)} in replies never seen or not priced" if unsure else ""
        return (
            f"max_cost_usd leaves no room for another request of about "
            f"{_usd(self._cheapest(_expected))}: {_usd(self.spent())} of {_usd(self._cap or 0.0)} "
            f"spent{besides}; raise it and run again"
        )

    def _cheapest(self, usd: Callable[[DatasetStats], float]) -> float:
        """USD of one more request of the cheapest dataset that still has any."""
        queues = self._schedule.queues.values() if self._schedule else ()
        names = [queue.name for queue in queues if not queue.complete]
        return min((usd(self._stats.datasets[name]) for name in names), default=0.0)

    def _look(self, name: str) -> None:
        """Let the expectations see how long the requests in flight have taken by now."""
        if (
            self._schedule is None
            or self._schedule.now - self._looked.get(name, -1.0) < LOOK_EVERY_S
        ):
            return
        now = self._looked[name] = self._schedule.now
        ages = [now - job.taken_at for job in self._schedule.queues[name].in_flight]
        self._stats.datasets[name].tokens.look(ages)
        self._stats.datasets[name].costs.look(ages)

    def _rest(self, name: str) -> float:
        """USD that a dataset's remaining prompts are expected to cost."""
        if self._schedule is None or self._schedule.queues[name].skipped:
            return 0.0
        queue, stats = self._schedule.queues[name], self._stats.datasets[name]
        rows_each = max(1.0, stats.totals.rows / queue.ok) if queue.ok else 1.0
        rows = (queue.left + len(queue.in_flight)) * rows_each
        budget, tokens = self._plans[name].dataset.token_budget, stats.totals.completion_tokens
        if budget is not None and tokens:
            rows = min(rows, max(0, budget - tokens) * stats.totals.rows / tokens)
        return rows * stats.row_usd


def _expected(stats: DatasetStats) -> float:
    """USD that one more request is expected to come to."""
    return stats.costs.each


def _held(stats: DatasetStats) -> float:
    """USD that an account must hold for one more request: its max_tokens, whatever it will need.

    OpenRouter refuses with a terminal 402 what the balance cannot hold (facts/openrouter.md §0).
    """
    return max(stats.costs.worst, stats.costs.each)


def dataset_stats(plan: Plan, dataset: DatasetPlan, start: float) -> DatasetStats:
    """Empty statistics with the worst case of this dataset's requests."""
    worst = float(dataset.max_tokens or DEFAULT_MAX_TOKENS)
    return DatasetStats(start, worst_tokens=worst, worst_cost=plan.worst_cost(dataset))


def _usd(amount: float) -> str:
    """Dollars with as many digits as tell it from nothing: a cap may be below a cent."""
    return f"${amount:,.2f}" if amount >= _CENT or not amount else f"${amount:.2g}"
