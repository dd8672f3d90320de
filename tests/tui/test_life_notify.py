"""`run --notify CMD`: told when the run is done, waits or stops, and never told the key."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from e2e_desk import Desk
from e2e_provider import playing
from scripted_run import busy, disk_full

from engine.simulator import Simulator
from tui.notify import Waits, tell

_SCRIPT = 'import json, os; open("told", "a").write(json.dumps(dict(os.environ)) + "\\n")'
WRITE = f"python3 -c '{_SCRIPT}'"


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing() as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(4, endpoint={"api": "openai"})
        desk.environment["EAGLEGEN_API_KEY"] = "sk-secret-key"
        yield desk


def told(folder: Path) -> list[dict[str, Any]]:
    path = folder / "told"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_the_end_is_told_before_the_command_returns(desk: Desk) -> None:
    assert desk.go("--notify", WRITE).code == 0
    (seen,) = told(desk.folder)
    mine = {name: value for name, value in seen.items() if name.startswith("EAGLEGEN_")}
    assert mine == {
        "EAGLEGEN_RUN": "e2e",
        "EAGLEGEN_RUN_DIR": str(desk.files.folder),
        "EAGLEGEN_STATE": "done",
        "EAGLEGEN_REASON": "",
        "EAGLEGEN_EXIT": "0",
    }
    assert "sk-secret-key" not in json.dumps(seen)


def test_a_stop_is_told_with_its_exit_code(desk: Desk) -> None:
    rows = [{"prompt": "[[sim:bad_request]] no"}] * 4
    desk.source("A.jsonl", rows)
    code = desk.go("--notify", WRITE).code
    (seen,) = told(desk.folder)
    assert seen["EAGLEGEN_EXIT"] == str(code) != "0"


def test_a_run_that_is_refused_tells_nothing(desk: Desk) -> None:
    (desk.folder / "out").write_text("a file")
    assert desk.go("--notify", WRITE).code == 2
    assert told(desk.folder) == []


def test_a_command_that_fails_changes_nothing_and_its_words_are_kept(desk: Desk) -> None:
    assert desk.go("--notify", "echo no such thing >&2; exit 7").code == 0
    assert "no such thing" in (desk.files.folder / "run.log").read_text()


def test_each_wait_is_told_once_in_a_while() -> None:
    waits, running, full = Waits(), busy(1e9, 5), disk_full()
    limit = replace(full, reason="rate limit; goes on in 12 s")
    again = replace(full, reason="rate limit; goes on in 40 s")
    assert not waits.is_news(running, 0)
    assert waits.is_news(full, 1)
    assert not waits.is_news(full, 2)
    assert not waits.is_news(running, 3)
    assert waits.is_news(limit, 4)
    waits.is_news(running, 5)
    assert not waits.is_news(again, 100)
    waits.is_news(running, 101)
    assert waits.is_news(again, 700)


def test_words_of_a_server_are_harmless_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-secret")
    hostile = "credits\0 short \ud83d\x1b[2J"
    tell(WRITE, replace(disk_full(), output=str(tmp_path), reason=hostile), None)
    (seen,) = told(tmp_path)
    assert seen["EAGLEGEN_STATE"] == "waiting"
    assert seen["EAGLEGEN_EXIT"] == ""
    assert seen["EAGLEGEN_REASON"].startswith("credits")
    assert "\x1b" not in seen["EAGLEGEN_REASON"]
    assert "OPENROUTER_API_KEY" not in seen
    assert os.environ["OPENROUTER_API_KEY"] == "sk-or-secret"
