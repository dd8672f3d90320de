"""Every fault of the local provider through the real engine: family, scope, and no bogus row."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from e2e_desk import Desk, until
from e2e_files import assert_accounted
from e2e_provider import playing
from money_engine import Outcome, ending, engine_on, working
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

from engine.faults import FAMILIES
from engine.simulator import Simulator
from engine.simulator.faults import FAULTS

TAGS = ["siliconflow/int4", "atlas-cloud/int4", "novita"]
ENDPOINT: dict[str, Any] = {"tokenizer": "none", "provider": {"only": TAGS}}
LIMITS: dict[str, Any] = {"concurrency": 64, "max_attempts": 2, "request_timeout_s": 1}
GOOD_EACH = 3
"""Good prompts beside each bad one: the hosts are not broken, and no breaker may think so."""


def lay(desk: Desk, names: list[str], *, good: int = 0, times: str = "", **limits: Any) -> None:
    """One dataset with a prompt for each fault, and good prompts among them."""
    rows = []
    for name in names:
        rows.append({"prompt": f"[[sim:{name}{times}]] Question", "id": name})
        rows += [{"prompt": f"Good question {n} beside {name}"} for n in range(good)]
    source = desk.source("a.jsonl", rows)
    desk.manifest(
        {"name": "A", "source": source, "prompts": len(rows)},
        endpoint=ENDPOINT,
        limits={**LIMITS, **limits},
    )


@dataclass(frozen=True)
class Played:
    """A session in which each fault was suffered by one prompt."""

    outcome: Outcome
    provider: Simulator
    names: dict[str, str]
    """Row id: the fault that its prompt suffers."""

    def of(self, kind: str) -> dict[str, list[dict[str, Any]]]:
        """Records of rows, attempts or failures by fault; those of good prompts under ''."""
        found = defaultdict(list)
        for record in self.outcome.files.all(kind):
            found[self.names.get(record["id"], "")].append(record)
        return found


def played(provider: Simulator, outcome: Outcome, names: list[str], good: int) -> Played:
    places = {place * (good + 1): name for place, name in enumerate(names)}
    first = {r["id"]: r for kind in ("rows", "failures") for r in outcome.files.all(kind)}
    known = {i: places[r["index"]] for i, r in first.items() if r["index"] in places}
    return Played(outcome, provider, known)


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """All faults of prompts, hosts and the network in one run, each at every attempt."""
    names = [*PROMPT, *PROVIDER, *ATTEMPT, *ROWS]
    folder = tmp_path_factory.mktemp("faults")
    with (
        playing(generation_delay_s=0.2, retry_hint="metadata", retry_after_s=0.1) as provider,
        Desk(folder, provider.base_url) as desk,
    ):
        lay(desk, names, good=GOOD_EACH)
        yield played(provider, engine_on(desk), names, GOOD_EACH)


def test_the_table_knows_every_fault_of_the_simulator() -> None:
    assert set(EVERY) == set(FAULTS)
    assert {e.family for e in EVERY.values()} - {""} <= set(FAMILIES)


def test_the_run_ends_by_itself_and_every_request_is_on_record(lasting: Played) -> None:
    assert lasting.outcome.code == 3
    assert lasting.outcome.last.state == "done"
    assert_accounted(lasting.outcome.files)
    records = len(lasting.outcome.files.all("rows")) + len(lasting.outcome.files.all("attempts"))
    assert lasting.provider.ledger.requests == records


def test_good_prompts_among_the_bad_ones_become_rows(lasting: Played) -> None:
    faults = [*PROMPT, *PROVIDER, *ATTEMPT, *ROWS]
    assert len(lasting.of("rows")[""]) == GOOD_EACH * len(faults)
    assert lasting.of("attempts")[""] == []
    assert lasting.of("failures")[""] == []


@pytest.mark.parametrize("name", [*PROMPT, *PROVIDER, *ATTEMPT])
def test_a_fault_has_its_family_and_is_never_a_row(lasting: Played, name: str) -> None:
    expected = EVERY[name]
    attempts = lasting.of("attempts")[name]
    rows, failures = lasting.of("rows")[name], lasting.of("failures")[name]
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
def test_a_doubtful_reply_that_was_paid_for_is_a_flagged_row(lasting: Played, name: str) -> None:
    (row,) = lasting.of("rows")[name]
    assert row["flags"] == list(EVERY[name].flags)
    assert row["attempts"] == 1
    assert lasting.of("attempts")[name] == []


def test_flags_are_counted_on_the_screen(lasting: Played) -> None:
    flags = Counter(flag for row in lasting.outcome.files.all("rows") for flag in row["flags"])
    assert lasting.outcome.last.datasets[0].flags == flags
    assert set(flags) == {flag for expected in ROWS.values() for flag in expected.flags}


def test_what_was_charged_is_recorded_or_said_to_be_unknown(lasting: Played) -> None:
    """A prompt all of whose costs are known costs what was charged for it, at least."""
    files, spent = lasting.outcome.files, lasting.provider.ledger.spent
    charged = {e.id: e.prompt_hash for e in lasting.provider.ledger.entries}
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
            assert sum(costs) >= spent.get(prompt, 0.0) - 1e-12, lasting.names.get(identifier)


@pytest.mark.parametrize("name", RUN)
def test_a_fault_of_the_run_ends_it_and_the_next_run_goes_on(tmp_path: Path, name: str) -> None:
    expected = EVERY[name]
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        lay(desk, [name], good=2, times="*1", concurrency=1)
        outcome = engine_on(desk)
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
        assert provider.ledger.requests == 4
        assert_accounted(outcome.files)


def passed(folder: Path, names: list[str], **scenario: Any) -> Played:
    """Faults that pass: each is suffered once, and then the prompt is answered."""
    with playing(**scenario) as provider, Desk(folder, provider.base_url) as desk:
        lay(desk, names, good=4, times="*1", max_attempts=1)
        return played(provider, engine_on(desk), names, 4)


def assert_passed(session: Played, faults: dict[str, Expected]) -> None:
    assert session.outcome.code == 0
    for name, expected in faults.items():
        (attempt,) = session.of("attempts")[name]
        assert (attempt["family"], attempt["scope"]) == (expected.family, expected.scope)
        assert expected.words in attempt["message"]
        (row,) = session.of("rows")[name]
        assert row["attempts"] == 2
    assert session.outcome.files.all("failures") == []
    assert_accounted(session.outcome.files)
    records = len(session.outcome.files.all("rows")) + len(session.outcome.files.all("attempts"))
    assert session.provider.ledger.requests == records


def test_a_busy_route_uses_up_no_attempts(tmp_path: Path) -> None:
    """`max_attempts` is 1, and after a refusal the prompt is asked again all the same."""
    session = passed(tmp_path, list(BUSY), retry_hint="header", retry_after_s=0.5)
    assert_passed(session, BUSY)


def test_an_account_that_waits_uses_up_no_attempts(tmp_path: Path) -> None:
    waits = {name: ACCOUNT[name] for name in ACCOUNT if not name.startswith("html")}
    session = passed(tmp_path, list(waits), retry_hint="header", retry_after_s=0.5)
    assert_passed(session, waits)


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
