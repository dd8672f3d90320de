"""Budgets in tokens and dollars, what a reply cost, and the account's balance, over real HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from e2e_desk import Desk, until
from e2e_files import assert_accounted
from e2e_provider import playing, slow
from money_engine import ending, engine_on, working

import engine.money.funds
from engine.simulator import Simulator
from tui.headless import closing_line

TEXT_ONLY = {"tokenizer": "none"}
UNCACHED = {**TEXT_ONLY, "response_cache": False}
DEAR = {"name": "Dear", "tag": "dear", "prompt_usd_per_m": 0.0, "completion_usd_per_m": 1000.0}
"""A tenth of a cent a token: 40 tokens are 4 cents."""


@contextmanager
def desk_of(folder: Path, **scenario: Any) -> Iterator[tuple[Desk, Simulator]]:
    played = {"providers": [DEAR], **scenario}
    with playing(**played) as provider, Desk(folder, provider.base_url) as desk:
        yield desk, provider


def lay(desk: Desk, *counts: int, dataset: dict[str, Any] | None = None, **sections: Any) -> None:
    """Datasets A, B, ... with so many questions each."""
    names = [chr(ord("A") + place) for place in range(len(counts))]
    datasets = []
    for name, count in zip(names, counts, strict=True):
        source = desk.source(
            f"{name}.jsonl", [{"prompt": f"Question {n} of {name}?"} for n in range(count)]
        )
        datasets.append({"name": name, "source": source, "prompts": count, **(dataset or {})})
        dataset = None
    desk.manifest(*datasets, **{"endpoint": TEXT_ONLY, **sections})


def test_a_token_budget_is_overshot_by_less_than_two_percent(tmp_path: Path) -> None:
    budget = 150_000
    with desk_of(
        tmp_path, latency={"mean_s": 0.1, "sigma": 0.6}, length={"mean_tokens": 150, "max": 1200}
    ) as (desk, provider):
        lay(
            desk,
            3000,
            dataset={"token_budget": budget},
            sampling={"max_tokens": 1200},
            limits={"concurrency": 50},
        )
        outcome = engine_on(desk)
        assert outcome.code == 0
        (view,) = outcome.last.datasets
        assert view.state == "budget"
        assert budget <= view.completion_tokens < 1.02 * budget
        assert view.completion_tokens == provider.ledger.completion_tokens
        assert_accounted(outcome.files)


@pytest.mark.parametrize("faults", [{}, {"reset_late": 0.2, "bad_gateway": 0.1}])
def test_max_cost_is_never_passed(tmp_path: Path, faults: dict[str, float]) -> None:
    """Not even by replies that were billed and never seen: they are reckoned in."""
    cap = 8.0
    with desk_of(tmp_path, faults=faults) as (desk, provider):
        limits = {"concurrency": 16, "max_cost_usd": cap}
        lay(desk, 1000, endpoint=UNCACHED, limits=limits)
        outcome = engine_on(desk)
        assert outcome.code == 6
        assert "max_cost_usd" in outcome.last.reason
        assert 0.6 * cap < provider.ledger.cost_usd <= cap
        assert_accounted(outcome.files)
        spent = provider.ledger.cost_usd
        assert engine_on(desk).code == 6
        assert provider.ledger.cost_usd == spent, "a resume knows what was spent"
        lay(desk, 1000, endpoint=UNCACHED, limits={**limits, "max_cost_usd": 1.5 * cap})
        assert engine_on(desk).code == 6
        assert cap < provider.ledger.cost_usd <= 1.5 * cap


def test_a_dataset_ends_at_its_own_dollars_and_the_next_one_goes_on(tmp_path: Path) -> None:
    with desk_of(tmp_path) as (desk, provider):
        lay(desk, 200, 20, dataset={"max_cost_usd": 2.0}, limits={"concurrency": 8})
        outcome = engine_on(desk)
        assert outcome.code == 0
        first, second = outcome.last.datasets
        assert (first.state, second.state, second.ok) == ("budget", "done", 20)
        assert first.cost_usd is not None
        assert 1.5 < first.cost_usd <= 2.0
        assert outcome.last.cost_usd == pytest.approx(provider.ledger.cost_usd)
        assert_accounted(outcome.files)


def without_costs(provider: Simulator) -> None:
    """Let the provider leave `usage.cost` out of its replies."""
    dialect = provider.provider._composer._dialect
    reply = dialect.reply

    def silent(done: Any) -> dict[str, Any]:
        body = reply(done)
        del body["usage"]["cost"]
        return body

    dialect.reply = silent  # type: ignore[method-assign] # what older hosts do


def test_a_cost_that_is_not_told_comes_from_the_endpoints_prices(tmp_path: Path) -> None:
    host = {**DEAR, "prompt_usd_per_m": 10.0}
    with desk_of(tmp_path, providers=[host]) as (desk, provider):
        without_costs(provider)
        lay(desk, 20)
        outcome = engine_on(desk)
        assert outcome.code == 0
        assert outcome.last.cost_usd == pytest.approx(provider.ledger.cost_usd)
        assert outcome.last.cost_unknown_attempts == 0
        assert all(row["usage"]["cost"] > 0 for row in outcome.files.all("rows"))


def test_each_host_is_reckoned_at_its_own_price_and_a_resume_does_not_reckon_anew(
    tmp_path: Path,
) -> None:
    prices = {"SiliconFlow": (1.0, 100.0), "AtlasCloud": (2.0, 300.0), "Novita": (4.0, 900.0)}
    hosts = [
        {"name": name, "tag": name.lower(), "prompt_usd_per_m": p, "completion_usd_per_m": c}
        for name, (p, c) in prices.items()
    ]
    with desk_of(tmp_path, providers=hosts) as (desk, provider):
        without_costs(provider)
        lay(desk, 30)
        first = engine_on(desk, limit=12)
        assert first.last.cost_usd == pytest.approx(provider.ledger.cost_usd)
        rest = engine_on(desk)
        assert rest.code == 0
        rows = rest.files.all("rows")
        assert {row["provider"] for row in rows} == set(prices)
        for row in rows:
            asked, written = prices[row["provider"]]
            usage = row["usage"]
            reckoned = (usage["prompt_tokens"] * asked + usage["completion_tokens"] * written) / 1e6
            assert usage["cost"] == pytest.approx(reckoned)
        assert rest.last.cost_usd == pytest.approx(provider.ledger.cost_usd)
        assert rest.last.cost_usd == pytest.approx(sum(row["usage"]["cost"] for row in rows))
        notes = [e["text"] for e in rest.files.events("note") if "list prices" in e["text"]]
        assert len(notes) == 2, "once for each session"


def test_where_no_price_is_known_the_cost_is_unknown_and_never_zero(tmp_path: Path) -> None:
    with desk_of(tmp_path) as (desk, provider):
        without_costs(provider)
        lay(desk, 20, endpoint={**TEXT_ONLY, "api": "openai"})
        outcome = engine_on(desk)
        assert outcome.code == 0
        assert {row["usage"]["cost"] for row in outcome.files.all("rows")} == {None}
        status = outcome.files.status()
        assert status["cost_usd"] is None
        assert status["datasets"][0]["cost_usd"] is None
        assert status["cost_unknown_attempts"] == 20
        assert "cost $?, 20 requests of unknown cost" in closing_line(outcome.last)


def test_rows_without_a_cost_count_against_the_cap(tmp_path: Path) -> None:
    """A host that counts nothing would else spend without bound."""
    with desk_of(tmp_path, faults={"no_usage": 1.0}) as (desk, provider):
        lay(desk, 500, limits={"concurrency": 8, "max_cost_usd": 8.0})
        outcome = engine_on(desk)
        assert outcome.code == 6
        assert 0 < provider.ledger.cost_usd <= 8.0


def test_the_projected_cost_nears_what_it_comes_to(tmp_path: Path) -> None:
    with desk_of(tmp_path, latency=slow(0.03)) as (desk, _):
        lay(desk, 150, 150, limits={"concurrency": 8})
        with working(desk) as run:
            until(lambda: run.snapshot().datasets[0].ok >= 75, "half of the first dataset")
            projected = run.snapshot().projected_cost_usd
            outcome = ending(run, desk)
        assert projected == pytest.approx(outcome.last.cost_usd, rel=0.25)


@pytest.mark.parametrize("page", ["credits", "key"])
def test_a_low_balance_waits_before_it_is_gone_and_goes_on_after_a_top_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    """No request is refused for want of money: the run sees it coming."""
    monkeypatch.setattr(engine.money.funds, "SHORT_POLL_S", 0.2)
    terms: dict[str, Any] = {"total_credits": 2.0}
    if page == "key":
        terms = {"limit": 2.0, "credits_forbidden": True}
    with desk_of(tmp_path, account=terms) as (desk, provider):
        lay(desk, 120, limits={"concurrency": 64})
        with working(desk) as run:
            until(lambda: run.snapshot().state == "waiting", "it waits")
            snapshot = run.snapshot()
            assert snapshot.reason.startswith("credits: the balance is $")
            assert "what is left needs about $" in snapshot.reason
            assert "top up and the run goes on by itself" in snapshot.reason
            assert snapshot.in_flight == 0
            assert 0 < provider.ledger.cost_usd <= 2.0
            if page == "credits":
                provider.account.top_up(100.0)
            else:
                provider.account._terms = provider.account._terms.model_copy(
                    update={"limit": 100.0}
                )
            outcome = ending(run, desk)
        assert outcome.code == 0
        assert outcome.files.all("attempts") == []
        assert provider.ledger.requests == 120
        texts = [entry["text"] for entry in outcome.files.events("state")]
        assert any(text.startswith("credits: the balance is $") for text in texts)
        assert "credits: the balance suffices again" in texts
        assert_accounted(outcome.files)


def test_max_error_rate_ends_a_run_that_fails_too_often(tmp_path: Path) -> None:
    with desk_of(tmp_path, faults={"content_filter": 0.3}) as (desk, provider):
        lay(desk, 400, limits={"concurrency": 8})
        outcome = engine_on(desk, max_error_rate=0.1)
        assert outcome.code == 3
        assert "more than --max-error-rate 0.1" in outcome.last.reason
        ok, failed, left = outcome.counts()
        assert ok + failed < 100
        assert left > 300
        assert failed > 0.1 * (ok + failed)
        assert provider.ledger.requests == ok + failed
