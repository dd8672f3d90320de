"""What may change between the sessions of one run, and what each option does to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_desk import Desk
from e2e_files import assert_accounted
from e2e_provider import playing

from engine.simulator import Simulator

PLAIN = {"api": "openai"}
QUESTIONS = [{"prompt": f"Question {number}"} for number in range(12)]


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing() as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        yield desk


def lay(desk: Desk, *names: str, rows: list[Any] = QUESTIONS, **sections: dict[str, Any]) -> None:
    """One dataset a name, in this order, each with these rows."""
    datasets = [
        {
            "name": name,
            "source": desk.source(
                f"{name}.jsonl", [{"prompt": f"{name}: {r['prompt']}"} for r in rows]
            ),
            "prompts": len(rows),
        }
        for name in names
    ]
    desk.manifest(*datasets, **{"endpoint": PLAIN, **sections})


def view(desk: Desk, name: str) -> dict[str, Any]:
    views: list[dict[str, Any]] = desk.files.status()["datasets"]
    return next(view for view in views if view["name"] == name)


def test_a_pilot_keeps_the_manifests_totals_and_the_full_run_goes_on(
    desk: Desk, provider: Simulator
) -> None:
    lay(desk, "A", "B")
    pilot = desk.go("--limit", 3, "--json")
    assert pilot.code == 0
    assert provider.ledger.requests == 6
    for name in "AB":
        rows = desk.files.lines(f"{name}/rows.jsonl")
        assert sorted(row["index"] for row in rows) == [0, 1, 2]
        parts = {key: view(desk, name)[key] for key in ("state", "prompts", "ok", "left")}
        assert parts == {"state": "done", "prompts": 12, "ok": 3, "left": 9}
    assert_accounted(desk.files)
    assert desk.go("--limit", 3).code == 0
    assert provider.ledger.requests == 6
    assert desk.go().code == 0
    assert provider.ledger.requests == 24
    assert len(desk.files.all("rows")) == 24
    assert_accounted(desk.files)


def test_only_runs_the_named_datasets(desk: Desk) -> None:
    lay(desk, "A", "B", "C")
    result = desk.go("--only", "C", "--only", "A", "--json")
    assert result.code == 0
    assert [each["name"] for each in result.summary["datasets"]] == ["A", "C"]
    assert desk.files.datasets == ["A", "C"]
    assert desk.go().code == 0
    assert len(desk.files.all("rows")) == 36
    assert_accounted(desk.files)


def test_output_names_another_run_directory_from_where_one_stands(
    desk: Desk, provider: Simulator
) -> None:
    lay(desk, "A")
    assert desk.go("--output", "elsewhere/run 1").code == 0
    assert not desk.files.folder.exists()
    status = json.loads((desk.folder / "elsewhere" / "run 1" / "status.json").read_bytes())
    assert status["datasets"][0]["ok"] == 12
    assert desk.go().code == 0
    assert provider.ledger.requests == 24, "another folder is another run"


def test_base_url_names_another_endpoint_for_the_same_run(desk: Desk, provider: Simulator) -> None:
    lay(desk, "A")
    assert desk.go("--limit", 4).code == 0
    with playing() as other:
        assert desk.go("--base-url", other.base_url).code == 0
        assert (provider.ledger.requests, other.ledger.requests) == (4, 8)
    run = json.loads((desk.files.folder / "run.json").read_bytes())
    assert run["manifest"]["endpoint"]["base_url"] == other.base_url
    assert_accounted(desk.files)


def test_failed_prompts_are_left_alone_until_they_are_to_be_retried(
    desk: Desk, provider: Simulator
) -> None:
    """A conversation that failed in its second turn goes on there."""
    rows = [{"turns": ["Hello", "[[sim:content_filter*1]] Go on"]}, {"prompt": "Plain"}]
    source = desk.source("a.jsonl", rows)
    desk.manifest({"name": "A", "source": source, "prompts": 2}, endpoint=PLAIN)
    assert desk.go().code == 3
    (failure,) = desk.files.all("failures")
    assert (failure["turn"], failure["family"]) == (1, "content_filter")
    assert failure["id"].endswith("#1")
    assert len(desk.files.all("rows")) == 2, "the first turn's row stays"
    requests = provider.ledger.requests
    assert desk.go().code == 3
    assert provider.ledger.requests == requests
    assert view(desk, "A")["failed"] == 1
    assert desk.go("--retry-failed").code == 0
    assert len(desk.files.all("rows")) == 3
    assert (view(desk, "A")["ok"], view(desk, "A")["failed"]) == (2, 0)
    assert_accounted(desk.files)
    assert desk.go().code == 0
    assert provider.ledger.requests == requests + 1


def test_a_retried_prompt_that_fails_again_is_counted_once(desk: Desk) -> None:
    source = desk.source("a.jsonl", [{"prompt": "[[sim:moderation]] No"}, {"prompt": "Yes"}])
    desk.manifest({"name": "A", "source": source, "prompts": 2}, endpoint=PLAIN)
    assert desk.go().code == 3
    assert desk.go("--retry-failed").code == 3
    assert [failure["attempts"] for failure in desk.files.all("failures")] == [1, 2]
    assert view(desk, "A")["failed"] == 1
    assert desk.go().code == 3
    assert view(desk, "A")["failed"] == 1
    assert_accounted(desk.files)


def test_allow_short_takes_what_the_source_holds(desk: Desk) -> None:
    lay(desk, "A")
    path = desk.folder / "manifest.toml"
    path.write_text(path.read_text().replace("prompts = 12", "prompts = 15000"))
    assert desk.go().code == 2
    result = desk.go("--allow-short", "--json")
    assert result.code == 0
    assert result.summary["datasets"][0]["prompts"] == 12
    assert result.summary["datasets"][0]["ok"] == 12
    assert "A 12/12 " in result.err
    assert "15000" in result.err, "the manifest's number stands beside it"


def test_shards_share_a_source_without_overlap(desk: Desk, provider: Simulator) -> None:
    lay(desk, "A", rows=QUESTIONS)
    for number in (1, 2, 3):
        assert desk.go("--shard", f"{number}/3", "--output", f"shard{number}").code == 0
    assert provider.ledger.requests == 12
    assert provider.ledger.paid_twice == {}


def test_concurrency_limits_and_order_may_change(desk: Desk, provider: Simulator) -> None:
    lay(desk, "A", "B")
    assert desk.go("--limit", 5, "--concurrency", 2).code == 0
    assert provider.ledger.max_in_flight <= 2
    lay(desk, "C", "B", "A", limits={"concurrency": 5, "max_cost_usd": 9.0})
    assert desk.go().code == 0
    assert provider.ledger.max_in_flight == 5
    assert provider.ledger.requests == 36
    assert provider.ledger.paid_twice == {}
    status = desk.files.status()
    assert [each["name"] for each in status["datasets"]] == ["C", "B", "A"]
    assert status["max_cost_usd"] == 9.0
    assert_accounted(desk.files)


def test_what_changed_between_the_sessions_is_journalled(desk: Desk) -> None:
    lay(desk, "A")
    assert desk.go("--limit", 2).code == 0
    lay(desk, "B", "A", limits={"concurrency": 3}, endpoint={**PLAIN, "headers": {"X-Team": "t"}})
    assert desk.go().code == 0
    told = " ".join(entry["text"] for entry in desk.files.events("note"))
    for words in ("limits.concurrency", "8", "3", "endpoint.headers", "datasets"):
        assert words in told


def test_rows_may_be_added_moved_and_taken_away(desk: Desk, provider: Simulator) -> None:
    lay(desk, "A", rows=QUESTIONS)
    assert desk.go().code == 0
    first = desk.files.answers()
    moved = [{"prompt": "Brand new"}, *reversed(QUESTIONS[2:]), {"prompt": "Another"}]
    lay(desk, "A", rows=moved)
    result = desk.go("--json")
    assert result.code == 0
    assert provider.ledger.requests == 14, "only the new rows are asked"
    assert first.items() <= desk.files.answers().items(), "rows stay when their prompt is gone"
    told = [entry["text"] for entry in desk.files.events("note")]
    assert any("2 prompts with rows on disk are no longer in its source" in text for text in told)
    assert (view(desk, "A")["prompts"], view(desk, "A")["ok"]) == (12, 12)
    assert view(desk, "A")["left"] == 0
    assert desk.go().code == 0
    assert provider.ledger.requests == 14


def test_a_failed_prompt_may_be_taken_away(desk: Desk) -> None:
    """It is no longer one of the dataset's prompts, so the run ends well."""
    bad, good = {"prompt": "[[sim:moderation]] No"}, {"prompt": "Yes"}
    dataset = {"name": "A", "source": "a.jsonl", "prompts": 2}
    desk.source("a.jsonl", [bad, good])
    desk.manifest(dataset, endpoint=PLAIN)
    assert desk.go().code == 3
    desk.source("a.jsonl", [good, {"prompt": "Also"}])
    assert desk.go().code == 0
    assert (view(desk, "A")["ok"], view(desk, "A")["failed"]) == (2, 0)
    assert_accounted(desk.files)


