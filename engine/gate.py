"""Says whether one more request of a dataset may start, by tokens and by dollars."""

from __future__ import annotations

from engine.budget import fits, fits_hard
from engine.plan import DEFAULT_MAX_TOKENS, DatasetPlan, Plan
from engine.schedule import Schedule
from engine.stats import DatasetStats, RunStats


class Gate:
    """Budgets of the run and of its datasets, in-flight requests reckoned in."""

    def __init__(self, plan: Plan, stats: RunStats) -> None:
        self._cap = plan.manifest.limits.max_cost_usd
        self._plans = {dataset.name: dataset for dataset in plan.datasets}
        self._stats = stats
        self._schedule: Schedule | None = None
        self._balance: float | None = None
        self._spent_at_balance = 0.0

    def attach(self, schedule: Schedule) -> None:
        """Name the schedule whose requests in flight count."""
        self._schedule = schedule

    def allows(self, name: str, in_flight: int) -> bool:
        """Whether a further request fits beside `in_flight` ones of the same dataset."""
        dataset = self._plans[name].dataset
        stats = self._stats.datasets[name]
        if not fits(
            dataset.token_budget, stats.totals.completion_tokens, in_flight, stats.tokens.in_flight
        ):
            return False
        each = stats.costs.in_flight
        if not fits_hard(dataset.max_cost_usd, stats.totals.cost_usd, in_flight, each):
            return False
        if self._cap is not None and self.spent() + self.in_flight_cost() + each > self._cap:
            return False
        funds = self.funds()
        return funds is None or self.in_flight_cost() + each <= funds

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
        return funds is not None and self.in_flight_cost() + self._cheapest() > funds

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

    def in_flight_cost(self) -> float:
        """USD that the requests in flight are expected to come to."""
        if self._schedule is None:
            return 0.0
        queues = self._schedule.queues.values()
        return sum(
            len(queue.in_flight) * self._stats.datasets[queue.name].costs.in_flight
            for queue in queues
        )

    def reached(self, name: str) -> bool:
        """Whether the dataset has reached its own token or dollar budget."""
        dataset = self._plans[name].dataset
        totals = self._stats.datasets[name].totals
        tokens, cap = dataset.token_budget, dataset.max_cost_usd
        each = self._stats.datasets[name].costs.in_flight
        return (tokens is not None and totals.completion_tokens >= tokens) or (
            cap is not None and totals.cost_usd + each > cap
        )

    def capped(self) -> bool:
        """Whether `max_cost_usd` leaves no room for one more request of any dataset."""
        if self._cap is None:
            return False
        return self.spent() + self.in_flight_cost() + self._cheapest() > self._cap

    def _cheapest(self) -> float:
        return min((s.costs.in_flight for s in self._stats.datasets.values()), default=0.0)

    def _rest(self, name: str) -> float:
        """USD that a dataset's remaining prompts are expected to cost."""
        if self._schedule is None or self._schedule.queues[name].skipped:
            return 0.0
        queue = self._schedule.queues[name]
        return (queue.left + len(queue.in_flight)) * self._stats.datasets[name].costs.mean


def dataset_stats(plan: Plan, dataset: DatasetPlan, start: float) -> DatasetStats:
    """Empty statistics with the worst case of this dataset's requests."""
    worst = float(dataset.max_tokens or DEFAULT_MAX_TOKENS)
    return DatasetStats(start, worst_tokens=worst, worst_cost=plan.worst_cost(dataset))
