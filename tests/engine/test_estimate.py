"""What `run` reckons before its first request stands beside what `check` would say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from engine_parts import dataset_text
from session_parts import OPENROUTER, session_of

from engine.checks.money import THINKING_TOKENS, TOKENS_PER_S
from engine.disk.jsonlines import dump_line
from engine.disk.ledger import ROWS
from engine.plan import EndpointFacts, Options
from engine.view.estimate import SAMPLE, forecasts
from engine.view.snapshot import Forecast

SPAN = replace(OPENROUTER, cheapest_prompt_usd=5e-7, cheapest_completion_usd=5e-6)
TWO = dataset_text("A", 40) + dataset_text("B", 60)
ROWS_OF = {"A": 40, "B": 60}


async def reckoned(
    folder: Path,
    datasets: str = TWO,
    facts: EndpointFacts = SPAN,
    rows: dict[str, int] | None = None,
    **options: int,
) -> dict[str, Forecast]:
    given = Options(**options)  # type: ignore[arg-type]  # only numbers are asked for here
    rows = ROWS_OF if rows is None else rows
    async with session_of(folder, datasets, rows, facts=facts, options=given) as session:
        return forecasts(session.plan, session.stats.datasets)


async def test_the_run_s_forecast_is_the_sum_of_its_datasets(tmp_path: Path) -> None:
    found = await reckoned(tmp_path)
    assert set(found) == {"", "A", "B"}
    run, a, b = found[""], found["A"], found["B"]
    assert run.usd_low == pytest.approx((a.usd_low or 0) + (b.usd_low or 0))
    assert run.usd_high == pytest.approx((a.usd_high or 0) + (b.usd_high or 0))
    completions = 40 * THINKING_TOKENS.low * 5e-6
    assert a.usd_low == pytest.approx(completions, rel=0.05)
    assert a.usd_high == pytest.approx(40 * THINKING_TOKENS.high * 1e-5, rel=0.05)
    assert a.seconds_low >= THINKING_TOKENS.low / TOKENS_PER_S.high
    assert a.seconds_high > a.seconds_low


async def test_a_large_source_is_sampled_and_scaled(tmp_path: Path) -> None:
    count = 3 * SAMPLE
    found = await reckoned(tmp_path, dataset_text("A", count), rows={"A": count})
    assert found[""].usd_low == pytest.approx(count * THINKING_TOKENS.low * 5e-6, rel=0.05)


async def test_a_pilot_is_forecast_as_a_pilot(tmp_path: Path) -> None:
    whole = (await reckoned(tmp_path))[""]
    pilot = (await reckoned(tmp_path, limit=10))[""]
    assert whole.usd_low is not None
    assert pilot.usd_low == pytest.approx(whole.usd_low / 5, rel=0.02)


async def test_without_prices_there_is_a_time_and_no_dollars(tmp_path: Path) -> None:
    found = (await reckoned(tmp_path, facts=EndpointFacts(api="vllm")))[""]
    assert (found.usd_low, found.usd_high) == (None, None)
    assert found.seconds_low > 0


async def test_a_source_that_has_gone_makes_no_forecast(tmp_path: Path) -> None:
    async with session_of(tmp_path, TWO, ROWS_OF, facts=SPAN) as session:
        (tmp_path / "B.jsonl").unlink()
        assert forecasts(session.plan, session.stats.datasets) == {}


async def test_rows_on_disk_are_measured_and_their_cost_is_in_the_total(tmp_path: Path) -> None:
    async with session_of(tmp_path, dataset_text("A", 40), {"A": 40}, facts=SPAN) as session:
        totals = session.stats.datasets["A"].totals
        totals.rows, totals.cost_usd, totals.costs_known = 20, 0.5, 20
        folder = session.plan.folder / "A"
        folder.mkdir(exist_ok=True)
        row = {"usage": {"completion_tokens": 1000}, "latency_s": 10.0}
        (folder / ROWS).write_bytes(b"".join(dump_line(row) for _ in range(20)))
        found = forecasts(session.plan, session.stats.datasets)[""]
    assert found.usd_low == pytest.approx(0.5 + 20 * 1000 * 5e-6, rel=0.02)
    assert found.usd_high == pytest.approx(0.5 + 20 * 1000 * 1e-5, rel=0.02)


async def test_a_host_that_asks_nothing_is_the_low_end(tmp_path: Path) -> None:
    free = replace(SPAN, cheapest_prompt_usd=0.0, cheapest_completion_usd=0.0)
    found = (await reckoned(tmp_path, facts=free))[""]
    assert found.usd_low == 0.0
    assert found.usd_high == (await reckoned(tmp_path))[""].usd_high