def test_exact_doubles_are_prompts_of_their_own(desk: Desk, provider: Simulator) -> None:
    double = {"prompt": "The same"}
    desk.manifest(
        {"name": "A", "source": desk.source("a.jsonl", [double] * 3), "prompts": 3},
        endpoint=PLAIN,
    )
    assert desk.go("--limit", 2).code == 0
    assert desk.go().code == 0
    ids = sorted(row["id"].partition(".")[2] for row in desk.files.all("rows"))
    assert ids == ["0#0", "1#0", "2#0"]
    assert provider.ledger.requests == 3


def test_a_torn_last_line_is_moved_aside_and_asked_again(desk: Desk, provider: Simulator) -> None:
    lay(desk, "A")
    assert desk.go().code == 0
    path = desk.files.folder / "A" / "rows.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    assert desk.go().code == 0
    assert len(desk.files.lines("A/rows.jsonl")) == 12
    torn = (desk.files.folder / "A" / "rows.jsonl.torn").read_bytes()
    assert whole.splitlines()[-1].startswith(torn.rstrip(b"\n"))
    assert provider.ledger.requests == 13
    told = [entry["text"] for entry in desk.files.events("note")]
    assert any("1 torn last lines moved aside" in text for text in told)
    assert_accounted(desk.files)
