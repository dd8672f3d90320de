"""The arithmetic of the estimate: low and high, what ends a dataset, what the balance holds."""

from __future__ import annotations

import json
from array import array
from pathlib import Path
from typing import Any

import pytest
from check_desk import failures, look, one, sources
from e2e_desk import Desk
from e2e_provider import playing
from export_cases import row_of
from hypothesis import given
from hypothesis import strategies as st

from engine.checks.budget import assumptions, money_findings
from engine.checks.findings import Finding, Level, exit_code, fail, ok
from engine.checks.money import Estimate, Need, estimate
from engine.checks.pilot import Pilot, read_pilot, spread
from engine.checks.route import Offer
from engine.errors import ExitCode

PER_M = 1e-6
OFFER = Offer(1, (0.45 * PER_M, 0.45 * PER_M), (2.25 * PER_M, 2.25 * PER_M))


def need(name: str = "A", **more: Any) -> Need:
    base: dict[str, Any] = {
        "left": 1000,
        "generations": 1000,
        "first_tokens": 100_000,
        "later_tokens": 0,
        "carried": 0,
        "max_turns": 1,
        "max_tokens": 8192,
        "token_budget": None,
        "max_cost_usd": None,
        "offer": OFFER,
    }
    return Need(name=name, **(base | more))


def reckon(*needs: Need, cap: float | None = None, concurrency: int = 2000) -> Estimate:
    return estimate(needs, max_cost_usd=cap, concurrency=concurrency)


def measured(tokens: list[int], latency: float = 10.0, **ledger: Any) -> Pilot:
    pilot = Pilot(completions=array("d", tokens), latencies=array("d", [latency] * len(tokens)))
    pilot.ledger.rows = len(tokens)
    pilot.ledger.completion_tokens = sum(tokens)
    for name, value in ledger.items():
        setattr(pilot.ledger, name, value)
    return pilot


def said(reckoned: Estimate, topic: str, **more: Any) -> list[Finding]:
    options: dict[str, Any] = {"max_cost_usd": 86.0, "balance_usd": None, "paid": True} | more
    return [f for f in money_findings(reckoned, **options) if f.topic == topic]


def test_two_thousand_requests_of_8192_reserve_37_dollars() -> None:
    reckoned = reckon(need(left=5000, generations=5000, first_tokens=0))
    assert reckoned.reserve_usd == pytest.approx(2000 * 8192 * 2.25 * PER_M)  # $36.86
    (finding,) = said(reckoned, "concurrency", balance_usd=20.0)
    assert finding.level is Level.WARN
    assert "2,000 in flight reserve up to $36.86" in finding.text
    assert "holds 1,085 at most" in finding.text
    (finding,) = said(reckoned, "concurrency", balance_usd=500.0)
    assert finding.level is Level.OK


def test_assumed_answers_never_exceed_max_tokens() -> None:
    spread_of = need(max_tokens=800).completion()
    assert (spread_of.low, spread_of.mean, spread_of.high) == (500, 800, 800)


def test_low_is_cheap_and_short_high_is_dear_and_long() -> None:
    offer = Offer(2, (0.4 * PER_M, 0.6 * PER_M), (2 * PER_M, 3 * PER_M))
    reckoned = reckon(need(offer=offer))
    assert reckoned.cost_usd is not None
    low, _, high = reckoned.cost_usd
    assert low == pytest.approx(1000 * (100 * 0.4 + 500 * 2) * PER_M)
    assert high == pytest.approx(1000 * (100 * 0.6 + 4000 * 3) * PER_M)
    assert reckoned.ceiling_usd == pytest.approx(1000 * (100 * 0.6 + 8192 * 3) * PER_M)
    assert low < reckoned.cost_usd[1] < high


def test_without_thinking_answers_are_shorter() -> None:
    assert need(thinking=False).completion().high < need().completion().high


def test_later_turns_carry_our_own_answers() -> None:
    plain = need(generations=2000, left=2000, later_tokens=150_000)
    carrying = need(generations=2000, left=2000, later_tokens=150_000, carried=1000)
    assert plain.prompt(1000) == 125
    assert carrying.prompt(1000) == 125 + 0.5 * 1000 * 0.4


