"""The verdict's words where people and scripts read them: status.json, headless lines, journal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from e2e_desk import Desk, Result, until
from e2e_files import assert_accounted
from e2e_provider import playing, slow

TEXT_ONLY = {"tokenizer": "none"}
TIME = r"\d\d:\d\d(:\d\d)?"
BURST = {
    "from_request": 40,
    "to_request": 70,
    "faults": {"rate_limit_upstream": 1.0},
    "provider": "siliconflow/int4",
}
PINNED = {"order": ["siliconflow/int4"], "allow_fallbacks": False}


def the_error(result: Result) -> dict[str, Any]:
    """The only error family of the only dataset, from the summary."""
    (error,) = result.summary["datasets"][0]["errors"]
    found: dict[str, Any] = error
    return found


def verdicts(result: Result) -> list[str]:
    """What was said of verdicts, in order, by the JSON lines."""
    return [record["text"] for record in result.records if record["event"] == "verdict"]


def assert_told_everywhere(desk: Desk, result: Result) -> None:
    """The same words in the summary, in status.json, in the journal and on stderr."""
    error = the_error(result)
    assert desk.files.status()["datasets"][0]["errors"] == [error]
    texts = [entry["text"] for entry in desk.files.events("verdict")]
    assert texts == verdicts(result)
    assert f" is {error['verdict']}" in texts[-1]
    for text in texts:
        assert f"verdict: {text}" in result.err
    closing = [line for line in result.err.splitlines() if re.match(r"\d\d:\d\d:\d\d A ", line)]
    assert f"{error['family']}:{error['verdict']}" in closing[-1]


def test_a_burst_that_passed(tmp_path: Path) -> None:
    with playing(windows=[BURST]) as provider, Desk(tmp_path, provider.base_url) as desk:
        endpoint = {**TEXT_ONLY, "provider": PINNED}
        desk.asking(150, endpoint=endpoint, limits={"concurrency": 16})
        result = desk.go("--json")
        assert result.code == 0
        error = the_error(result)
        count = len(desk.files.all("attempts"))
        assert (error["family"], error["verdict"]) == ("rate_limit", "RESOLVED")
        assert (error["provider"], error["count"]) == ("SiliconFlow", count)
        assert re.fullmatch(
            rf"{count} x rate_limit from SiliconFlow (in 2 bursts: .*|between {TIME} and {TIME}|"
            rf"at {TIME}), none for \d+ s; all \d+ prompts have succeeded since; the dataset has "
            "ended",
            error["evidence"],
        )
        assert_told_everywhere(desk, result)
        first, *_, last = verdicts(result)
        assert first.startswith("rate_limit from SiliconFlow is ACTIVE: ")
        assert last.startswith("rate_limit from SiliconFlow is RESOLVED, was ACTIVE: ")
        assert_accounted(desk.files)


def test_one_bad_host_of_three(tmp_path: Path) -> None:
    hosts: list[dict[str, Any]] = [
        {"name": "SiliconFlow", "tag": "siliconflow/int4"},
        {"name": "AtlasCloud", "tag": "atlas-cloud/int4"},
        {"name": "Novita", "tag": "novita", "faults": {"bad_gateway": 1.0}},
    ]
    with (
        playing(providers=hosts, latency=slow(0.1)) as provider,
        Desk(tmp_path, provider.base_url) as desk,
    ):
        desk.asking(200, endpoint=TEXT_ONLY, limits={"concurrency": 16})
        result = desk.go("--json")
        assert result.code == 0
        error = the_error(result)
        assert (error["family"], error["provider"]) == ("bad_gateway", "Novita")
        assert error["verdict"] == "RESOLVED"
        assert error["evidence"].endswith(
            "; Novita itself has answered nothing since; the dataset has ended"
        )
        (active, *_) = verdicts(result)
        assert re.match(r"bad_gateway from Novita is ACTIVE: \d+ x bad_gateway from Novita", active)
        assert_told_everywhere(desk, result)


ONE_HOST = [{"name": "SiliconFlow", "tag": "siliconflow/int4"}]


def test_all_prompts_are_refused_alike(tmp_path: Path) -> None:
    with (
        playing(faults={"moderation": 1.0}, providers=ONE_HOST) as provider,
        Desk(tmp_path, provider.base_url) as desk,
    ):
        desk.asking(60, endpoint=TEXT_ONLY)
        result = desk.go("--json")
        assert result.code == 3
        error = the_error(result)
        assert (error["family"], error["verdict"], error["count"]) == (
            "moderation",
            "STRUCTURAL",
            60,
        )
        assert error["evidence"].startswith(
            "all 60 prompts tried at SiliconFlow were refused alike, with moderation, "
        )
        assert_told_everywhere(desk, result)


def test_nothing_gets_through_and_the_run_ends_itself(tmp_path: Path) -> None:
    """The first hundred prompts all fail: no more time and money goes into the rest."""
    with (
        playing(faults={"bad_gateway": 1.0}) as provider,
        Desk(tmp_path, provider.base_url) as desk,
    ):
        desk.asking(400, endpoint=TEXT_ONLY, limits={"concurrency": 16, "max_attempts": 1})
        result = desk.go("--json")
        assert result.code == 4
        assert result.summary["reason"].startswith(
            "the endpoint ends the run: the first 100 prompts all failed, the last with "
            "bad_gateway: "
        )
        assert "--retry-failed" in result.summary["reason"]
        errors = result.summary["datasets"][0]["errors"]
        error = max(errors, key=lambda error: error["count"])
        assert error["verdict"] == "STRUCTURAL"
        assert re.match(
            rf"nothing gets through since {TIME}: all \d+ attempts failed, \d+ with bad_gateway, "
            r"on \d+ prompts, \d+ given up; no retry helped",
            error["evidence"],
        )
        assert "bad_gateway:STRUCTURAL" in result.err.splitlines()[-2]
        assert_accounted(desk.files)


def test_a_dataset_that_ends_with_every_prompt_given_up_has_resolved_nothing(
    tmp_path: Path,
) -> None:
    """Fewer failures than would prove a dead route, but none of the prompts has succeeded."""
    with (
        playing(faults={"bad_gateway": 1.0}) as provider,
        Desk(tmp_path, provider.base_url) as desk,
    ):
        desk.asking(6, endpoint=TEXT_ONLY, limits={"max_attempts": 1})
        result = desk.go("--json")
        assert result.code == 3
        errors = result.summary["datasets"][0]["errors"]
        assert {error["verdict"] for error in errors} == {"STRUCTURAL"}
        for error in errors:
            assert error["evidence"].endswith(
                "failed alike on every attempt and no retry helped; nothing has succeeded since"
            )


@pytest.mark.slow
def test_a_burst_is_called_resolved_while_the_run_goes_on(tmp_path: Path) -> None:
    """Half a minute of quiet, and enough replies in it, on the line that people read."""
    with (
        playing(windows=[BURST], latency=slow(0.5)) as provider,
        Desk(tmp_path, provider.base_url) as desk,
    ):
        endpoint = {**TEXT_ONLY, "provider": PINNED}
        desk.asking(1500, endpoint=endpoint, limits={"concurrency": 16})
        process = desk.begin("--json", "--interval", "1")
        until(lambda: "rate_limit:RESOLVED" in process.err, "it is over", patience_s=90)
        assert process.running
        error = desk.files.status()["datasets"][0]["errors"][0]
        assert re.search(
            r", none for \d+ s; (all \d+ prompts|\d+ of these prompts) (has|have) succeeded since"
            r"(, \d+ waits?)?$",
            error["evidence"],
        )
        assert "rate_limit:ACTIVE" in process.err
        process.kill()
