"""What is still to come of a run: rows, seconds and dollars, at what is known so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.format import duration, thousands
from engine.plan import DatasetPlan
from engine.schedule import Job, Queue
from engine.view.snapshot import NO_LIMIT, BindingLimit, DatasetView
from engine.view.stats import DatasetStats

STRAGGLERS = 20
"""So many prompts left, all in flight, are no longer forecast by a rate but told one by one."""
_TURNS_KNOWN_AFTER = 20
_UNFINISHED = frozenset({"queued", "running"})


class Outlook(NamedTuple):
    """Seconds to the end, None where nothing can be said, and which limit ends it first."""

    eta_s: float | None = None
    bound: BindingLimit = NO_LIMIT


def projected_usd(views: tuple[DatasetView, ...]) -> float | None:
    """Spent plus what is left at each dataset's mean cost a row; None while unknown."""
    known = {v.name: v.cost_usd / v.rows for v in views if v.rows and v.cost_usd}
    if not known:
        return None
    mean = sum(known.values()) / len(known)
    total = sum(view.cost_usd or 0.0 for view in views)
    for view in views:
        if view.state in {"queued", "running", "paused"}:
            total += rows_left(view, views) * known.get(view.name, mean)
    return total


def dataset_outlook(
    plan: DatasetPlan, queue: Queue, stats: DatasetStats, rate: float, now: float
) -> Outlook:
    """A dataset's end at its own rate of rows, but not before what waits is asked again.

    `now` is monotonic seconds. A rate says nothing of the last prompts: where only these are in
    flight, the end is when nine of ten replies of their age have come.
    """
    if lasts(queue):
        return Outlook(_reply_s(queue.in_flight, stats, now), "prompts")
    found = _by_rate(plan, queue, stats, rate)
    waits = waits_s(queue, now)
    if waits is None:
        return found
    last = waits + (stats.latency.quantile(0.5) or 0.0)
    if found.eta_s is None or found.eta_s < last:
        return Outlook(last, "prompts")
    return found


def lasts(queue: Queue) -> bool:
    """Whether only the last few prompts of a dataset are left, all of them in flight."""
    closed = queue.exhausted and not queue.ready and not queue.waiting
    return closed and 0 < len(queue.in_flight) <= STRAGGLERS


def lasts_words(flying: Sequence[Job], now: float) -> str:
    """`last 7 in flight, oldest 4m 12s`."""
    oldest = max((now - job.taken_at for job in flying), default=0.0)
    return f"last {thousands(len(flying))} in flight, oldest {duration(oldest)}"


def waits_s(queue: Queue, now: float) -> float | None:
    """Seconds until the last waiting prompt is asked again; None while others can still start."""
    if not queue.waiting or queue.ready or not queue.exhausted:
        return None
    return max(0.0, max(due for due, _, _ in queue.waiting) - now)


def run_eta(
    views: tuple[DatasetView, ...], rate: float, waits: float, *, lasts: bool
) -> float | None:
    """Seconds to the end of all datasets at the present rate, but not before the last one's.

    `waits` is how long the last waiting prompt waits; `lasts`: the run's last prompts are in
    flight. A rate says nothing of these: the run ends when the last dataset does.
    """
    unfinished = [view for view in views if view.state in _UNFINISHED]
    ends = [view.eta_s for view in unfinished]
    known = [end for end in ends if end is not None]
    if lasts or (waits and len(known) == len(ends)):
        return max(known, default=None) if len(known) == len(ends) else None
    if rate <= 0:
        return waits or None
    return max(waits, sum(rows_left(view, views) for view in unfinished) / rate)


def within_cap(
    eta_s: float | None, spent: float | None, projected: float | None, cap: float | None
) -> Outlook:
    """The run's end, or when its `max_cost_usd` is spent where that comes first (USD)."""
    if eta_s is None or spent is None or projected is None or cap is None or projected <= cap:
        return Outlook(eta_s)
    return Outlook(eta_s * max(0.0, cap - spent) / (projected - spent), "dollars")


def shared_eta(views: tuple[DatasetView, ...], place: int, rate: float) -> float | None:
    """When the dataset at `place` ends if the run goes on as it does: all before it come first."""
    if rate <= 0:
        return None
    before = [view for view in views[: place + 1] if view.state in _UNFINISHED]
    return sum(rows_left(view, views) for view in before) / rate


def rows_left(view: DatasetView, views: tuple[DatasetView, ...]) -> float:
    """Rows that a dataset still needs, by its prompts or by its token budget."""
    prompts = (view.pilot or view.prompts) - view.ok - view.failed - view.invalid
    rows = max(0, prompts) * _rows_per_prompt(view.rows, view.ok)
    known = [v.mean_completion_tokens for v in views if v.mean_completion_tokens]
    each = view.mean_completion_tokens or (sum(known) / len(known) if known else None)
    if view.token_budget is None or each is None:
        return rows
    return min(rows, max(0.0, (view.token_budget - view.completion_tokens) / each))


def _by_rate(plan: DatasetPlan, queue: Queue, stats: DatasetStats, rate: float) -> Outlook:
    if rate <= 0:
        return Outlook()
    target = min(queue.prompts, plan.pilot or queue.prompts)
    done = queue.ok + queue.failed + queue.invalid
    prompts = max(0, target - done) * _rows_per_prompt(stats.totals.rows, queue.ok) / rate
    found = [Outlook(prompts, "prompts")]
    budget, cap, totals = plan.dataset.token_budget, plan.dataset.max_cost_usd, stats.totals
    if budget is not None and stats.tokens.count:
        each = stats.tokens.total / stats.tokens.count
        left = max(0.0, budget - totals.completion_tokens)
        found.append(Outlook(left / max(1.0, each * rate), "tokens"))
    if cap is not None and stats.costs.total > 0:
        dollars = stats.costs.total / stats.costs.count * rate
        found.append(Outlook(max(0.0, cap - totals.cost_usd) / dollars, "dollars"))
    return min(found, key=lambda outlook: outlook.eta_s or 0.0)


def _reply_s(flying: set[Job], stats: DatasetStats, now: float) -> float | None:
    """Seconds until nine of ten replies have come to a request as young as the youngest one."""
    usual = stats.latency.quantile(0.9)
    if usual is None:
        return None
    left = usual - min(now - job.taken_at for job in flying)
    return left if left > 0 else None


def _rows_per_prompt(rows: int, ok: int) -> float:
    """Conversations have a row for each of their turns."""
    return max(1.0, rows / ok) if ok >= _TURNS_KNOWN_AFTER else 1.0
