"""Every exit code of DESIGN §5, each provoked by what a real endpoint or operator does."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_contract import FAILURE, assert_fields
from e2e_desk import MODEL, Desk
from e2e_files import assert_accounted, assert_settled
from e2e_provider import arrived, playing, slow

from engine.simulator import Simulator

PLAIN = {"api": "openai"}


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing() as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        yield desk


def prompts(desk: Desk, *texts: str, **sections: dict[str, Any]) -> None:
    """A manifest with one dataset of these prompts, asked one after the other."""
    source = desk.source("p.jsonl", [{"prompt": text} for text in texts])
    dataset = {"name": "A", "source": source, "prompts": len(texts)}
    desk.manifest(dataset, **{"limits": {"concurrency": 1}, **sections})


def test_0_at_the_token_budget(desk: Desk, provider: Simulator) -> None:
    texts = [f"Question {n}" for n in range(40)]
    prompts(desk, *texts)
    path = desk.folder / "manifest.toml"
    path.write_text(path.read_text() + "token_budget = 200\n")
    result = desk.go("--json")
    assert result.code == 0
    (view,) = result.summary["datasets"]
    assert (view["state"], view["token_budget"]) == ("budget", 200)
    assert view["completion_tokens"] >= 200
    assert 0 < view["rows"] == provider.ledger.requests < 40
    assert view["left"] == 40 - view["rows"]
    assert_accounted(desk.files)


PLANTED = """
import engine.{module} as module
sound, calls = module.{name}, 0
def broken(*arguments, **options):
    global calls
    calls += 1
    if calls == {call}:
        raise RuntimeError("planted fault")
    return sound(*arguments, **options)
