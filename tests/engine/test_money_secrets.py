"""A key that a server gives back in disguise is still in no file and on no screen."""

from __future__ import annotations

import json
import re
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from e2e_desk import Desk
from e2e_hostile import Answer, Asked, answering, completion, models
from e2e_provider import playing
from money_engine import working

from engine.simulator.outgoing import Outgoing

KEY = "sk-Planted/4711+of==nobody"
"""Base64 has these characters, and encoders of JSON, HTML and URLs escape them."""
PLAIN = {"tokenizer": "none", "api": "openai"}


def escaped(text: str, form: str) -> str:
    """Text as other languages' JSON encoders write it."""
    return re.sub(r"[^A-Za-z0-9-]", lambda found: form.format(ord(found[0])), text)


QUOTED = {
    "plain": KEY,
    "slashes": KEY.replace("/", "\\/"),
    "lower": escaped(KEY, "\\u{:04x}"),
    "upper": escaped(KEY, "\\u{:04X}"),
}
PAGES = {
    "html": f"<html><head><title>No {KEY}</title></head></html>",
    "text": f"wrong key {KEY}",
    "cut": f'{{"error": {{"message": "wrong key {KEY}',
}


def places(desk: Desk, *said: str) -> Iterator[tuple[str, str]]:
    """Everything that the run left behind, and what it said."""
    for path in desk.folder.rglob("*"):
        if path.is_file():
            yield str(path), path.read_text("utf-8", "replace")
    for text in said:
        yield "said", text


def assert_nowhere(desk: Desk, *said: str) -> None:
    """Not as it is, nor as JSON, HTML or a URL may hold it."""
    forms = {KEY, json.dumps(KEY)[1:-1], *QUOTED.values(), quote(KEY, safe=""), quote(KEY)}
    for name, content in places(desk, *said):
        assert not [form for form in forms if form in content], name


def told_with_key(desk: Desk, forms: Iterable[str]) -> str:
    """Ask one prompt for each form that the endpoint quotes the key in; what the screen shows."""
    rows = [{"prompt": form} for form in forms]
    source = desk.source("a.jsonl", rows)
    desk.manifest(
        {"name": "A", "source": source, "prompts": len(rows)},
        endpoint=PLAIN,
        limits={"max_attempts": 1, "concurrency": 1},
    )
    with working(desk, key=KEY) as run:
        assert run.join(60)
    return repr(run.snapshot()) + repr(run.error)


def test_a_key_in_a_reply(tmp_path: Path) -> None:
    """Whatever the encoder: the text of a row that quotes the key does not have it."""

    def answer(asked: Asked) -> Answer:
        if asked.body is None:
            return models()
        status, body = completion("Your key is @@.")
        assert KEY in asked.headers["authorization"]
        return status, json.dumps(body).replace("@@", QUOTED[asked.text]).encode()

    with answering(answer) as endpoint, Desk(tmp_path, endpoint.base_url) as desk:
        said = told_with_key(desk, QUOTED)
        assert [row["content"] for row in desk.files.all("rows")] == ["Your key is ***."] * 4
        assert_nowhere(desk, said)


@pytest.mark.parametrize("status", [200, 422, 500])
def test_a_key_in_a_refusal(tmp_path: Path, status: int) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.body is None:
            return models()
        error = json.dumps({"error": {"message": "wrong key @@", "code": 400}})
        quoted = QUOTED.get(asked.text, "")
        return status, PAGES.get(asked.text, error.replace("@@", quoted)).encode()

    with answering(answer) as endpoint, Desk(tmp_path, endpoint.base_url) as desk:
        said = told_with_key(desk, [*QUOTED, *PAGES])
        attempts = desk.files.all("attempts")
        assert len(attempts) == len(desk.files.all("failures")) == len(QUOTED) + len(PAGES)
        assert sum("***" in attempt["message"] for attempt in attempts) >= len(QUOTED)
        assert_nowhere(desk, said)


def test_a_key_in_a_header(tmp_path: Path) -> None:
    """The generation's id is taken from a header where the body has none."""
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        chat = provider.provider.chat

        async def telling(raw: bytes, headers: Any, is_gone: Any) -> Outgoing:
            reply = await chat(raw, headers, is_gone)
            reply.headers["X-Generation-Id"] = headers["Authorization"]
            return reply

        provider.provider.chat = telling  # type: ignore[method-assign] # a provider that tells
        source = desk.source("a.jsonl", [{"prompt": "[[sim:bad_gateway*1]] Hello"}])
        desk.manifest({"name": "A", "source": source, "prompts": 1}, endpoint=PLAIN)
        with working(desk, key=KEY) as run:
            assert run.join(60)
        assert desk.files.all("attempts")[0]["generation_id"] == "Bearer ***"
        assert_nowhere(desk, repr(run.snapshot()))


def test_a_crash_that_holds_the_request_does_not_tell_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither the traceback, nor the locals that a crash reporter would print."""
    import engine.attempt

    def broken(*_: Any) -> Any:
        raise RuntimeError("planted fault")

    monkeypatch.setattr(engine.attempt, "parse_reply", broken)
    with (
        answering(
            lambda asked: models() if asked.body is None else completion("Hello")
        ) as endpoint,
        Desk(tmp_path, endpoint.base_url) as desk,
    ):
        desk.asking(1, endpoint=PLAIN)
        with working(desk, key=KEY) as run:
            assert run.join(60)
        assert isinstance(run.error, RuntimeError)
        told = traceback.TracebackException.from_exception(run.error, capture_locals=True)
        shown = [line for frame in told.stack for line in (frame.locals or {}).values()]
        captured = capsys.readouterr()
        assert_nowhere(desk, *told.format(), *shown, captured.out, captured.err)
