"""Every fault of the local provider through the real engine: family, scope, and no bogus row."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk, until
from e2e_files import assert_accounted
from e2e_provider import playing
from money_engine import ending, engine_on, working
from money_faults import (
    ACCOUNT,
    ATTEMPT,
    BUSY,
    EVERY,
    HEALED_BY_CACHE,
    PROMPT,
    PROVIDER,
    ROWS,
    RUN,
    Expected,
)
from money_play import GOOD_EACH, LASTING, Played, ending_with, lasting, lay, passing

from engine.faults.fault import FAMILIES
from engine.simulator.faults import FAULTS


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    with lasting(tmp_path_factory.mktemp("faults")) as played:
        yield played


def test_the_table_knows_every_fault_of_the_simulator() -> None:
    assert set(EVERY) == set(FAULTS)
    assert {e.family for e in EVERY.values()} - {""} <= set(FAMILIES)


def test_the_run_ends_by_itself_and_every_request_is_on_record(session: Played) -> None:
    assert session.outcome.code == 3
    assert session.outcome.last.state == "done"
    assert_accounted(session.outcome.files)
    assert session.provider.ledger.requests == session.requests


def test_good_prompts_among_the_bad_ones_become_rows(session: Played) -> None:
    assert len(session.of("rows")[""]) == GOOD_EACH * len(LASTING)
    assert session.of("attempts")[""] == []
    assert session.of("failures")[""] == []


@pytest.mark.parametrize("name", [*PROMPT, *PROVIDER, *ATTEMPT])
def test_a_fault_has_its_family_and_is_never_a_row(session: Played, name: str) -> None:
    expected = EVERY[name]
    attempts = session.of("attempts")[name]
    rows, failures = session.of("rows")[name], session.of("failures")[name]
    assert {(a["family"], a["scope"]) for a in attempts} == {(expected.family, expected.scope)}
    assert all(expected.words in a["message"] for a in attempts)
    if expected.free:
        assert {a["cost"] for a in attempts} == {0}
    if name in HEALED_BY_CACHE:
        assert (len(attempts), len(rows), failures) == (1, 1, [])
        assert rows[0]["attempts"] == 2
    else:
        assert len(attempts) == (expected.tries or 2)
        assert rows == []
        (failure,) = failures
        assert (failure["family"], failure["attempts"]) == (expected.family, len(attempts))
        assert failure["message"] == attempts[-1]["message"]


@pytest.mark.parametrize("name", ROWS)
def test_a_doubtful_reply_that_was_paid_for_is_a_flagged_row(session: Played, name: str) -> None:
    (row,) = session.of("rows")[name]
    assert row["flags"] == list(EVERY[name].flags)
    assert row["attempts"] == 1
    assert session.of("attempts")[name] == []


def test_flags_are_counted_on_the_screen(session: Played) -> None:
    flags = Counter(flag for row in session.outcome.files.all("rows") for flag in row["flags"])
    assert session.outcome.last.datasets[0].flags == flags
    assert set(flags) == {flag for expected in ROWS.values() for flag in expected.flags}


def test_what_was_charged_is_recorded_or_said_to_be_unknown(session: Played) -> None:
    """A prompt all of whose costs are known costs what was charged for it, at least."""
    files, spent = session.outcome.files, session.provider.ledger.spent
    charged = {e.id: e.prompt_hash for e in session.provider.ledger.entries}
    told: dict[str, list[float | None]] = defaultdict(list)
    for record in [*files.all("rows"), *files.all("attempts")]:
        cost = record["usage"]["cost"] if "usage" in record else record["cost"]
        told[record["id"]].append(cost)
    by_prompt = {
        record["id"]: charged[record["generation_id"]]
        for record in [*files.all("rows"), *files.all("attempts")]
        if record["generation_id"] in charged
    }
    assert len(by_prompt) > 150
    for identifier, prompt in by_prompt.items():
        costs = told[identifier]
        if None not in costs:
            assert sum(costs) >= spent.get(prompt, 0.0) - 1e-12, session.names.get(identifier)


@pytest.mark.parametrize("name", RUN)
def test_a_fault_of_the_run_ends_it_and_the_next_run_goes_on(tmp_path: Path, name: str) -> None:
    expected = EVERY[name]
    with ending_with(tmp_path, name) as (played, desk):
        outcome = played.outcome
        assert (outcome.code, outcome.last.state) == (4, "stopped")
        assert f"{expected.family}: " in outcome.last.reason
        assert expected.words in outcome.last.reason
        assert FAMILIES[expected.family].action in outcome.last.reason
        (attempt,) = outcome.files.all("attempts")
        assert (attempt["family"], attempt["scope"]) == (expected.family, "run")
        assert attempt["cost"] == 0
        assert outcome.counts() == (0, 0, 3)
        assert outcome.files.all("failures") == []
        assert engine_on(desk).code == 0
        assert outcome.files.all("rows")[0]["attempts"] == 2
        assert played.provider.ledger.requests == 4
        assert_accounted(outcome.files)


def assert_passed(played: Played, faults: dict[str, Expected]) -> None:
    assert played.outcome.code == 0
    for name, expected in faults.items():
        (attempt,) = played.of("attempts")[name]
        assert (attempt["family"], attempt["scope"]) == (expected.family, expected.scope)
        assert expected.words in attempt["message"]
        (row,) = played.of("rows")[name]
        assert row["attempts"] == 2
    assert played.outcome.files.all("failures") == []
    assert_accounted(played.outcome.files)
    assert played.provider.ledger.requests == played.requests


def test_a_busy_route_uses_up_no_attempts(tmp_path: Path) -> None:
    """`max_attempts` is 1, and after a refusal the prompt is asked again all the same."""
    with passing(tmp_path, list(BUSY), retry_hint="header", retry_after_s=0.5) as played:
        assert_passed(played, BUSY)


def test_an_account_that_waits_uses_up_no_attempts(tmp_path: Path) -> None:
    waits = {name: ACCOUNT[name] for name in ACCOUNT if not name.startswith("html")}
    with passing(tmp_path, list(waits), retry_hint="header", retry_after_s=0.5) as played:
        assert_passed(played, waits)


@pytest.mark.parametrize("name", ["html_403", "html_429"])
def test_an_edge_that_refuses_this_machine_holds_the_run(tmp_path: Path, name: str) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        lay(desk, [name], good=2, times="*1", concurrency=1)
        with working(desk) as run:
            until(lambda: run.snapshot().state == "waiting", "it waits")
            assert "edge_limit" in run.snapshot().reason
            assert provider.ledger.requests == 1
        outcome = ending(run, desk)
        (attempt,) = outcome.files.all("attempts")
        assert (attempt["family"], attempt["scope"]) == ("edge_limit", "account")
        assert outcome.counts() == (0, 0, 3)
        assert engine_on(desk).code == 0
        assert_accounted(outcome.files)
