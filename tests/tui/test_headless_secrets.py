"""A planted key is found nowhere: no file, no output, no traceback, no process list."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk
from e2e_hostile import Answer, Asked, answering, completion, models
from e2e_provider import playing, slow

KEY = "Planted.4711/key+of=nobody"
"""Like no key that a pattern knows, so that only its owner can tell it."""
PLAIN = {"api": "openai"}


def echo(asked: Asked) -> Answer:
    """A server that quotes the key it was given, in every way it can."""
    given = asked.headers.get("authorization", "")
    if asked.body is None:
        return models()
    if "refuse" in asked.text:
        message = f"Incorrect API key provided: {given}. You can find yours at example.com"
        return 401, {"error": {"message": message, "code": 401, "metadata": {"raw": given}}}
    return completion(f"Your header was {given}.", provider=given)


def places(desk: Desk) -> Iterator[tuple[str, bytes]]:
    """Everything that the run left behind."""
    for path in desk.folder.rglob("*"):
        if path.is_file() and path.name != ".env":
            yield str(path), path.read_bytes()


def assert_nowhere(desk: Desk) -> None:
    found = [name for name, content in places(desk) if KEY.encode() in content]
    assert found == []
    assert not [path for path in desk.folder.rglob("*") if KEY[:12] in path.name]


@pytest.fixture(params=["environment", ".env"])
def planted(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def plant(desk: Desk, where: str) -> None:
    if where == ".env":
        (desk.folder / ".env").write_text(f"EAGLEGEN_API_KEY={KEY}\n")
    else:
        desk.environment["EAGLEGEN_API_KEY"] = KEY


def test_a_refusal_that_quotes_the_key_does_not_spread_it(tmp_path: Path, planted: str) -> None:
    with answering(echo) as endpoint, Desk(tmp_path, endpoint.base_url) as desk:
        plant(desk, planted)
        source = desk.source("p.jsonl", [{"prompt": "Hello"}, {"prompt": "refuse"}])
        desk.manifest(
            {"name": "A", "source": source, "prompts": 2},
            endpoint=PLAIN,
            limits={"concurrency": 1},
        )
        result = desk.begin("--json", "--interval", "0.1").wait()
        assert result.code == 4, result.err
        assert "Incorrect API key provided" in result.summary["reason"]
        assert {asked.headers["authorization"] for asked in endpoint.asked} == {f"Bearer {KEY}"}
        assert len(desk.files.all("rows")) == 1
        desk.run("status", desk.files.folder)
        assert_nowhere(desk)


def test_a_crash_does_not_tell_the_key(tmp_path: Path) -> None:
    with playing() as provider, Desk(tmp_path, provider.base_url) as desk:
        plant(desk, "environment")
        desk.asking(3)
        fault = "import engine.attempt as a\n"
        fault += "def broken(*_): raise RuntimeError('planted fault')\na.parse_reply = broken"
        result = desk.begin("--json", before=fault).wait()
        assert result.code == 1
        assert "planted fault" in result.err
        assert_nowhere(desk)


def test_the_process_list_does_not_show_the_key(tmp_path: Path) -> None:
    with playing(latency=slow(30)) as provider, Desk(tmp_path, provider.base_url) as desk:
        plant(desk, ".env")
        desk.asking(2)
        process = desk.begin()
        process.until(lambda: provider.provider.in_flight == 2, "requests are in flight")
        for name in ("cmdline", "environ", "comm"):
            assert KEY.encode() not in Path(f"/proc/{process.pid}/{name}").read_bytes()
        process.kill()
        assert_nowhere(desk)


def test_openrouters_key_goes_to_openrouter_only(tmp_path: Path) -> None:
    with answering(echo) as endpoint, Desk(tmp_path, endpoint.base_url) as desk:
        desk.environment["OPENROUTER_API_KEY"] = KEY
        desk.asking(2, endpoint=PLAIN)
        assert desk.go().code == 0
        assert [a for a in endpoint.asked if "authorization" in a.headers] == []
        assert_nowhere(desk)
