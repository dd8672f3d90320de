"""Whom a fault concerns is who acts on it: one attempt, one host, the whole account."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from e2e_desk import Desk, until
from e2e_files import RunFiles, assert_accounted
from e2e_provider import playing
from money_engine import ending, engine_on, working
from money_tap import Asked, tapped

from engine.simulator import Simulator

TEXT_ONLY = {"tokenizer": "none"}
HOSTS = {"SiliconFlow": "siliconflow", "AtlasCloud": "atlas-cloud", "Novita": "novita"}
"""Display names and the slugs that the router is told."""


@contextmanager
def asked_of(folder: Path, count: int, **scenario: Any) -> Iterator[tuple[Desk, Simulator]]:
    """A desk with `count` questions to a provider that plays the scenario."""
    with playing(**scenario) as provider, Desk(folder, provider.base_url) as desk:
        desk.asking(count, endpoint=TEXT_ONLY, limits={"concurrency": 8})
        yield desk, provider


def epoch(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def one_host(name: str, **more: Any) -> list[dict[str, Any]]:
    """The three hosts, one of them different."""
    hosts = [{"name": host, "tag": f"{slug}/int4"} for host, slug in HOSTS.items()]
    return [{**host, **more} if host["name"] == name else host for host in hosts]


def assert_pauses(files: RunFiles, family: str, wait_s: float) -> None:
    """No request was written down between a refusal of the account and the end of its wait."""
    refusals = [a for a in files.all("attempts") if a["family"] == family]
    assert refusals
    sent = sorted(epoch(record["at"]) for record in files.all("sent"))
    for refusal in refusals:
        ended = epoch(refusal["started_at"]) + refusal["latency_s"]
        # what was taken up just before is still being written down when the refusal arrives
        assert not [at for at in sent if ended + 0.2 * wait_s < at < ended + wait_s - 0.002]


@pytest.mark.parametrize(
    "hint",
    [
        "header",
        *(pytest.param(h, marks=pytest.mark.slow) for h in ("metadata", "metadata_headers")),
    ],
)
def test_a_429_of_the_account_pauses_all_for_as_long_as_it_asks(tmp_path: Path, hint: str) -> None:
    spell = {
        "from_request": 20,
        "to_request": 22,
        "faults": {"rate_limit_admission": 1.0},
        "retry_hint": hint,
        "retry_after_s": 1,
    }
    with asked_of(tmp_path, 60, windows=[spell]) as (desk, provider):
        with working(desk) as run:
            until(lambda: run.snapshot().state == "waiting", "it waits")
            reason = run.snapshot().reason
            assert reason.startswith("account_limit: The account is limited, not one provider.")
            assert "goes on in" in reason
            outcome = ending(run, desk)
        assert outcome.code == 0
        assert_pauses(outcome.files, "account_limit", 1.0)
        assert_accounted(outcome.files)
        assert len(outcome.files.all("attempts")) == 2
        texts = [entry["text"] for entry in outcome.files.events("state")]
        assert any("→ waiting: account_limit: The account is limited" in text for text in texts)
        assert any("run waiting → running" in text for text in texts)
        assert provider.ledger.requests == 62


def test_a_full_in_flight_budget_is_waited_out(tmp_path: Path) -> None:
    """It holds four requests at their max_tokens, and twelve want to start."""
    hold = 300 * 2.5e-6
    account = {"in_flight_budget": 4.5 * hold, "settlement_s": 0.1}
    with asked_of(tmp_path, 12, account=account, retry_after_s=1) as (desk, _):
        desk.asking(12, endpoint=TEXT_ONLY, limits={"concurrency": 12})
        outcome = engine_on(desk)
        assert outcome.code == 0
        assert {a["family"] for a in outcome.files.all("attempts")} == {"in_flight_budget"}
        assert_pauses(outcome.files, "in_flight_budget", 1.0)
        assert_accounted(outcome.files)


def retries(asked: list[Asked]) -> list[tuple[Asked, Asked]]:
    """Each request that was asked again, with the next one for the same prompt."""
    last: dict[str, Asked] = {}
    pairs = []
    for request in asked:
        if request.text in last:
            pairs.append((last[request.text], request))
        last[request.text] = request
    return pairs


@pytest.mark.parametrize("fault", ["bad_gateway", "rate_limit_upstream", "choices_empty"])
def test_a_retry_asks_the_router_to_leave_the_failing_host_out(tmp_path: Path, fault: str) -> None:
    hosts = one_host("AtlasCloud", faults={fault: 1.0})
    with asked_of(tmp_path, 30, providers=hosts, retry_after_s=0.1) as (desk, provider):
        asked = tapped(provider)
        outcome = engine_on(desk)
        assert outcome.code == 0
        attempts = outcome.files.all("attempts")
        assert {a["provider"] for a in attempts} == {"AtlasCloud"}
        pairs = retries(asked)
        assert len(pairs) == len(attempts) > 3
        for _, again in pairs:
            assert again.ignore == ["atlas-cloud"]
        assert {row["provider"] for row in outcome.files.all("rows")} == set(HOSTS) - {"AtlasCloud"}
        assert_accounted(outcome.files)


def test_a_pinned_host_is_asked_again_itself(tmp_path: Path) -> None:
    """`ignore` would leave no route: the retry goes where the manifest says."""
    hosts = one_host("Novita", faults={"bad_gateway": 0.2})
    with asked_of(tmp_path, 30, providers=hosts) as (desk, provider):
        asked = tapped(provider)
        pin = {"order": ["novita"], "allow_fallbacks": False}
        desk.asking(30, endpoint={**TEXT_ONLY, "provider": pin}, limits={"concurrency": 8})
        outcome = engine_on(desk)
        assert outcome.code == 0
        assert len(outcome.files.all("attempts")) > 3
        assert not any(request.ignore for request in asked)
        assert {row["provider"] for row in outcome.files.all("rows")} == {"Novita"}


def test_retries_never_leave_the_whole_route_out(tmp_path: Path) -> None:
    """Two of three hosts fail, so that breaker and retry together could name all of them."""
    bad = {"faults": {"bad_gateway": 1.0}}
    hosts = [{**host, **bad} for host in one_host("Novita")[:2]] + one_host("Novita")[2:]
    with asked_of(tmp_path, 120, providers=hosts) as (desk, provider):
        asked = tapped(provider)
        outcome = engine_on(desk)
        assert outcome.code == 0
        assert {a["family"] for a in outcome.files.all("attempts")} == {"bad_gateway"}
        assert max(len(request.ignore) for request in asked) == 2
        assert {row["provider"] for row in outcome.files.all("rows")} == {"Novita"}


def test_the_breaker_keeps_a_failing_host_out(tmp_path: Path) -> None:
    hosts = one_host("Novita", faults={"bad_gateway": 1.0})
    with asked_of(tmp_path, 300, providers=hosts) as (desk, provider):
        asked = tapped(provider)
        outcome = engine_on(desk)
        assert outcome.code == 0
        by_host = Counter(entry.provider for entry in provider.ledger.entries)
        assert 8 <= by_host["Novita"] < 30, "a third of 300 would be 100"
        assert sum(request.ignore == ["novita"] for request in asked) > 200
        (novita,) = (view for view in outcome.last.providers if view.name == "Novita")
        assert "of its last" in novita.state


def test_an_unknown_code_is_tried_a_few_times_and_then_named_with_its_body(tmp_path: Path) -> None:
    with asked_of(tmp_path, 1) as (desk, _):
        source = desk.source("x.jsonl", [{"prompt": "[[sim:unknown_status_418]] Tea"}])
        desk.manifest({"name": "A", "source": source, "prompts": 1}, endpoint=TEXT_ONLY)
        outcome = engine_on(desk)
        assert outcome.code == 3
        (failure,) = outcome.files.all("failures")
        assert (failure["family"], failure["attempts"]) == ("unknown_code", 3)
        assert failure["message"] == "Something nobody has seen before"


@pytest.mark.parametrize(("fault", "attempts"), [("available_never", 1), ("available_retry", 2)])
def test_availability_says_whether_to_try_again(tmp_path: Path, fault: str, attempts: int) -> None:
    with asked_of(tmp_path, 1, retry_hint="availability", retry_after_s=0.01) as (desk, _):
        source = desk.source("x.jsonl", [{"prompt": f"[[sim:{fault}]] Hello"}])
        desk.manifest(
            {"name": "A", "source": source, "prompts": 1},
            endpoint=TEXT_ONLY,
            limits={"max_attempts": 2},
        )
        outcome = engine_on(desk)
        assert outcome.code == 3
        assert len(outcome.files.all("attempts")) == attempts