def test_rows_on_disk_replace_the_assumptions() -> None:
    pilot = measured(list(range(100, 1100, 50)))
    reckoned = reckon(need(pilot=pilot))
    assert reckoned.measured
    low, middle, high = (parts[0].completion_tokens / 1000 for parts in reckoned.cases)
    assert (low, middle, high) == (200, 575, 950)
    assert "Measured" in assumptions(reckoned)[0]
    assert not any("Assumed" in sentence for sentence in assumptions(reckoned))


def test_a_few_rows_are_not_enough_to_go_by() -> None:
    assert not need(pilot=measured([100, 200, 300, 400])).measured


@given(st.lists(st.floats(1, 1e5), min_size=1, max_size=60))
def test_a_spread_is_ordered(values: list[float]) -> None:
    found = spread(array("d", values))
    assert found.low <= found.mean * (1 + 1e-9)
    assert found.mean <= found.high * (1 + 1e-9)


@pytest.mark.parametrize(
    ("more", "cap", "low", "high"),
    [
        ({}, None, "prompts", "prompts"),
        ({"token_budget": 300_000}, None, "token_budget", "token_budget"),
        ({"token_budget": 3_000_000}, None, "prompts", "token_budget"),
        ({"max_cost_usd": 2.0}, None, "prompts", "dataset_max_cost_usd"),
        ({}, 1.0, "max_cost_usd", "max_cost_usd"),
        ({"max_cost_usd": 0.5, "token_budget": 1000}, 0.9, "token_budget", "token_budget"),
    ],
)
def test_which_limit_ends_a_dataset(
    more: dict[str, Any], cap: float | None, low: str, high: str
) -> None:
    reckoned = reckon(need(**more), cap=cap)
    assert (reckoned.low[0].ends_by, reckoned.high[0].ends_by) == (low, high)


def test_the_cap_is_shared_in_the_order_of_the_datasets() -> None:
    reckoned = reckon(need("A"), need("B"), cap=2.0)
    assert [part.ends_by for part in reckoned.low] == ["prompts", "max_cost_usd"]
    assert reckoned.cost_usd is not None
    assert reckoned.cost_usd[0] <= 2.0


def test_what_is_spent_counts_against_the_cap() -> None:
    pilot = measured([500] * 20, cost_usd=1.9, costs_known=20)
    reckoned = reckon(need(pilot=pilot), cap=2.0)
    assert reckoned.spent_usd == 1.9
    assert reckoned.low[0].cost_usd == pytest.approx(0.1, abs=0.002)


def test_a_token_budget_counts_what_is_on_disk() -> None:
    pilot = measured([1000] * 50)
    reckoned = reckon(need(token_budget=50_500, pilot=pilot))
    assert reckoned.low[0].generations == 1
    done = reckon(need(token_budget=50_000, pilot=pilot))
    assert (done.low[0].generations, done.low[0].ends_by) == (0, "token_budget")


def test_unknown_prices_are_unknown_and_not_nothing() -> None:
    reckoned = reckon(need(offer=Offer()))
    assert reckoned.cost_usd is None
    assert reckoned.ceiling_usd is None
    (finding,) = said(reckoned, "price")
    assert finding.level is Level.WARN


def test_billed_rows_stand_in_for_unknown_prices() -> None:
    pilot = measured([500] * 10, cost_usd=0.02, costs_known=10)
    reckoned = reckon(need(offer=Offer(), pilot=pilot))
    assert reckoned.cost_usd == pytest.approx((2.0, 2.0, 2.0))


def test_a_cap_below_one_request_fails() -> None:
    (finding,) = said(reckon(need(), cap=0.01), "cap", max_cost_usd=0.01)
    assert finding.level is Level.FAIL
    assert exit_code([finding]) == ExitCode.USAGE


@pytest.mark.parametrize(
    ("cap", "level", "words"),
    [
        (0.5, Level.WARN, "even in the low case"),
        (5.0, Level.WARN, "in the high case"),
        (50.0, Level.OK, "holds the high case"),
        (None, Level.WARN, "no max_cost_usd"),
    ],
)
def test_the_cap_against_the_estimate(cap: float | None, level: Level, words: str) -> None:
    finding = said(reckon(need(), cap=cap), "cap", max_cost_usd=cap)[0]
    assert finding.level is level
    assert words in finding.text


