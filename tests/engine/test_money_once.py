"""Nothing is paid for twice: against the provider's own ledger, whatever breaks off."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from e2e_desk import Desk, until
from e2e_files import assert_accounted
from e2e_provider import is_idle, playing, slow
from money_engine import Outcome, ending, engine_on, working
from money_kills import CONCURRENCY, HOSTS, killed
from money_line import Line, line_to
from money_tap import tapped

from engine.commands import Stop
from engine.format import plural
from engine.simulator import Simulator
from tui.headless import closing_line

TEXT_ONLY = {"tokenizer": "none"}


@contextmanager
def desk_of(folder: Path, **scenario: Any) -> Iterator[tuple[Desk, Simulator]]:
    with playing(**scenario) as provider, Desk(folder, provider.base_url) as desk:
        yield desk, provider


def assert_paid_once(outcome: Outcome, provider: Simulator) -> None:
    """Each prompt was charged once, each row says so, and nothing else was spent."""
    until(lambda: is_idle(provider), "the provider has finished")
    rows = outcome.files.all("rows")
    assert provider.ledger.paid_twice == {}
    assert len(provider.ledger.charges) == len(rows)
    costs = [row["usage"]["cost"] for row in rows]
    assert sum(costs) == pytest.approx(provider.ledger.cost_usd)
    tokens = sum(row["usage"]["completion_tokens"] for row in rows)
    assert tokens == provider.ledger.completion_tokens
    assert (outcome.last.twice_attempts, outcome.last.twice_usd) == (0, 0)
    assert "paid twice" not in closing_line(outcome.last)
    assert_accounted(outcome.files)


LOST_ON_THE_WAY = {"reset_in_body": 0.08, "reset_late": 0.08, "close": 0.08, "truncated_json": 0.05}


def test_replies_lost_on_their_way_are_had_from_the_cache(tmp_path: Path) -> None:
    """Hosts that fail are left out meanwhile, but not in a resend: it is the same to the byte."""
    faults = {**LOST_ON_THE_WAY, "bad_gateway": 0.1}
    with desk_of(tmp_path, faults=faults) as (desk, provider):
        asked = tapped(provider)
        desk.asking(100, endpoint=TEXT_ONLY, limits={"concurrency": 32, "request_timeout_s": 1})
        outcome = engine_on(desk)
        assert outcome.code == 0
        assert_paid_once(outcome, provider)
        assert provider.ledger.cached > 10
        lost = {a["id"] for a in outcome.files.all("attempts") if a["status"] in {None, 200}}
        assert provider.ledger.cached == len(lost)
        assert any(request.ignore for request in asked)
        assert all(r["flags"] == [] for r in outcome.files.all("rows")), "counts of hits are known"


@contextmanager
def on_a_line(
    folder: Path, prompts: int, **endpoint: Any
) -> Iterator[tuple[Desk, Simulator, Line]]:
    """A desk that reaches its provider by way of a line that can be cut."""
    with (
        playing(latency=slow(0.5)) as provider,
        line_to(provider.port) as line,
        Desk(folder, line.base_url(provider.base_url)) as desk,
    ):
        desk.asking(prompts, endpoint={**TEXT_ONLY, **endpoint}, limits={"concurrency": 16})
        yield desk, provider, line


def cut_once(desk: Desk, provider: Simulator, line: Line) -> Outcome:
    """A run whose line is cut while all its slots are filled, and replies are known."""
    with working(desk) as run:
        until(lambda: run.snapshot().datasets[0].rows >= 32, "replies are known")
        until(lambda: provider.provider.in_flight == 16, "all slots are filled")
        line.cut()
        outcome = ending(run, desk)
    assert outcome.code == 0
    assert line.cuts >= 16
    families = Counter(a["family"] for a in outcome.files.all("attempts"))
    assert families["disconnected"] >= 8
    return outcome


def test_a_line_that_is_cut_costs_nothing_though_replies_were_still_being_written(
    tmp_path: Path,
) -> None:
    """The provider works on: whoever asks again before it has finished pays again."""
    with on_a_line(tmp_path, 80) as (desk, provider, line):
        assert_paid_once(cut_once(desk, provider, line), provider)


def test_the_same_without_the_cache_says_what_may_have_been_paid_twice(tmp_path: Path) -> None:
    with on_a_line(tmp_path, 80, response_cache=False) as (desk, provider, line):
        outcome = cut_once(desk, provider, line)
        lost = len(outcome.files.all("attempts"))
        assert len(provider.ledger.paid_twice) == lost == outcome.last.twice_attempts
        known = sum(row["usage"]["cost"] for row in outcome.files.all("rows"))
        assert outcome.last.twice_usd == pytest.approx(lost * known / 80)
        assert outcome.last.twice_usd == pytest.approx(provider.ledger.cost_usd - known, rel=0.5)
        words = f"may be paid twice ({plural(lost, 'reply', 'replies')} never seen)"
        assert words in closing_line(outcome.last)


def test_a_stopped_run_that_is_resumed_at_once_pays_once(tmp_path: Path) -> None:
    """What was cancelled is still being written, and billed in full."""
    with desk_of(tmp_path, latency=slow(0.6)) as (desk, provider):
        limits = {"concurrency": 16, "request_timeout_s": 2}
        desk.asking(40, endpoint=TEXT_ONLY, limits=limits)
        with working(desk) as run:
            until(lambda: provider.provider.in_flight == 16, "all slots are filled")
            run.send(Stop())
            assert ending(run, desk).code == 130
        assert not is_idle(provider)
        outcome = engine_on(desk)
        assert outcome.code == 0
        assert_paid_once(outcome, provider)
        assert provider.ledger.cached == 16


def test_exact_doubles_are_samples_of_their_own(tmp_path: Path) -> None:
    with desk_of(tmp_path, faults=LOST_ON_THE_WAY) as (desk, provider):
        asked = tapped(provider)
        source = desk.source("a.jsonl", [{"prompt": f"Twin {n // 2}"} for n in range(40)])
        desk.manifest(
            {"name": "A", "source": source, "prompts": 40},
            endpoint=TEXT_ONLY,
            limits={"request_timeout_s": 1},
        )
        outcome = engine_on(desk)
        assert outcome.code == 0
        assert len(outcome.files.all("rows")) == 40
        assert set(provider.ledger.charges.values()) == {2}
        assert provider.ledger.charged == 40
        assert len({request.body["user"] for request in asked}) == 40


def test_what_another_run_has_paid_for_costs_nothing(tmp_path: Path) -> None:
    """The same manifest in another folder within a day: hits, with counts, and no cost."""
    with desk_of(tmp_path, generation_delay_s=0.3) as (desk, provider):
        desk.asking(12, endpoint=TEXT_ONLY)
        assert engine_on(desk).last.cost_usd == pytest.approx(provider.ledger.cost_usd)
        outcome = engine_on(desk, output=tmp_path / "again")
        assert outcome.code == 0
        assert (provider.ledger.charged, provider.ledger.cached) == (12, 12)
        assert outcome.last.cost_usd == 0
        (view,) = outcome.last.datasets
        assert view.completion_tokens == provider.ledger.completion_tokens
        assert view.flags == {}


@pytest.mark.parametrize("fault", ["choices_empty", "empty_stop", "no_finish_reason"])
def test_a_bad_reply_that_the_cache_holds_is_forgotten_first(tmp_path: Path, fault: str) -> None:
    scenario = {"caches_bad_replies": True, "providers": HOSTS[:1]}
    with desk_of(tmp_path, **scenario) as (desk, provider):
        asked = tapped(provider)
        source = desk.source("a.jsonl", [{"prompt": f"[[sim:{fault}*1]] Hello"}])
        desk.manifest({"name": "A", "source": source, "prompts": 1}, endpoint=TEXT_ONLY)
        outcome = engine_on(desk)
        assert outcome.code == 0
        assert [r.headers.get("x-openrouter-cache-clear") for r in asked] == [None, "true"]
        assert asked[0].raw == asked[1].raw
        assert provider.ledger.cached == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_killed_twenty_times_pays_once(tmp_path: Path) -> None:
    """With hosts that are left out of some requests, doubles, and replies lost on their way."""
    story = killed(tmp_path, prompts=400, kills=20, seed=2, caches=True)
    assert (story.rows, story.lost, story.doubled) == (story.prompts, 0, 0)
    assert story.paid_again == 0
    assert story.told_usd == pytest.approx(story.paid_usd)
    assert story.hits > 20
    assert story.left_out > 20
    # a kill between the line in sent.jsonl and the request leaves nothing for a hit to prove
    assert story.most_twice < story.unknown


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_without_the_cache_only_what_was_in_flight_is_paid_again(tmp_path: Path) -> None:
    story = killed(tmp_path, prompts=400, kills=20, seed=3, caches=False)
    assert (story.rows, story.lost, story.doubled) == (story.prompts, 0, 0)
    assert 0 < story.paid_again <= story.unknown == story.most_twice
    assert story.unknown <= 20 * CONCURRENCY
    assert story.told_usd < story.paid_usd


def test_the_summary_says_what_may_have_been_paid_twice_and_is_silent_otherwise(
    tmp_path: Path,
) -> None:
    with desk_of(tmp_path, faults={"reset_late": 0.15}) as (desk, provider):
        desk.asking(40, endpoint={**TEXT_ONLY, "response_cache": False})
        result = desk.go("--json")
        assert result.code == 0
        lost = len(desk.files.all("attempts"))
        assert result.summary["twice_attempts"] == lost > 2
        known = sum(row["usage"]["cost"] for row in desk.files.all("rows"))
        assert result.summary["twice_usd"] == pytest.approx(lost * known / 40)
        assert provider.ledger.cost_usd > known
        assert f"may be paid twice ({lost} replies never seen)" in result.err.splitlines()[-1]
    (tmp_path / "well").mkdir()
    with desk_of(tmp_path / "well") as (desk, _):
        desk.asking(4, endpoint=TEXT_ONLY)
        assert "twice_usd" not in desk.go("--json").summary
