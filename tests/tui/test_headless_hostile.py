"""Prompts and servers may say anything: what a headless run prints stays lines and JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e_desk import MODEL, Desk
from e2e_files import assert_accounted
from e2e_hostile import (
    BIDI,
    EMOJI,
    ESCAPES,
    LONG,
    MARKUP,
    NASTY,
    Answer,
    Asked,
    answering,
    completion,
    models,
)

PLAIN = {"api": "openai"}
HARMFUL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
SURROGATE = b'{"prompt": "half a pair \\ud83d and \\udc80"}'


def assert_harmless(text: str) -> None:
    assert not HARMFUL.search(text), HARMFUL.findall(text)
    assert max(map(len, text.splitlines()), default=0) < 4000


def to_chats(answer: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
    return lambda asked: models() if asked.body is None else answer(asked)


def test_hostile_prompts_come_through_whole(tmp_path: Path) -> None:
    texts = [MARKUP, ESCAPES + "x", BIDI, EMOJI, LONG, NASTY]
    with (
        answering(to_chats(lambda asked: completion(f"You said: {asked.text}"))) as endpoint,
        Desk(tmp_path, endpoint.base_url) as desk,
    ):
        rows = [*({"prompt": text} for text in texts), SURROGATE]
        source = desk.source("p.jsonl", rows)
        desk.manifest({"name": "A", "source": source, "prompts": 7}, endpoint=PLAIN)
        result = desk.go("--json", "--interval", "0.1")
        assert result.code == 0, result.err
        assert_harmless(result.err)
        assert_harmless(desk.run("status", desk.files.folder).out)
        rows_of = {row["index"]: row for row in desk.files.all("rows")}
        for index, text in enumerate(texts):
            assert rows_of[index]["messages"] == [{"role": "user", "content": text}]
            assert rows_of[index]["content"] == f"You said: {text}"
        sent = {asked.text for asked in endpoint.asked if asked.body}
        assert "half a pair \ud83d and \udc80" in sent
        assert result.summary["datasets"][0]["ok"] == 7
        assert_accounted(desk.files)
        assert desk.go().code == 0
        assert len(desk.files.all("rows")) == 7


def refuse(asked: Asked) -> Answer:
    """Every text that a server writes, in its most hostile form."""
    error = {"message": NASTY, "code": 400, "metadata": {"provider_name": NASTY, "raw": NASTY}}
    answers: dict[str, Answer] = {
        "named": completion(NASTY, provider=NASTY, id=NASTY),
        "refused": (400, {"error": error}),
        "page": (503, f"<html><title>{NASTY}</title></html>".encode()),
        "other model": completion("x", model=NASTY),
        "surrogates": completion("half \ud83d pair", provider="P\udc80"),
        "no text": completion("x", choices=[{"finish_reason": NASTY, "message": {}}]),
    }
    return answers[asked.text]


def test_hostile_replies_become_rows_or_failures_and_nothing_breaks(tmp_path: Path) -> None:
    kinds = ["named", "refused", "other model", "surrogates", "no text"]
    with (
        answering(to_chats(refuse)) as endpoint,
        Desk(tmp_path, endpoint.base_url) as desk,
    ):
        source = desk.source("p.jsonl", [{"prompt": kind} for kind in kinds])
        desk.manifest(
            {"name": "A", "source": source, "prompts": 5},
            endpoint=PLAIN,
            limits={"max_attempts": 1},
        )
        result = desk.go("--json", "--interval", "0.1")
        assert result.code == 3, result.err
        assert_harmless(result.err)
        assert len(result.err) < 20_000
        assert result.summary["event"] == "summary"
        assert_harmless(desk.run("status", desk.files.folder).out)
        rows = {row["index"]: row for row in desk.files.all("rows")}
        assert set(rows) == {0, 3}
        assert rows[0]["content"] == NASTY
        assert_harmless(rows[0]["provider"])
        for attempt in desk.files.all("attempts"):
            assert_harmless(attempt["message"])
        assert_accounted(desk.files)


@pytest.mark.parametrize("form", ["json", "page"])
def test_a_hostile_refusal_of_the_run_is_told_harmlessly(tmp_path: Path, form: str) -> None:
    body = {"error": {"message": NASTY, "code": 401}} if form == "json" else NASTY.encode()
    with (
        answering(to_chats(lambda _: (401, body))) as endpoint,
        Desk(tmp_path, endpoint.base_url) as desk,
    ):
        desk.asking(3, endpoint=PLAIN)
        result = desk.go("--json")
        assert result.code == 4
        assert_harmless(result.err)
        assert "not bold" in result.summary["reason"]
        told = desk.run("status", desk.files.folder).out
        assert_harmless(told)
        assert "not bold" in told


def test_a_hostile_catalogue_is_told_harmlessly(tmp_path: Path) -> None:
    """The one refusal that quotes a server before the run begins."""
    host = {"tag": NASTY, "provider_name": NASTY, "pricing": {"prompt": NASTY}}

    def answer(asked: Asked) -> Answer:
        if asked.path.endswith("/endpoints"):
            return 200, {"data": {"endpoints": [host]}}
        return 200, {"data": [{"id": MODEL, "pricing": {}}]}

    with answering(answer) as endpoint, Desk(tmp_path, endpoint.base_url) as desk:
        desk.asking(3, endpoint={"provider": {"only": ["nobody"]}})
        result = desk.go("--json")
    assert result.code == 4
    assert "leaves none of the 1 hosts" in result.err
    assert_harmless(result.err)


def test_a_hostile_manifest_is_told_harmlessly(tmp_path: Path) -> None:
    with (
        answering(to_chats(lambda _: completion("Fine"))) as endpoint,
        Desk(tmp_path, endpoint.base_url) as desk,
    ):
        desk.asking(1, endpoint=PLAIN, run={"name": NASTY})
        result = desk.go()
        assert result.code == 0
        assert_harmless(result.err)
        path = desk.folder / "manifest.toml"
        path.write_text(path.read_text() + f"{json.dumps(MARKUP + BIDI)} = 1\n", "utf-8")
        result = desk.go()
        assert result.code == 2
        assert "unknown key" in result.err
        assert_harmless(result.err)