@pytest.mark.parametrize(
    ("balance", "level", "words"),
    [
        (0.01, Level.FAIL, "does not hold one request"),
        (0.5, Level.WARN, "below the low case by $0.67"),
        (5.0, Level.WARN, "within the estimate"),
        (50.0, Level.OK, "holds the high case"),
    ],
)
def test_the_balance_against_the_estimate(balance: float, level: Level, words: str) -> None:
    (finding,) = said(reckon(need()), "balance", balance_usd=balance)
    assert finding.level is level
    assert words in finding.text


def test_the_duration_shrinks_with_the_concurrency_until_one_request_is_the_bound() -> None:
    wide, narrow = reckon(need(), concurrency=1000), reckon(need(), concurrency=10)
    assert narrow.duration_s[0] > 50 * 500 / 60
    assert wide.duration_s[0] < narrow.duration_s[0]
    assert wide.duration_s[0] >= 500 / 60
    assert all(wide.duration_s[at] <= wide.duration_s[at + 1] for at in (0, 1))


def test_turns_of_one_conversation_follow_each_other() -> None:
    talk = need(left=20, generations=20, max_turns=20, pilot=measured([500] * 9, latency=60.0))
    assert reckon(talk).duration_s[0] >= 20 * 60


def test_nothing_left_costs_nothing() -> None:
    reckoned = reckon(need(left=0))
    assert reckoned.cost_usd == (0.0, 0.0, 0.0)
    assert reckoned.duration_s == (0.0, 0.0, 0.0)
    (finding,) = said(reckoned, "price")
    assert "nothing is left to ask" in finding.text


def test_manifest_faults_go_before_the_endpoints() -> None:
    endpoint, manifest = fail("endpoint", "key", "-"), fail("sources", "rows", "-")
    assert exit_code([ok("endpoint", "key", "-")]) == 0
    assert exit_code([endpoint]) == 4
    assert exit_code([endpoint, manifest]) == 2


def test_a_pilot_is_read_without_changing_a_file(tmp_path: Path) -> None:
    usage = {"completion_tokens": 100, "reasoning_tokens": 75, "cost": 0.01}
    row = row_of(
        dataset="A",
        id="A/0123456789abcdef.0#0",
        finish_reason="length",
        latency_s=3.0,
        usage=usage,
        completion_ids=[1],
    )
    cached = row | {"id": "A/1123456789abcdef.0#0", "usage": {"completion_tokens": 0}}
    lines = [row, row, cached, {"not": "a row"}]
    text = "".join(json.dumps(line) + "\n" for line in lines) + '{"id": "A/torn'
    folder = tmp_path / "A"
    folder.mkdir()
    (folder / "rows.jsonl").write_text(text)
    pilot = read_pilot(folder)
    assert (folder / "rows.jsonl").read_text() == text
    assert list(pilot.completions) == [100]
    assert (pilot.ledger.rows, pilot.ledger.doubled, pilot.cut) == (2, 1, 2)
    assert pilot.content_share == 0.25


def test_a_real_pilot_narrows_the_estimate(tmp_path: Path) -> None:
    rows = [{"prompt": f"Question {number}?"} for number in range(400)]
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        endpoint = {"base_url": provider.base_url}
        manifest = sources(tmp_path, ("A", rows), endpoint=endpoint)
        before = look(manifest).estimate
        assert desk.go("--limit", 40).code == 0
        report = look(manifest)
        after = report.estimate
        spent = sum(entry.cost for entry in provider.ledger.entries)
    assert not before.measured
    assert after.measured
    assert report.scans[0].left == 360
    assert after.spent_usd == pytest.approx(spent)
    assert after.cost_usd is not None
    assert after.cost_usd[1] == pytest.approx(spent / 40 * 360, rel=0.5)
    assert after.cost_usd[0] < after.cost_usd[1] < after.cost_usd[2]


def test_another_identity_on_disk_fails(tmp_path: Path) -> None:
    rows = [{"prompt": "Question?"}]
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        endpoint = {"base_url": provider.base_url}
        sources(tmp_path, ("A", rows), endpoint=endpoint)
        assert desk.go().code == 0
        manifest = sources(tmp_path, ("A", rows), endpoint=endpoint | {"thinking": False})
        report = look(manifest)
    assert failures(report) == ["identity"]
    assert "thinking: was true, now false" in one(report, "identity").text
    assert report.exit_code == 2
