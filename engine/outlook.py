"""What is still to come of a run: rows, seconds and dollars, at what is known so far."""

from __future__ import annotations

from engine.plan import DatasetPlan
from engine.schedule import Queue
from engine.snapshot import NO_LIMIT, BindingLimit, DatasetView
from engine.stats import DatasetStats

_TURNS_KNOWN_AFTER = 20


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


def dataset_eta(
    plan: DatasetPlan, queue: Queue, stats: DatasetStats, rate: float
) -> tuple[float | None, BindingLimit]:
    """Seconds to the end at the present rate, and which limit ends it first."""
    if rate <= 0:
        return None, NO_LIMIT
    target = min(queue.prompts, plan.stop)
    done = queue.ok + queue.failed + queue.invalid
    prompts = max(0, target - done) * _rows_per_prompt(stats.totals.rows, queue.ok) / rate
    budget = plan.dataset.token_budget
    if budget is None or not stats.tokens.count:
        return prompts, "prompts"
    each = stats.tokens.total / stats.tokens.count
    tokens = max(0.0, budget - stats.totals.completion_tokens) / max(1.0, each * rate)
    return (tokens, "tokens") if tokens < prompts else (prompts, "prompts")


def run_eta(views: tuple[DatasetView, ...], rate: float) -> float | None:
    """Seconds to the end of all datasets at the present rate."""
    if rate <= 0:
        return None
    unfinished = [view for view in views if view.state in {"queued", "running"}]
    return sum(rows_left(view, views) for view in unfinished) / rate


def rows_left(view: DatasetView, views: tuple[DatasetView, ...]) -> float:
    """Rows that a dataset still needs, by its prompts or by its token budget."""
    prompts = (view.pilot or view.prompts) - view.ok - view.failed - view.invalid
    rows = max(0, prompts) * _rows_per_prompt(view.rows, view.ok)
    known = [v.mean_completion_tokens for v in views if v.mean_completion_tokens]
    each = view.mean_completion_tokens or (sum(known) / len(known) if known else None)
    if view.token_budget is None or each is None:
        return rows
    return min(rows, max(0.0, (view.token_budget - view.completion_tokens) / each))


def _rows_per_prompt(rows: int, ok: int) -> float:
    """Conversations have a row for each of their turns."""
    return max(1.0, rows / ok) if ok >= _TURNS_KNOWN_AFTER else 1.0
