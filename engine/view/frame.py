"""Builds the Snapshot from a session, and status.json from a Snapshot (DESIGN §6)."""

from __future__ import annotations

import heapq
import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from engine.clock import iso
from engine.plan import DatasetPlan
from engine.schedule import Queue
from engine.session import Session
from engine.view.outlook import (
    Outlook,
    dataset_outlook,
    lasts,
    projected_usd,
    run_eta,
    shared_eta,
    waits_s,
    within_cap,
)
from engine.view.reasons import dataset_reason, in_leftover_slots, run_reason, waiting_reason
from engine.view.snapshot import (
    DatasetView,
    ErrorLine,
    Flying,
    Forecast,
    Latency,
    ProviderView,
    Snapshot,
)
from engine.view.stats import DatasetStats, ProviderStats

_SLOWEST_SHOWN = 20
_STATUS = (
    *("schema", "run", "state", "reason", "pid", "host", "started_at", "heartbeat_at"),
    *("elapsed_s", "model", "limit", "limit_ceiling", "in_flight", "rows_per_s"),
    *("completion_tokens_per_s", "cost_usd", "cost_unknown_attempts", "max_cost_usd"),
    "loop_lag_ms",
)
_DATASET = (
    *("name", "state", "prompts", "ok", "failed", "invalid", "in_flight", "left", "rows"),
    *("attempt_errors", "completion_tokens", "token_budget", "cost_usd", "rows_per_s", "eta_s"),
    *("exactness", "flags"),
)
_ERROR = ("family", "provider", "count", "verdict", "first_at", "last_at", "evidence")
_TIMES = frozenset({"started_at", "heartbeat_at", "first_at", "last_at"})


class Framer:
    """Makes the snapshots of one session."""

    def __init__(
        self,
        session: Session,
        *,
        started_wall: float,
        started: float,
        forecasts: Mapping[str, Forecast] = MappingProxyType({}),
    ) -> None:
        """`forecasts` are those of the datasets by name, and the run's under the empty one."""
        self._session = session
        self._forecasts = forecasts
        self._started_wall = started_wall
        self._started = started
        self._host = socket.gethostname()

    def snapshot(self, *, lag_s: float) -> Snapshot:
        """The run as it is now."""
        session = self._session
        now, wall = session.clock.monotonic(), session.clock.wall()
        views = self._datasets(now, wall)
        queues = session.schedule.queues
        paused = session.schedule.paused or _all_held(list(queues.values()))
        held = session.limiter.held_until(now)
        waiting = waiting_reason(session, held, now)
        work_left = not session.schedule.complete
        course, stats = session.course, session.stats
        state = course.state(paused=paused, waiting=waiting, work_left=work_left)
        incomplete = any(view.failed or view.invalid for view in views)
        rows_per_s = stats.recent_rows.per_second(now)
        caches = session.asking.caches
        cost, cap = _cost(stats.datasets), session.plan.manifest.limits.max_cost_usd
        projected = None if course.draining or course.ended else projected_usd(views)
        eta = None if self._halted() else self._run_eta(views, rows_per_s, now)
        end = within_cap(eta, cost, projected, cap)
        twice = [(s.paid_twice(caches=caches), s.row_usd) for s in stats.datasets.values()]
        return Snapshot(
            run=session.plan.manifest.run.name,
            state=state,
            reason=run_reason(session, state, waiting, now),
            pid=os.getpid(),
            host=self._host,
            started_at=self._started_wall,
            heartbeat_at=wall,
            elapsed_s=now - self._started,
            model=session.plan.manifest.endpoint.model,
            limit=session.limiter.limit,
            limit_ceiling=session.limiter.ceiling,
            in_flight=session.schedule.in_flight,
            rows_per_s=rows_per_s,
            completion_tokens_per_s=stats.recent_tokens.per_second(now),
            cost_usd=cost,
            cost_unknown_attempts=sum(s.totals.costs_unknown for s in stats.datasets.values()),
            max_cost_usd=cap,
            loop_lag_ms=lag_s * 1000,
            datasets=views,
            output=str(session.plan.folder),
            endpoint=session.plan.manifest.endpoint.base_url,
            limit_reason=session.limiter.reason,
            in_flight_cost_usd=session.gate.in_flight_cost(),
            projected_cost_usd=projected,
            twice_attempts=sum(count for count, _ in twice),
            twice_usd=_usd(twice),
            eta_s=end.eta_s,
            ends_by=end.bound,
            paused=session.schedule.paused,
            providers=self._providers(now),
            journal=tuple(session.journal.recent),
            journal_total=session.journal.count,
            rate=stats.rate.series(now, wall),
            tokens_rate=stats.tokens_rate.series(now, wall),
            errors_rate=stats.errors_rate.series(now, wall),
            limit_series=stats.limit.series(now, wall),
            errors_by_family=stats.errors.series(now, wall),
            events=stats.happenings.series(now, wall),
            forecast=self._forecasts.get(""),
            exit_code=int(course.exit_code(work_left=work_left, incomplete=incomplete))
            if course.ended
            else None,
        )

    def _datasets(self, now: float, wall: float) -> tuple[DatasetView, ...]:
        """Every dataset; what only gets leftover slots, or none yet, is forecast by the run."""
        session = self._session
        views = tuple(self._dataset(plan, now, wall) for plan in session.plan.datasets)
        if self._halted():
            return views
        rate = session.stats.recent_rows.per_second(now)
        return tuple(
            replace(view, eta_s=shared_eta(views, place, rate), rate_limited_by="")
            if self._shares(view)
            else view
            for place, view in enumerate(views)
        )

    def _shares(self, view: DatasetView) -> bool:
        """Whether its own rate says nothing of its end."""
        schedule = self._session.schedule
        if view.state == "queued":
            return True
        queue = schedule.queues[view.name]
        return (
            view.state == "running"
            and in_leftover_slots(schedule, view.name)
            and not (queue.exhausted and not queue.ready)
        )

    def _run_eta(self, views: tuple[DatasetView, ...], rate: float, now: float) -> float | None:
        queues = self._session.schedule.queues.values()
        waits = (waits_s(queue, now) for queue in queues)
        last = max((each for each in waits if each is not None), default=0.0)
        open_ = [queue for queue in queues if not queue.complete]
        return run_eta(views, rate, last, lasts=bool(open_) and all(map(lasts, open_)))

    def _dataset(self, plan: DatasetPlan, now: float, wall: float) -> DatasetView:
        session = self._session
        queue = session.schedule.queues[plan.name]
        stats = session.stats.datasets[plan.name]
        totals = stats.totals
        rate = stats.recent.per_second(now)
        halted = self._halted() or queue.state != "running"
        outlook = Outlook() if halted else dataset_outlook(plan, queue, stats, rate, now)
        return DatasetView(
            name=plan.name,
            state=queue.state,
            prompts=queue.prompts,
            ok=queue.answered,
            failed=queue.failed,
            invalid=queue.invalid,
            in_flight=len(queue.in_flight),
            left=queue.left,
            rows=totals.rows,
            attempt_errors=totals.attempt_errors,
            completion_tokens=totals.completion_tokens,
            token_budget=plan.dataset.token_budget,
            cost_usd=totals.cost,
            rows_per_s=rate,
            eta_s=outlook.eta_s,
            exactness=dict(totals.exactness),
            flags=dict(totals.flags),
            errors=_with_words(stats, wall),
            reason=dataset_reason(session.schedule, queue, plan, now),
            manifest_prompts=plan.dataset.prompts
            if plan.dataset.prompts != queue.prompts
            else None,
            pilot=plan.pilot,
            waiting=len(queue.waiting),
            restored_rows=totals.restored_rows,
            rate_limited_by=outlook.bound,
            mean_completion_tokens=totals.completion_tokens / totals.rows if totals.rows else None,
            attempts=stats.verdicts.rate(wall),
            rate=stats.rate.series(now, wall),
            errors_by_family=stats.errors.series(now, wall),
            events=stats.happenings.series(now, wall),
            forecast=self._forecasts.get(plan.name),
            exportable_tokens=totals.exportable_tokens,
            latency=Latency(*(stats.latency.quantile(share) for share in (0.5, 0.9, 0.99))),
            lengths=stats.glimpse.histogram(),
            finish_reasons=dict(stats.glimpse.finish_reasons),
            slowest=_slowest(queue, now),
            last_rows=tuple(reversed(stats.glimpse.rows)),
            last_failures=tuple(reversed(stats.glimpse.failures)),
        )

    def _providers(self, now: float) -> tuple[ProviderView, ...]:
        views = (self._provider(name, s, now) for name, s in self._session.stats.providers.items())
        return tuple(sorted(views, key=lambda view: -view.rows))

    def _provider(self, name: str, stats: ProviderStats, now: float) -> ProviderView:
        session = self._session
        words = session.reader.words(name)
        state = "excluded" if name in session.excluded else session.breakers.state_words(name, now)
        return ProviderView(
            name=name,
            rows=stats.rows,
            errors=stats.errors,
            completion_tokens=stats.completion_tokens,
            tokens_per_s=stats.recent.per_second(now),
            cost_usd=stats.cost.cost,
            profile=words.profile,
            prompt_delta=words.prompt_delta,
            state=state,
        )

    def _halted(self) -> bool:
        """Whether nothing new will start as things are: a forecast would mislead."""
        course = self._session.course
        return self._session.schedule.paused or course.draining or course.ended