module.{name} = broken
"""
"""Breaks one function of the engine at one of its calls, from inside the process."""


@pytest.mark.parametrize(
    ("module", "name", "call"),
    [
        ("conductor", "keep", 5),
        ("attempt", "parse_reply", 5),
        ("settle", "RowSaved", 5),
        ("view.stats", "RunStats.fold", 5),
        ("conductor", "Conductor._tick", 2),
        ("view.publish", "Publisher.next", 3),
        ("feed.feeder", "Feeder._read", 1),
    ],
)
def test_1_a_fault_of_ours_ends_the_run_and_keeps_what_was_paid(
    tmp_path: Path, module: str, name: str, call: int
) -> None:
    """Wherever it is: the run does not hang, says what happened, and goes on the next time."""
    with playing(latency=slow(0.2)) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(16, endpoint=PLAIN, limits={"concurrency": 4})
        fault = PLANTED.format(module=module, name=name, call=call)
        result = desk.begin("--json", before=fault).wait()
        assert result.code == 1, result.err
        assert "RuntimeError: planted fault" in result.err
        assert result.summary["state"] == "stopped"
        assert_settled(desk.files)
        assert len(desk.files.all("sent")) == arrived(provider)
        assert desk.go().code == 0
        assert len(desk.files.all("rows")) == 16
        assert_accounted(desk.files)


def test_3_a_failed_prompt(desk: Desk) -> None:
    prompts(desk, "[[sim:moderation]] Bad", "Good")
    result = desk.go("--json")
    assert result.code == 3
    (failure,) = desk.files.all("failures")
    assert failure["family"] == "moderation"
    assert_fields(failure, FAILURE)
    assert (failure["dataset"], failure["index"], failure["turn"]) == ("A", 0, 0)
    assert failure["attempts"] == 1
    assert result.summary["datasets"][0]["failed"] == 1
    assert desk.go().code == 3, "a failure stays one until it is retried"
    assert len(desk.files.all("failures")) == 1
    assert_accounted(desk.files)


def test_3_an_unreadable_row(desk: Desk) -> None:
    source = desk.source("p.jsonl", [{"prompt": "fine"}, b"{nope", {"prompt": " "}])
    desk.manifest({"name": "A", "source": source, "prompts": 3})
    result = desk.go("--json")
    assert result.code == 3
    assert result.summary["datasets"][0]["invalid"] == 2
    assert result.summary["state"] == "done"
    failures = desk.files.all("failures")
    assert [failure["id"] for failure in failures] == [None, None]
    assert [failure["family"] for failure in failures] == ["invalid_row", "invalid_row"]
    assert [failure["message"].partition(":")[0] for failure in failures] == ["line 2", "line 3"]
    assert desk.go().code == 3
    assert len(desk.files.all("failures")) == 2, "a row is reported once"


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        ({"model": "nobody/nothing"}, ["no model nobody/nothing"]),
        ({"provider": {"only": ["moonshotai"]}}, ["none of the 3 hosts", "siliconflow/int4"]),
        ({"base_url": "http://127.0.0.1:9/api/v1"}, ["127.0.0.1:9", "does not answer"]),
        ({**PLAIN, "model": "nobody/nothing"}, ["model_gone: nobody/nothing is not a valid"]),
        ({**PLAIN, "model": f"{MODEL}-0127", "extra_body": {"zdr": True}}, []),
    ],
    ids=["model gone", "no route", "nobody listens", "model gone, seen late", "all is well"],
)
def test_4_the_endpoint_ends_the_run(
    desk: Desk, provider: Simulator, endpoint: dict[str, Any], words: list[str]
) -> None:
    prompts(desk, "One", "Two", endpoint=endpoint)
    result = desk.go("--json")
    assert result.code == (4 if words else 0)
    for word in words:
        assert word in result.err
    assert "Traceback" not in result.err
    assert (result.summary["state"] == "stopped") == bool(words)
    assert provider.ledger.charged == (0 if words else 2)


def test_4_the_key_is_not_accepted(tmp_path: Path) -> None:
    with (
        playing(account={"keys": ["right"]}) as provider,
        Desk(tmp_path, provider.base_url) as desk,
    ):
        prompts(desk, "One")
        desk.environment["EAGLEGEN_API_KEY"] = "wrong"
        result = desk.go()
        assert result.code == 4
        assert "does not accept the key (HTTP 401 on /key)" in result.err
        assert "EAGLEGEN_API_KEY" in result.err
        assert arrived(provider) == 0
        desk.environment["EAGLEGEN_API_KEY"] = "right"
        assert desk.go().code == 0


@pytest.mark.parametrize(("fault", "family"), [("bad_key", "auth"), ("credits", "credits")])
def test_4_in_the_middle_and_the_next_run_goes_on(
    desk: Desk, provider: Simulator, fault: str, family: str
) -> None:
    """What is in flight when the account is refused still becomes rows."""
    prompts(desk, "One", f"[[sim:{fault}*1]] Two", "Three", endpoint=PLAIN)
    result = desk.go("--json")
    assert result.code == 4
    assert result.summary["state"] == "stopped"
    assert result.summary["reason"].startswith(f"the endpoint ends the run: {family}: ")
    assert "then run again" in result.summary["reason"]
    assert [attempt["family"] for attempt in desk.files.all("attempts")] == [family]
    assert desk.files.all("failures") == []
    assert result.summary["datasets"][0]["left"] == 2
    assert_accounted(desk.files)
    assert desk.go().code == 0
    assert len(desk.files.all("rows")) == 3
    assert provider.ledger.requests == 4


def test_4_goes_before_3(desk: Desk) -> None:
    prompts(desk, "[[sim:moderation]] Bad", "[[sim:bad_key]] Worse", endpoint=PLAIN)
    assert desk.go().code == 4


def test_5_the_run_is_held_by_another_process(tmp_path: Path) -> None:
    with playing(latency=slow(30)) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(2, endpoint=PLAIN)
        first = desk.begin()
        first.until(lambda: arrived(provider) == 2, "the first process is at work")
        second = desk.go("--json")
        assert second.code == 5
        assert f"process {first.pid} on " in second.err
        assert second.out == ""
        assert arrived(provider) == 2
        first.kill()
        third = desk.begin()
        third.until(lambda: arrived(provider) == 4, "a dead process holds nothing")
        third.kill()


def test_6_at_the_dollar_cap(tmp_path: Path) -> None:
    """The cap reckons with the worst case of what is in flight, and is never passed."""
    dear = [{"name": "Dear", "tag": "dear", "prompt_usd_per_m": 0, "completion_usd_per_m": 1000}]
    with playing(providers=dear) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(60, limits={"concurrency": 8, "max_cost_usd": 1.0})
        result = desk.go("--json")
        assert result.code == 6
        assert "max_cost_usd" in result.summary["reason"]
        assert result.summary["max_cost_usd"] == 1.0
        assert 0 < provider.ledger.cost_usd <= 1.0
        assert result.summary["cost_usd"] == pytest.approx(provider.ledger.cost_usd)
        assert result.summary["datasets"][0]["left"] == 60 - provider.ledger.requests
        assert_accounted(desk.files)
        desk.asking(60, limits={"concurrency": 8, "max_cost_usd": 100.0})
        assert desk.go().code == 0, "a raised cap lets the run go on"
        assert len(desk.files.all("rows")) == 60


def test_130_goes_before_3(tmp_path: Path) -> None:
    with playing(latency=slow(0.5)) as provider, Desk(tmp_path, provider.base_url) as desk:
        prompts(desk, "[[sim:moderation]] Bad", "One", "Two", "Three")
        process = desk.begin()
        failures = desk.files.folder / "A" / "failures.jsonl"
        process.until(lambda: failures.exists() and failures.stat().st_size, "a failure")
        process.until(lambda: provider.provider.in_flight, "a request")
        process.signal(signal.SIGTERM)
        assert process.wait().code == 130


def test_0_when_what_is_left_was_skipped_by_order_which_survives_a_resume(tmp_path: Path) -> None:
    with playing(latency=slow(0.1)) as provider, Desk(tmp_path, provider.base_url) as desk:
        long, short = ([{"prompt": f"{n} of {size}"} for n in range(size)] for size in (600, 4))
        desk.manifest(
            {"name": "Long", "source": desk.source("long.jsonl", long), "prompts": 600},
            {"name": "Short", "source": desk.source("short.jsonl", short), "prompts": 4},
            endpoint=PLAIN,
            limits={"concurrency": 4},
        )
        process = desk.begin()
        process.until(lambda: provider.provider.in_flight == 4, "the long one is at work")
        answer = desk.run("control", desk.files.folder, "skip", "Long")
        assert answer.code == 0, answer.err
        assert process.wait().code == 0
        first, second = desk.files.status()["datasets"]
        assert (first["state"], first["failed"], first["in_flight"]) == ("skipped", 0, 0)
        assert 0 < first["left"] == 600 - first["ok"]
        assert (second["state"], second["ok"]) == ("done", 4)
        before = provider.ledger.requests
        assert desk.go().code == 0
        assert provider.ledger.requests == before
        assert desk.files.status()["datasets"][0]["state"] == "skipped"
        assert_accounted(desk.files)
