"""The command `check` as a person and a script meet it: text, JSON, exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from check_desk import KIMI, PROMPTS, look, sources
from e2e_desk import Desk, Result
from e2e_provider import playing

from engine.format import width
from tui.check import report_lines
from tui.check_tables import Column, table

ROWS = [{"prompt": f"Question {number}?"} for number in range(30)]
TOOLED = {
    "messages": [{"role": "user", "content": "What is the weather in Turku?"}],
    "tools": [{"type": "function", "function": {"name": "weather", "parameters": {}}}],
}
TALK = {"turns": ["First question?", "Second question?"]}


def checking(desk: Desk, *options: object) -> Result:
    return desk.run("check", desk.folder / "manifest.toml", *options)


def test_a_sound_manifest_exits_0_and_ends_with_a_verdict(tmp_path: Path) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(30)
        result = checking(desk)
        assert provider.ledger.requests == 0
    assert result.code == 0
    assert result.err == ""
    assert result.out.splitlines()[-1].startswith("0 failures, ")
    assert "siliconflow/int4" in result.out
    assert not (tmp_path / "out").exists()


def test_a_short_source_exits_2_and_stands_last(tmp_path: Path) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        source = desk.source("a.jsonl", ROWS)
        desk.manifest({"name": "A", "source": source, "prompts": 50})
        result = checking(desk)
        short = checking(desk, "--allow-short")
    assert result.code == 2
    tail = result.out.partition("FAIL")[2]
    assert "asks for 50 prompts, the source holds 30" in tail
    assert "\nok " not in tail
    assert "\nwarn " not in tail
    assert short.code == 0


def test_a_wrong_key_exits_4_and_is_never_printed(tmp_path: Path) -> None:
    scenario = {"account": {"keys": ["sk-right-key"]}}
    with playing(**scenario) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(3)
        desk.environment["EAGLEGEN_API_KEY"] = "sk-planted-secret-key"
        text, data = checking(desk), checking(desk, "--json")
        desk.environment["EAGLEGEN_API_KEY"] = "sk-right-key"
        right = checking(desk)
    assert (text.code, data.code, right.code) == (4, 4, 0)
    for result in (text, data, right):
        assert "planted-secret" not in result.out + result.err
        assert "sk-right" not in result.out + result.err


def test_a_missing_manifest_exits_2(tmp_path: Path) -> None:
    with Desk(tmp_path) as desk:
        result = checking(desk)
    assert result.code == 2
    assert result.out == ""
    assert "no such manifest" in result.err


def test_an_unknown_dataset_exits_2(tmp_path: Path) -> None:
    with Desk(tmp_path) as desk:
        desk.asking(3)
        result = checking(desk, "--offline", "--only", "Z")
    assert result.code == 2
    assert "no such dataset" in result.err


def test_offline_connects_to_nobody(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, Desk(tmp_path) as desk:
        desk.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}/api/v1"
        desk.asking(3)
        result = checking(desk, "--offline", "--json")
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    assert result.code == 0
    assert result.summary["offline"] is True
    assert result.summary["endpoint"] is None
    assert result.summary["estimate"]["cost_usd"] is None


def test_json_is_one_object_with_everything_in_it(tmp_path: Path) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(30, endpoint={"provider": {"ignore": ["novita"]}})
        result = checking(desk, "--json", "--limit", 10, "--concurrency", 5)
    (record,) = result.records
    assert result.err == ""
    assert record["exit_code"] == 0
    assert {finding["level"] for finding in record["findings"]} <= {"ok", "warn", "fail"}
    (dataset,) = record["datasets"]
    assert (dataset["prompts"], dataset["held"], dataset["rows"]) == (30, 30, 10)
    assert dataset["generations_left"] == 10
    hosts = {host["tag"]: host for host in record["endpoint"]["hosts"]}
    assert hosts["siliconflow/int4"]["completion_usd_per_m"] == 2.25
    assert hosts["novita"]["allowed"] is False
    assert hosts["novita"]["excluded"] == {"A": "in `ignore`"}
    assert record["estimate"]["concurrency"] == 5
    cost = record["estimate"]["cost_usd"]
    assert 0 < cost["low"] < cost["middle"] <= cost["high"] <= record["estimate"]["ceiling_usd"]
    assert "prompts" not in record


def test_shown_prompts_are_those_that_a_run_then_serves(tmp_path: Path) -> None:
    with playing(tokenizer="kimi-k2.5") as provider, Desk(tmp_path, provider.base_url) as desk:
        sources(
            tmp_path,
            ("A", [TOOLED, TALK, *ROWS]),
            ("B", ROWS),
            endpoint={"base_url": provider.base_url, **KIMI},
        )
        shown = checking(desk, "--json", "--show", 2).summary["prompts"]
        assert desk.go("--limit", 2).code == 0
        rows = {row["id"]: row for row in desk.files.all("rows")}
    assert [prompt["dataset"] for prompt in shown] == ["A", "A", "B", "B"]
    for prompt in shown:
        row = rows[prompt["id"]]
        assert prompt["prompt_ids"] == row["prompt_ids"]
        assert prompt["messages"] == row["messages"]
        assert prompt["tokens"] == len(prompt["prompt_ids"]) == row["usage"]["prompt_tokens"]
        assert prompt["prompt_text"].endswith("<|im_assistant|>assistant<|im_middle|><think>")


def test_shown_prompts_without_a_tokenizer_have_no_ids(tmp_path: Path) -> None:
    with Desk(tmp_path) as desk:
        desk.asking(3)
        text = checking(desk, "--offline", "--show", 1)
        (prompt,) = checking(desk, "--offline", "--json", "--show", 1).summary["prompts"]
    assert (prompt["prompt_text"], prompt["prompt_ids"]) == (None, None)
    assert "| [user] Question 0 of A?" in text.out


def test_hostile_words_reach_the_terminal_harmless(tmp_path: Path) -> None:
    with Desk(tmp_path) as desk:
        evil = "\x1b]0;owned\x07 \u202egnp.exe \x9b31m" + "long" * 900
        source = desk.source("a.jsonl", [{"prompt": evil}, {"from": evil}, {evil: 1}])
        desk.manifest({"name": "A", "source": source, "prompts": 3}, endpoint=KIMI)
        result = checking(desk, "--offline", "--show", 1)
    assert "\\e]0;owned" in result.out
    assert all(char.isprintable() or char == "\n" for char in result.out)
    assert max(map(width, result.out.splitlines())) <= 80


def awkward(folder: Path, base_url: str) -> Path:
    """A manifest that earns findings of every level and long names."""
    desk = Desk(folder)
    rows: list[Any] = [*ROWS, *ROWS, b"{torn", {"x": 1}, {"prompt": "汉" * 300}]
    return desk.manifest(
        *(
            {
                "name": name,
                "source": desk.source("a.jsonl", rows),
                "prompts": count,
                "token_budget": 20_000,
            }
            for name, count in (("B6_" + "ultrachat" * 4, 63), ("B7", 99_000_000))
        ),
        endpoint={"base_url": base_url, "provider": {"only": ["novita", "nowhere"]}, **KIMI},
        limits={"max_cost_usd": 0.2},
        sampling={"max_tokens": 4000, "min_p": 0.1, "top_pp": 1},
    )


@pytest.mark.parametrize("cells", [60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal(tmp_path: Path, cells: int) -> None:
    with playing(tokenizer="kimi-k2.5") as provider:
        report = look(awkward(tmp_path, provider.base_url), show=1)
    lines = list(report_lines(report, cells))
    assert max(map(width, lines)) <= cells
    assert not any("\x1b" in line for line in lines)
    words = [line[:4].strip() for line in lines if line[:4].strip() in {"ok", "warn", "FAIL"}]
    assert words == sorted(words, key=["ok", "warn", "FAIL"].index)
    assert {"ok", "warn", "FAIL"} <= set(words)


@pytest.mark.parametrize("no_colour", [False, True])
def test_colours_only_in_a_terminal_that_wants_them(tmp_path: Path, *, no_colour: bool) -> None:
    with Desk(tmp_path) as desk:
        manifest = desk.asking(3)
        environment = desk.environment | ({"NO_COLOR": "1"} if no_colour else {})
        out = in_terminal(["check", str(manifest), "--offline"], environment | {"COLUMNS": "100"})
    assert ("\x1b[32mok\x1b[0m" in out) is not no_colour


def in_terminal(arguments: list[str], environment: dict[str, str]) -> str:
    """What a command writes to a real pseudo-terminal."""
    code = "from tui.cli import main; main()"
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", code, *arguments]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    out = bytearray()
    with contextlib.suppress(OSError):  # Linux says so when the other end is closed
        while data := os.read(ours, 65_536):
            out += data
    process.wait()
    os.close(ours)
    return out.decode()


def test_a_table_drops_spare_columns_before_it_cuts() -> None:
    columns = [Column("name", right=False, least=4), Column("spare", spare=1), Column("n")]
    rows = [["abcdefghij", "123456", "42"]]
    assert table(columns, rows, 40)[1] == "abcdefghij  123456  42"
    assert table(columns, rows, 15)[1] == "abcdefghij  42"
    assert table(columns, rows, 9)[1] == "abcd…  42"


@pytest.mark.skipif(not PROMPTS.is_dir(), reason="needs the prompt sets in ../shared/prompts")
def test_the_real_sets_against_a_provider(tmp_path: Path) -> None:
    with playing(tokenizer="kimi-k2.5") as provider, Desk(tmp_path) as desk:
        result = desk.run(
            "check",
            PROMPTS / "manifest.toml",
            "--base-url",
            provider.base_url,
            "--output",
            tmp_path / "out",
            "--json",
        )
    assert result.code == 0
    record = json.loads(result.out)
    assert sum(dataset["rows"] for dataset in record["datasets"]) == 9714
    assert all(dataset["prompt_tokens"]["exact"] for dataset in record["datasets"])
    assert [host["tag"] for host in record["endpoint"]["hosts"] if host["allowed"]] == [
        "siliconflow/int4"
    ]
