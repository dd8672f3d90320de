"""Several processes' snapshots as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from engine.fleet.journal import FleetJournal
from engine.fleet.merge import Fleet, Part, gravest, merge
from engine.fleet.view import Whole
from engine.view.snapshot import (
    AttemptRate,
    DatasetView,
    ErrorLine,
    JournalEntry,
    Latency,
    ProviderView,
    Series,
    Snapshot,
)

NOW = 1_000_000.0
FLEET = Fleet("story", {"B6": Whole(15_000, 15_000, 10_000_000)}, 86.0, "out", "kimi", "http://x")


def line(verdict: Any, count: int, evidence: str, at: float = NOW) -> ErrorLine:
    return ErrorLine("rate_limit", "SiliconFlow", count, verdict, at - 60, at, evidence)


def view(**more: Any) -> DatasetView:
    fields: dict[str, Any] = {"state": "running", "prompts": 5000, "ok": 100, "left": 4890}
    fields |= {"in_flight": 10, "rows": 100, "completion_tokens": 1000, "cost_usd": 1.5}
    return DatasetView("B6", **(fields | more))


def snapshot(*views: DatasetView, **more: Any) -> Snapshot:
    fields: dict[str, Any] = {
        "run": "story shard 1/3",
        "state": "running",
        "reason": "",
        "pid": 1,
        "host": "a",
        "started_at": NOW - 100,
        "heartbeat_at": NOW,
        "elapsed_s": 100.0,
        "model": "kimi",
        "limit": 600,
        "limit_ceiling": 667,
        "in_flight": 10,
        "rows_per_s": 6.5,
        "completion_tokens_per_s": 100.0,
        "cost_usd": 1.5,
        "cost_unknown_attempts": 1,
        "max_cost_usd": 28.67,
        "loop_lag_ms": 2.0,
        "datasets": views or (view(),),
    }
    return Snapshot(**(fields | more))


def part(number: int, *views: DatasetView, live: bool = True, **more: Any) -> Part:
    return Part(f"shard {number}/3", snapshot(*views, **more), live=live)


def test_counts_are_summed_and_the_total_is_the_manifests() -> None:
    whole = merge(FLEET, [part(1), part(2), part(3, view(failed=4, ok=96))], NOW)
    merged = whole.datasets[0]
    assert (merged.prompts, merged.ok, merged.failed, merged.in_flight) == (15_000, 296, 4, 30)
    assert merged.left == 15_000 - 296 - 4 - 30
    assert (merged.rows, merged.completion_tokens, merged.cost_usd) == (300, 3000, 4.5)
    assert (merged.token_budget, merged.mean_completion_tokens) == (10_000_000, 10.0)
    assert (whole.rows_per_s, whole.limit, whole.limit_ceiling) == (19.5, 1800, 2001)
    assert (whole.cost_usd, whole.max_cost_usd, whole.cost_unknown_attempts) == (4.5, 86.0, 3)
    assert whole.run == "story"
    assert whole.state == "running"


def test_the_greatest_rate_is_never_below_the_present_one() -> None:
    idle = view(rate=Series(NOW - 10, 5.0, (0.0, 0.0)), rows_per_s=0.0)
    unseen = view(rows_per_s=7.6)  # as status.json has it: no series
    merged = merge(FLEET, [part(1, idle, rows_per_s=0.0), part(2, unseen)], NOW)
    assert merged.datasets[0].rate == Series(NOW - 10, 5.0, (0.0, 7.6))
    alone = merge(FLEET, [part(2, unseen)], NOW)
    assert alone.datasets[0].rate == Series(NOW - 1, 1.0, (7.6,))
    assert alone.rate == Series(NOW - 1, 1.0, (6.5,))


def test_nothing_is_done_while_the_prompts_of_a_missing_one_are_left() -> None:
    ended = view(state="done", ok=5000, left=0, in_flight=0)
    parts = [part(n, ended, state="done", live=False) for n in (1, 2)]
    whole = merge(FLEET, [*parts, Part("shard 3/3", missing=True)], NOW)
    assert (whole.datasets[0].state, whole.datasets[0].left) == ("running", 5000)
    whole = merge(FLEET, [*parts, part(3, ended, state="done", live=False)], NOW)
    assert (whole.datasets[0].state, whole.datasets[0].left) == ("done", 0)


def test_quantiles_are_the_greatest_of_all() -> None:
    slow, quick = view(latency=Latency(1.0, 9.0, 10.0)), view(latency=Latency(2.0, 3.0, None))
    assert merge(FLEET, [part(1, slow), part(2, quick)], NOW).datasets[0].latency == Latency(
        2.0, 9.0, 10.0
    )


def test_attempts_and_lengths_are_summed() -> None:
    one = view(attempts=AttemptRate(1, 10, 300.0, 5, 50), lengths=((256, 3), (512, 1)))
    merged = merge(FLEET, [part(1, one), part(2, one)], NOW).datasets[0]
    assert merged.attempts == AttemptRate(2, 20, 300.0, 10, 100)
    assert merged.lengths == ((256, 6), (512, 2))


def test_the_verdict_is_the_worst_and_names_who_has_it() -> None:
    over = view(errors=(line("RESOLVED", 900, "burst 14:02-14:05"),))
    now = view(errors=(line("ACTIVE", 58, "7 per 100 attempts, rising", NOW + 5),))
    calm = view()
    (merged,) = merge(FLEET, [part(1, over), part(2, now), part(3, calm)], NOW).datasets[0].errors
    assert (merged.verdict, merged.count) == ("ACTIVE", 958)
    assert merged.evidence == "in 2 of 3, shard 2/3 as the worst: 7 per 100 attempts, rising"
    assert (merged.first_at, merged.last_at) == (NOW - 60, NOW + 5)


def test_one_that_alone_has_a_family_is_named() -> None:
    (merged,) = (
        merge(FLEET, [part(1), part(2, view(errors=(line("STRUCTURAL", 3, "auth"),)))], NOW)
        .datasets[0]
        .errors
    )
    assert merged.evidence == "shard 2/3: auth"


def test_a_dead_one_is_said_and_has_nothing_in_flight() -> None:
    whole = merge(FLEET, [part(1), part(2, live=False)], NOW)
    assert whole.reason == "shard 2/3: DEAD while running"
    assert whole.state == "running"
    assert (whole.in_flight, whole.datasets[0].in_flight, whole.rows_per_s) == (10, 10, 6.5)
    assert [worker.state for worker in whole.workers] == ["running", "dead"]
    assert whole.datasets[0].ok == 200
    assert whole.exit_code is None
    assert whole.eta_s is None


def test_a_missing_and_an_unheard_one_are_said() -> None:
    parts = [part(1), Part("shard 2/3"), Part("shard 3/3", missing=True)]
    whole = merge(FLEET, parts, NOW)
    assert whole.reason == (
        "shard 2/3: has not reported yet; shard 3/3: is not among the folders given"
    )
    assert [worker.state for worker in whole.workers] == ["running", "unheard", "missing"]
    assert whole.exit_code is None


def test_the_heartbeat_is_the_oldest_of_those_that_live() -> None:
    late = part(2, heartbeat_at=NOW - 30)
    gone = part(3, heartbeat_at=NOW - 999, live=False)
    assert merge(FLEET, [part(1), late, gone], NOW).heartbeat_at == NOW - 30


def test_a_reason_of_all_is_said_once() -> None:
    held = [part(n, state="waiting", reason="credits: top up") for n in (1, 2, 3)]
    whole = merge(FLEET, held, NOW)
    assert (whole.state, whole.reason) == ("waiting", "all 3: credits: top up")


def ended(number: int, code: int, state: str = "done") -> Part:
    return part(number, view(state="done"), live=False, state=state, exit_code=code)


def test_the_exit_code_is_the_gravest() -> None:
    whole = merge(FLEET, [ended(1, 0), ended(2, 3), ended(3, 6, "stopped")], NOW)
    assert (whole.exit_code, whole.state) == (6, "stopped")
    assert merge(FLEET, [ended(1, 0), ended(2, 3)], NOW).state == "done"


@pytest.mark.parametrize(
    ("codes", "whole"),
    [([0, 3, 6], 6), ([4, 6, 3], 4), ([130, 4], 130), ([1, 130], 1), ([0, 0], 0), ([], 0)],
)
def test_the_order_of_exit_codes(codes: list[int], whole: int) -> None:
    assert gravest(codes) == whole


def test_while_one_works_there_is_no_exit_code() -> None:
    assert merge(FLEET, [ended(1, 0), part(2)], NOW).exit_code is None


def test_providers_are_one_line_each() -> None:
    one = ProviderView("Novita", 10, 1, None, 100, 5.0, 0.5, "verbatim", "", "")
    other = replace(one, rows=20, profile="spaced", state="excluded")
    merged = merge(FLEET, [part(1, providers=(one,)), part(2, providers=(other,))], NOW)
    (found,) = merged.providers
    assert (found.rows, found.errors, found.tokens_per_s, found.cost_usd) == (30, 2, 10.0, 1.0)
    assert (found.profile, found.state) == ("verbatim / spaced", "excluded")


def test_datasets_come_in_manifest_order_and_none_is_lost() -> None:
    fleet = replace(FLEET, datasets={"B5": Whole(7, 9), "B6": Whole(15_000, 15_000)})
    whole = merge(fleet, [part(1, replace(view(), name="old"), view())], NOW)
    assert [each.name for each in whole.datasets] == ["B5", "B6", "old"]
    assert (whole.datasets[0].left, whole.datasets[0].manifest_prompts) == (7, 9)


def entry(at: float, text: str) -> JournalEntry:
    return JournalEntry(at, "note", text)


def test_the_journal_tells_everything_once_in_the_order_it_was_heard() -> None:
    journal = FleetJournal()
    one = snapshot(journal=(entry(1, "a"), entry(2, "b")), journal_total=2)
    journal.hear("x", one)
    journal.hear("y", snapshot(journal=(entry(1.5, "late"),), journal_total=1))
    journal.hear("x", one)
    journal.hear("x", replace(one, journal=(entry(2, "b"), entry(3, "c")), journal_total=3))
    told = journal.onto(one)
    assert [each.text for each in told.journal] == ["x: a", "x: b", "y: late", "x: c"]
    assert told.journal_total == 4


def test_a_new_session_of_a_part_begins_its_journal_anew() -> None:
    journal = FleetJournal()
    journal.hear("x", snapshot(journal=(entry(1, "a"),), journal_total=1))
    journal.hear("x", snapshot(started_at=NOW, journal=(entry(2, "b"),), journal_total=1))
    assert [each.text for each in journal.onto(snapshot()).journal] == ["x: a", "x: b"]


def test_exportable_tokens_are_summed_and_unknown_where_one_does_not_know_them() -> None:
    known = view(exportable_tokens=500)
    merged = merge(FLEET, [part(1, known), part(2, known)], NOW).datasets[0]
    assert merged.exportable_tokens == 1000
    merged = merge(FLEET, [part(1, known), part(2, view(exportable_tokens=None))], NOW).datasets[0]
    assert merged.exportable_tokens is None
