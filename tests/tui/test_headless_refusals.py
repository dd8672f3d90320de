"""What a user can mend gets exit 2 and a sentence that says how; nothing is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_desk import MODEL, Desk
from e2e_provider import arrived, playing

from engine.simulator import Simulator

SPENT = "sk-or-v1-0123456789abcdef"


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing() as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(3)
        yield desk


def missing(desk: Desk) -> None:
    (desk.folder / "manifest.toml").unlink()


def broken(desk: Desk) -> None:
    (desk.folder / "manifest.toml").write_text('[run]\nname = "x"\noutput = \n')


def misspelt(desk: Desk) -> None:
    path = desk.asking(3)
    path.write_text(path.read_text().replace("concurrency", "concurency"))


def short(desk: Desk) -> None:
    source = desk.source("short.jsonl", [{"prompt": "only one"}])
    desk.manifest({"name": "S", "source": source, "prompts": 15000})


def without_source(desk: Desk) -> None:
    desk.manifest({"name": "S", "source": "nowhere.jsonl", "prompts": 1})


def unknown_format(desk: Desk) -> None:
    (desk.folder / "a.xlsx").write_bytes(b"PK")
    desk.manifest({"name": "S", "source": "a.xlsx", "prompts": 1})


def openrouter(desk: Desk) -> None:
    desk.asking(3, endpoint={"base_url": "https://openrouter.ai/api/v1"})


def key_in_headers(desk: Desk) -> None:
    desk.asking(3, endpoint={"headers": {"Authorization": f"Bearer {SPENT}"}})


def twins(desk: Desk) -> None:
    source = desk.source("t.jsonl", [{"prompt": "x"}])
    desk.manifest(*({"name": "Twin", "source": source, "prompts": 1} for _ in range(2)))


def a_file_in_the_way(desk: Desk) -> None:
    (desk.folder / "out").write_text("no folder")


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (missing, ["manifest.toml: no such manifest", "eaglegen-tui init"]),
        (broken, ["manifest.toml: not valid TOML", "line 3"]),
        (misspelt, ["manifest.toml:10: unknown key limits.concurency", "mean concurrency?"]),
        (short, ["S: the manifest asks for 15000 prompts", "short.jsonl holds 1", "--allow-short"]),
        (without_source, ["nowhere.jsonl: no such file"]),
        (unknown_format, ["a.xlsx: unknown format .xlsx", "jsonl, json, csv"]),
        (openrouter, ["OpenRouter needs an API key", "OPENROUTER_API_KEY"]),
        (
            key_in_headers,
            ["headers.Authorization: would put a key into run.json", "EAGLEGEN_API_KEY"],
        ),
        (twins, ["two datasets are named Twin"]),
        (a_file_in_the_way, ["/out is a file; a run needs a folder"]),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_it_is_refused_with_a_sentence(
    desk: Desk, provider: Simulator, spoil: Callable[[Desk], None], words: list[str]
) -> None:
    spoil(desk)
    result = desk.go("--headless")
    assert result.code == 2
    assert result.out == ""
    for word in words:
        assert word in result.err
    assert result.err.startswith("eaglegen-tui: ")
    assert "Traceback" not in result.err
    assert SPENT not in result.err
    assert arrived(provider) == 0
    assert not (desk.folder / "out").is_dir()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--only", "Z"], ["--only Z: no such dataset", "A"]),
        (["--shard", "3/2"], ["--shard 3/2", "I/N"]),
        (["--limit", "0"], ["--limit"]),
        (["--nonsense"], ["No such option"]),
    ],
)
def test_options_are_checked(desk: Desk, options: list[str], words: list[str]) -> None:
    result = desk.go(*options)
    assert result.code == 2
    for word in words:
        assert word in result.err


def test_a_run_with_another_identity_is_refused_by_its_differences(
    desk: Desk, provider: Simulator
) -> None:
    assert desk.go().code == 0
    rows = desk.files.answers()
    desk.asking(
        3, sampling={"max_tokens": 301}, endpoint={"model": f"{MODEL}-0127", "thinking": False}
    )
    result = desk.go()
    assert result.code == 2
    assert f'model: was "{MODEL}", now "{MODEL}-0127"' in result.err
    assert "thinking: was true, now false" in result.err
    assert 'A.sampling: was {"max_tokens": 300}, now {"max_tokens": 301}' in result.err
    assert "--output" in result.err
    assert desk.files.answers() == rows
    assert provider.ledger.requests == 3