def status(snapshot: Snapshot) -> dict[str, Any]:
    """status.json's object: exactly the contract's fields."""
    record = _pick(snapshot, _STATUS)
    record["datasets"] = [dataset_status(view) for view in snapshot.datasets]
    return record


def dataset_status(view: DatasetView) -> dict[str, Any]:
    """One dataset's fields of status.json."""
    record = _pick(view, _DATASET)
    record["errors"] = [_pick(line, _ERROR) for line in view.errors]
    return record


def _pick(record: Any, names: Any) -> dict[str, Any]:
    values = {name: getattr(record, name) for name in names}
    return {
        name: iso(value)
        if name in _TIMES
        else round(value, 6)
        if isinstance(value, float)
        else value
        for name, value in values.items()
    }


def _with_words(stats: DatasetStats, wall: float) -> tuple[ErrorLine, ...]:
    """Every error family with its verdict, and what the server last said to it."""
    lines = stats.verdicts.lines(wall)
    return tuple(replace(x, words=stats.glimpse.words(x.family, x.provider)) for x in lines)


def _slowest(queue: Queue, now: float) -> tuple[Flying, ...]:
    oldest = heapq.nsmallest(_SLOWEST_SHOWN, queue.in_flight, key=lambda job: job.taken_at)
    return tuple(Flying(job.id, max(0.0, now - job.taken_at), job.attempt) for job in oldest)


def _all_held(queues: list[Queue]) -> bool:
    open_ = [queue for queue in queues if not queue.complete]
    return bool(open_) and all(queue.paused for queue in open_)


def _cost(datasets: dict[str, DatasetStats]) -> float | None:
    known = [s.totals.cost for s in datasets.values() if s.totals.cost is not None]
    return sum(known) if known else None


def _usd(items: list[tuple[int, float]]) -> float | None:
    """Counts at what each costs; None where the price of some is unknown."""
    known = all(each for count, each in items if count)
    return sum(count * each for count, each in items) if known else None
