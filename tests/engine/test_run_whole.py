"""A whole small run, headless, over real HTTP: six datasets in six row forms, every file."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from e2e_contract import ATTEMPT, DATASET, ERROR, ROW, SENT, STATUS, TIME, assert_fields
from e2e_desk import MODEL, Desk, Result
from e2e_files import RunFiles, assert_accounted
from e2e_provider import playing

from engine.simulator import Simulator
from engine.simulator.ledger import Entry

WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
U, A, S = "user", "assistant", "system"
Talk = list[tuple[str, str]]
TALK: Talk = [(U, "First"), (A, "theirs"), (U, "Second"), (A, "theirs too"), (U, "Third")]


@dataclass(frozen=True)
class Expected:
    """What one source row must come to: its normalised messages, and the turns that get a row."""

    messages: Talk
    turns: tuple[int, ...] = (0,)
    tools: list[Any] | None = None

    @property
    def hash(self) -> str:
        messages = [{"role": role, "content": content} for role, content in self.messages]
        value = {"messages": messages, "tools": self.tools}
        text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


EXPECTED: dict[str, list[Expected]] = {
    "B3_chat": [
        Expected([(S, "Be brief."), (U, "Hi"), (A, "Ho"), (U, "And?")], (0, 1)),
        Expected([(S, "Answer in French."), (U, "Bonjour")]),
        Expected([(U, "Hallo, schöne Welt — 你好")]),
    ],
    "B4_json": [Expected([(U, f"What is {n} squared?")]) for n in range(6)],
    "B5_csv": [
        Expected([(U, "Translate.\n\nguten Tag, Welt")]),
        Expected([(U, "Say\nsomething")]),
    ],
    "B6_turns": [
        Expected([(U, "Write a haiku"), (U, "Explain it")], (0, 1)),
        Expected([(U, "One more"), (U, "And its rhyme"), (U, "Shorter")], (0, 1, 2)),
    ],
    "B7_last": [Expected(TALK, (2,))],
    "B8_first": [
        Expected(TALK, (0,), [WEATHER]),
        Expected([(U, "The same twice")]),
        Expected([(U, "The same twice")]),
        Expected([(U, "[[sim:overloaded_529*1]] Once busy")]),
    ],
}


def as_messages(talk: Talk) -> list[dict[str, str]]:
    return [{"role": role, "content": content} for role, content in talk]


def as_conversation(talk: Talk) -> list[dict[str, str]]:
    names = {U: "human", A: "gpt", S: "system"}
    return [{"from": names[role], "value": content} for role, content in talk]


def write_sources(desk: Desk) -> None:
    """Every row form of DESIGN §4, and every kind of file that needs no extra."""
    chat, french, hello = EXPECTED["B3_chat"]
    b3 = [
        {"messages": as_messages(chat.messages), "id": 7},
        {"conversations": as_conversation(french.messages[1:]), "system": "Answer in French."},
        {"prompt": hello.messages[0][1], "uuid": "x"},
    ]
    desk.source("b3.jsonl", b3)
    b4 = [{"question": e.messages[0][1], "question_id": 1} for e in EXPECTED["B4_json"]]
    (desk.folder / "b4.json").write_text(json.dumps(b4))
    with (desk.folder / "b5.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerows([("instruction", "input"), ("Translate.", "guten Tag, Welt")])
        table.writerow(("Say\nsomething", ""))
    b6 = [{"turns": [text for _, text in e.messages]} for e in EXPECTED["B6_turns"]]
    lines = b"\n".join(json.dumps(row).encode() for row in b6)
    (desk.folder / "b6.jsonl.gz").write_bytes(gzip.compress(lines))
    desk.source("b7.jsonl", [{"messages": as_messages(TALK)}])
    b8 = [{"conversations": as_conversation(TALK), "tools": json.dumps([WEATHER])}]
    desk.source(
        "b8.jsonl", [*b8, *({"prompt": e.messages[0][1]} for e in EXPECTED["B8_first"][1:])]
    )


def datasets() -> list[dict[str, Any]]:
    extra: dict[str, dict[str, Any]] = {
        "B4_json": {"source": "b4.json", "token_budget": 1_000_000},
        "B5_csv": {"source": "b5.csv", "sampling": {"max_tokens": 250}},
        "B6_turns": {"source": "b6.jsonl.gz"},
        "B7_last": {"turns": "last"},
        "B8_first": {"turns": "first"},
    }
    return [
        {"name": name, "source": f"{name[:2].lower()}.jsonl", "prompts": len(rows)}
        | extra.get(name, {})
        for name, rows in EXPECTED.items()
    ]


@dataclass(frozen=True)
class Done:
    result: Result
    files: RunFiles
    provider: Simulator

    @property
    def rows(self) -> dict[str, dict[str, Any]]:
        return {row["id"]: row for row in self.files.all("rows")}

    @property
    def charges(self) -> list[Entry]:
        return [entry for entry in self.provider.ledger.entries if entry.cost]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    folder = tmp_path_factory.mktemp("whole")
    with playing() as provider, Desk(folder, provider.base_url) as desk:
        write_sources(desk)
        desk.manifest(*datasets())
        yield Done(desk.begin("--headless").wait(), desk.files, provider)


def test_it_ends_with_exit_0_and_says_so(done: Done) -> None:
    assert done.result.code == 0, done.result.err
    assert done.result.out == ""
    assert "(exit 0)" in done.result.err.splitlines()[-1]
    assert "Traceback" not in done.result.err


def test_there_is_one_row_for_each_expected_generation(done: Done) -> None:
    expected, seen = set(), dict[str, int]()
    for name, prompts in EXPECTED.items():
        for prompt in prompts:
            key = f"{name}/{prompt.hash[:16]}"
            expected |= {f"{key}.{seen.get(key, 0)}#{turn}" for turn in prompt.turns}
            seen[key] = seen.get(key, 0) + 1
    assert set(done.rows) == expected
    assert_accounted(done.files)


def test_requests_are_rows_plus_attempts_on_the_providers_books(done: Done) -> None:
    attempts = done.files.all("attempts")
    assert [attempt["family"] for attempt in attempts] == ["overloaded"]
    assert done.provider.ledger.requests == len(done.rows) + len(attempts)
    assert {entry.id for entry in done.charges} == {r["generation_id"] for r in done.rows.values()}


def test_rows_have_the_fields_of_the_contract(done: Done) -> None:
    for row in done.rows.values():
        assert_fields(row, ROW)
        assert TIME.fullmatch(row["started_at"])
        assert row["latency_s"] > 0
        assert row["id"].startswith(f"{row['dataset']}/{row['prompt_hash'][:16]}.")
        assert row["finish_reason"] == "stop"
        assert row["model"] == f"{MODEL}-0127"
        assert row["flags"] == []
        assert row["exactness"] == "unverified"
        assert row["prompt_ids"] is row["completion_ids"] is None
        assert list(row["usage"]) == [
            "prompt_tokens",
            "completion_tokens",
            "reasoning_tokens",
            "cost",
        ]


def test_rows_say_what_the_provider_counted(done: Done) -> None:
    charges = {entry.id: entry for entry in done.charges}
    for row in done.rows.values():
        charge, usage = charges[row["generation_id"]], row["usage"]
        assert usage["prompt_tokens"] == charge.prompt_tokens
        assert usage["completion_tokens"] == charge.completion_tokens
        assert usage["reasoning_tokens"] == charge.reasoning_tokens
        assert usage["cost"] == pytest.approx(charge.cost)
        assert row["provider"] == charge.provider


def test_rows_name_their_place_in_the_source(done: Done) -> None:
    for name, prompts in EXPECTED.items():
        rows = [row for row in done.rows.values() if row["dataset"] == name]
        places = {(index, turn) for index, p in enumerate(prompts) for turn in p.turns}
        assert {(row["index"], row["turn"]) for row in rows} == places
        for row in rows:
            assert row["prompt_hash"] == prompts[row["index"]].hash
            assert row["tools"] == prompts[row["index"]].tools


def test_all_answers_each_turn_on_top_of_our_own_answers(done: Done) -> None:
    for name in ("B3_chat", "B6_turns"):
        for row in done.rows.values():
            if row["dataset"] != name or row["turn"] == 0:
                continue
            earlier = done.rows[f"{row['id'].partition('#')[0]}#{row['turn'] - 1}"]
            mine = {"role": "assistant", "content": earlier["content"]}
            users = [m for m in EXPECTED[name][row["index"]].messages if m[0] == U]
            asked = {"role": "user", "content": users[row["turn"]][1]}
            assert row["messages"] == [*earlier["messages"], mine, asked]


def test_last_keeps_the_sources_history_and_first_asks_only_the_first_turn(done: Done) -> None:
    (last,) = (row for row in done.rows.values() if row["dataset"] == "B7_last")
    assert last["messages"] == as_messages(TALK)
    first = next(row for row in done.rows.values() if row["tools"])
    assert [m["role"] for m in first["messages"]] == ["system", "user"]
    assert first["messages"][0]["name"] == "tool_declare"
    assert "weather" in first["messages"][0]["content"]
    assert first["messages"][1] == {"role": "user", "content": "First"}


def test_the_failed_attempt_is_on_record(done: Done) -> None:
    (attempt,) = done.files.all("attempts")
    assert_fields(attempt, ATTEMPT)
    assert (attempt["attempt"], attempt["status"], attempt["sent"]) == (1, 529, True)
    assert attempt["cost"] == 0
    row = done.rows[attempt["id"]]
    assert row["attempts"] == 2
    assert row["started_at"] > attempt["started_at"]


def test_sent_has_each_request_before_its_row(done: Done) -> None:
    for record in done.files.all("sent"):
        assert_fields(record, SENT)
        assert TIME.fullmatch(record["at"])


def test_status_has_the_fields_of_the_contract(done: Done) -> None:
    status = done.files.status()
    assert_fields(status, STATUS)
    assert (status["schema"], status["state"], status["run"]) == (1, "done", "e2e")
    assert (status["model"], status["limit_ceiling"], status["in_flight"]) == (MODEL, 8, 0)
    assert status["max_cost_usd"] is None
    assert status["cost_usd"] == pytest.approx(done.provider.ledger.cost_usd, abs=1e-5)
    assert [view["name"] for view in status["datasets"]] == list(EXPECTED)
    for view in status["datasets"]:
        assert_fields(view, DATASET)
        rows = [row for row in done.rows.values() if row["dataset"] == view["name"]]
        assert (view["state"], view["ok"], view["left"]) == ("done", view["prompts"], 0)
        assert view["prompts"] == len(EXPECTED[view["name"]])
        assert view["rows"] == len(rows)
        assert view["exactness"] == {"unverified": len(rows)}
        tokens = sum(row["usage"]["completion_tokens"] for row in rows)
        assert view["completion_tokens"] == tokens
        assert view["cost_usd"] == pytest.approx(sum(r["usage"]["cost"] for r in rows), abs=1e-5)
    views = {view["name"]: view for view in status["datasets"]}
    assert views["B4_json"]["token_budget"] == 1_000_000
    assert views["B3_chat"]["token_budget"] is None


def test_status_names_the_error_family_of_its_dataset(done: Done) -> None:
    views = {view["name"]: view for view in done.files.status()["datasets"]}
    assert [view["attempt_errors"] for view in views.values()] == [0, 0, 0, 0, 0, 1]
    (error,) = views["B8_first"]["errors"]
    assert_fields(error, ERROR)
    assert (error["family"], error["count"]) == ("overloaded", 1)
    assert TIME.fullmatch(error["first_at"])


def test_the_run_describes_itself(done: Done) -> None:
    run = json.loads((done.files.folder / "run.json").read_bytes())
    assert run["identity"]["model"] == MODEL
    assert run["identity"]["datasets"]["B5_csv"]["sampling"] == {"max_tokens": 250}
    assert run["manifest"]["datasets"][3]["source"] == "b6.jsonl.gz"
    assert "httpx" in run["versions"]
    lock = json.loads((done.files.folder / "run.lock").read_bytes())
    assert set(lock) == {"host", "pid", "started_at"}
    assert lock["pid"] == done.files.status()["pid"]


def test_the_journal_and_the_history_tell_how_it_went(done: Done) -> None:
    states = done.files.events("state")
    assert states[-1]["state"] == "done"
    assert states[-1]["dataset"] is None
    for entry in done.files.lines("events.jsonl"):
        assert TIME.fullmatch(entry["at"])
        assert {"kind", "dataset", "text"} <= set(entry)
    history = done.files.lines("history.jsonl")
    assert set(history[-1]) == {"at", "screen", *STATUS}
    assert history[-1]["state"] == "done"


def test_only_the_files_of_the_contract_are_there(done: Done) -> None:
    def names(folder: Path) -> set[str]:
        return {path.name for path in folder.iterdir()}

    files = {"run.json", "run.lock", "status.json", "events.jsonl", "history.jsonl"}
    assert names(done.files.folder) - {"control.sock"} == files | set(EXPECTED)
    for name in EXPECTED:
        known = {"rows.jsonl", "sent.jsonl", "attempts.jsonl", "failures.jsonl"}
        assert names(done.files.folder / name) <= known
