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
        return self._cap is None or self.spent() + self.in_flight_cost() + each <= self._cap

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
        cheapest = min((s.costs.in_flight for s in self._stats.datasets.values()), default=0.0)
        return self.spent() + self.in_flight_cost() + cheapest > self._cap


def dataset_stats(plan: Plan, dataset: DatasetPlan, start: float) -> DatasetStats:
    """Empty statistics with the worst case of this dataset's requests."""
    worst = float(dataset.max_tokens or DEFAULT_MAX_TOKENS)
    return DatasetStats(start, worst_tokens=worst, worst_cost=plan.worst_cost(dataset))
