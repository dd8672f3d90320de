"""Puts a session together: what is on disk, the schedule, the statistics, the policies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from engine.clock import Clock, local_hm, randomness
from engine.disk.earlier import read_earlier
from engine.disk.jsonlines import Position, repair_tail
from engine.disk.ledger import ATTEMPTS, Ledger, split_id
from engine.disk.lost import Lost, lost_of
from engine.disk.records import unknown_record
from engine.disk.restore import read_ledger
from engine.disk.rundir import EVENTS, HISTORY
from engine.disk.sink import Sink
from engine.feed.feeder import Feeder
from engine.format import plural
from engine.journal import Journal, left_out, skipped_earlier
from engine.money.gate import Gate, dataset_stats
from engine.money.resend import Traces
from engine.pace.breaker import Breakers
from engine.pace.deadline import deadline_s
from engine.pace.limits import Limiter
from engine.pace.retry import RetryPolicy
from engine.plan import DatasetPlan, Plan
from engine.reading import Reader
from engine.schedule import Queue, Schedule
from engine.session import Session
from engine.view.stats import RunStats, Totals
from engine.wire.client import Client
from engine.wire.request import Asking


async def assemble(
    plan: Plan,
    *,
    client: Client,
    reader: Reader,
    clock: Clock,
    executor: ThreadPoolExecutor,
    seed: int | None = None,
    owned: Callable[[], bool] = lambda: True,
) -> Session:
    """Read the run directory and build the session that goes on from it."""
    loop = asyncio.get_running_loop()
    for name in (EVENTS, HISTORY):
        repair_tail(plan.folder / name)
    sink = Sink(plan.folder, owned=owned)
    journal = Journal(sink, clock)
    stats = RunStats(clock.monotonic())
    asking = Asking(plan.manifest.endpoint, plan.facts.api, plan.facts.token_ids)
    gate = Gate(plan, stats)
    read = Position()
    skipped = skipped_earlier(plan.folder, read)
    _say_left_out(journal, EVENTS, read)
    traces = Traces(caches=asking.caches)
    feeders: dict[str, Feeder] = {}
    queues: list[Queue] = []
    for dataset in plan.datasets:
        folder = plan.folder / dataset.name
        ledger = await loop.run_in_executor(executor, partial(read_ledger, folder))
        lost = lost_of(ledger)
        _record_unknown(sink, dataset.name, ledger)
        stats.datasets[dataset.name] = dataset_stats(plan, dataset, clock.monotonic())
        stats.datasets[dataset.name].restore(ledger)
        again = plan.options.retry_failed
        faults = partial(read_earlier, folder, ledger, retry_failed=again)
        earlier = await loop.run_in_executor(executor, faults)
        stats.datasets[dataset.name].verdicts.restore(earlier, rows=ledger.rows)
        _restore_lost(traces, stats.datasets[dataset.name].totals, lost, caches=asking.caches)
        _say_restored(journal, dataset.name, ledger)
        for file, position in ledger.positions.items():
            _say_left_out(journal, f"{dataset.name}/{file}", position)
        if asking.caches:
            _hold_back(journal, dataset.name, ledger, lost)
        feeder = _feeder(plan, dataset, ledger, asking, reader, executor)
        queue = Queue(dataset.name, dataset.prompts, skipped=dataset.name in skipped)
        feeder.restored(queue)
        feeders[dataset.name] = feeder
        queues.append(queue)
        _say_short(journal, dataset)
    schedule = Schedule(queues, allows=gate.allows)
    gate.attach(schedule)
    session = Session(
        plan=plan,
        clock=clock,
        rng=randomness(seed),
        client=client,
        asking=asking,
        reader=reader,
        sink=sink,
        journal=journal,
        schedule=schedule,
        stats=stats,
        gate=gate,
        limiter=Limiter(plan.concurrency, now=clock.monotonic()),
        breakers=Breakers(
            sole=not plan.facts.avoidable,
            route=tuple(plan.facts.slugs) if plan.facts.providers else (),
            clock_text=lambda moment: local_hm(clock.wall() + moment - clock.monotonic()),
        ),
        retry=RetryPolicy(max_attempts=plan.manifest.limits.max_attempts),
        traces=traces,
        feeders=feeders,
    )
    for note in plan.facts.notes:
        journal.note("note", note)
    return session


def _feeder(
    plan: Plan,
    dataset: DatasetPlan,
    ledger: Ledger,
    asking: Asking,
    reader: Reader,
    executor: ThreadPoolExecutor,
) -> Feeder:
    if plan.options.retry_failed:
        ledger.failed.clear()
    timeout = plan.manifest.limits.request_timeout_s
    # a cached resend is free only once the first request has ended
    resend_after = deadline_s(timeout, ledger.latency) if asking.caches else 0.0
    return Feeder(
        plan.manifest,
        dataset.dataset,
        ledger,
        plan.folder / dataset.name,
        stop=dataset.stop,
        as_served=reader.as_served,
        resend_after_s=resend_after,
        shard=plan.options.shard,
        whole=dataset.whole,
        executor=executor,
    )


def _restore_lost(traces: Traces, totals: Totals, lost: Lost, *, caches: bool) -> None:
    """Remember how they were asked, and reckon with their cost.

    With the response cache whoever has a row by now got it from the first request, for once.
    """
    for identifier, request in lost.open.items():
        traces.restore(identifier, request.ignore, request.count)
    totals.unseen = sum(each.count for each in lost.open.values()) if caches else lost.count
    totals.unpriced = lost.unpriced_rows


def _record_unknown(sink: Sink, name: str, ledger: Ledger) -> None:
    """What a kill left open becomes attempts of family `unknown`: requests = rows + attempts."""
    for sent in ledger.unknown:
        record = unknown_record(sent)
        sink.put(f"{name}/{ATTEMPTS}", record)
        ledger.costs_unknown += 1


def _hold_back(journal: Journal, name: str, ledger: Ledger, lost: Lost) -> None:
    """What nobody saw the end of is asked again once the first request has surely finished."""
    ledger.unknown = [{"id": i, "at": request.at} for i, request in lost.open.items()]
    waiting = sum(split_id(identifier)[0] not in ledger.failed for identifier in lost.open)
    if waiting:
        text = (
            f"{name}: {plural(waiting, 'reply', 'replies')} never seen; asked for again when the "
            "response cache has them for free (`response_cache = false` in the manifest asks at "
            "once, and may pay for them again)"
        )
        journal.note("note", text, dataset=name)


def _say_short(journal: Journal, dataset: DatasetPlan) -> None:
    asked, held = dataset.dataset.prompts, dataset.whole or dataset.prompts
    if held != asked:
        text = f"{dataset.name}: the manifest asks for {asked} prompts, its source holds "
        journal.note("note", f"{text}{held} (--allow-short)", dataset=dataset.name)


def _say_left_out(journal: Journal, place: str, read: Position) -> None:
    if words := left_out(place, read):
        journal.note("note", words)


def _say_restored(journal: Journal, name: str, ledger: Ledger) -> None:
    parts = []
    if ledger.rows:
        parts.append(f"{ledger.rows} rows on disk")
    if ledger.failed:
        parts.append(f"{len(ledger.failed)} prompts given up earlier")
    if ledger.unknown:
        parts.append(f"{len(ledger.unknown)} requests of unknown outcome")
    if ledger.torn:
        parts.append(f"{ledger.torn} torn last lines moved aside")
    if ledger.remark:
        journal.note("note", f"{name}: {ledger.remark}", dataset=name)
    if parts:
        journal.note("note", f"{name}: resumed with {', '.join(parts)}", dataset=name)
