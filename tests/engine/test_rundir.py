"""The run directory: one holder, one identity, and files that are replaced whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from engine_parts import DATASET, HEAD, dataset_text, manifest_of

from engine.disk.rundir import (
    LOCK,
    RUN,
    STATUS,
    claim,
    differs,
    hold,
    is_held,
    read_json,
    write_atomically,
)
from engine.errors import ExitCode, IdentityError, RunHeldError, UsageError
from engine.manifest import Manifest

ROOT = Path(__file__).parents[2]
HOLDER = """
import sys
from pathlib import Path
from engine.disk.rundir import hold
with hold(Path(sys.argv[1]), "2026-11-30T14:03:22.125Z"):
    print("held", flush=True)
    sys.stdin.read()
"""


def claimed(folder: Path, text: str) -> bool:
    folder.mkdir(exist_ok=True)
    return claim(folder, manifest_of(text)) is not None


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the run directory `tmp_path / "run"`."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "run")],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_process_is_refused_and_told_who_holds_the_run(
    tmp_path: Path, other: subprocess.Popen[str]
) -> None:
    assert is_held(tmp_path / "run")
    with pytest.raises(RunHeldError) as caught, hold(tmp_path / "run", "now"):
        pass
    assert caught.value.exit_code is ExitCode.HELD
    assert f"process {other.pid} on {os.uname().nodename}" in caught.value.message
    assert "2026-11-30T14:03:22.125Z" in caught.value.message
    assert read_json(tmp_path / "run" / LOCK)["pid"] == other.pid  # the refused one wrote nothing


def test_a_killed_holder_holds_nothing(tmp_path: Path, other: subprocess.Popen[str]) -> None:
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert not is_held(tmp_path / "run")
    with hold(tmp_path / "run", "now"):
        assert read_json(tmp_path / "run" / LOCK)["pid"] == os.getpid()


def test_the_lock_ends_with_its_context(tmp_path: Path) -> None:
    for _ in range(2):
        with hold(tmp_path / "a" / "run", "now"):
            assert is_held(tmp_path / "a" / "run")
        assert not is_held(tmp_path / "a" / "run")
    assert not is_held(tmp_path / "none")


def test_a_folder_that_cannot_be_used_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "run"):
        with (
            pytest.raises(UsageError, match="cannot be used as the run directory"),
            hold(folder, ""),
        ):
            pass


def test_a_holder_that_left_no_name_is_still_refused(
    tmp_path: Path, other: subprocess.Popen[str]
) -> None:
    assert other.poll() is None
    (tmp_path / "run" / LOCK).write_text("")
    with pytest.raises(RunHeldError, match="another process"), hold(tmp_path / "run", "now"):
        pass


# --- identity ---------------------------------------------------------------------------------


def test_a_new_run_is_claimed_and_described(tmp_path: Path) -> None:
    assert claimed(tmp_path, HEAD + DATASET) is False
    record = read_json(tmp_path / RUN)
    assert record["schema"] == 1
    assert record["identity"]["model"] == "moonshotai/kimi-k2.5"
    assert record["manifest"]["datasets"][0]["prompts"] == 3
    assert set(record["versions"]) >= {"eaglegen-tui", "httpx", "aiohttp", "tiktoken"}
    assert claimed(tmp_path, HEAD + DATASET) is True


def test_what_does_not_change_the_answers_may_change(tmp_path: Path) -> None:
    text = HEAD + DATASET
    claimed(tmp_path, text)
    other = (
        text.replace("127.0.0.1:8787", "localhost:9999")
        .replace("prompts = 3", "prompts = 9\ntoken_budget = 5\nmax_cost_usd = 1.5")
        .replace("b6.jsonl", "elsewhere/b6.csv")
        .replace('name = "story"', 'name = "renamed"')
        .replace("[[datasets]]", "[limits]\nconcurrency = 7\n[[datasets]]")
    )
    assert claimed(tmp_path, other) is True
    assert read_json(tmp_path / RUN)["manifest"]["limits"]["concurrency"] == 7


SAMPLING = "[sampling]\ntemperature = 1.0\n"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kimi-k2.5", "kimi-k2.6", 'model: was "moonshotai/kimi-k2.5", now "moonshotai/kimi-k2.6"'),
        (
            SAMPLING,
            'tokenizer = "kimi-k2.5"\n' + SAMPLING,
            'tokenizer: was "none", now "kimi-k2.5"',
        ),
        (SAMPLING, "thinking = false\n" + SAMPLING, "thinking: was true, now false"),
        (SAMPLING, 'tools_mode = "api"\n' + SAMPLING, 'tools_mode: was "raw", now "api"'),
        (SAMPLING, "extra_body = { k = 1 }\n" + SAMPLING, 'extra_body: was {}, now {"k": 1}'),
        ("= 1.0", "= 0.5", 'B6_ultrachat.sampling: was {"temperature": 1.0}, now'),
        ("= 3\n", '= 3\nturns = "last"\n', 'B6_ultrachat.turns: was "all", now "last"'),
    ],
)
def test_another_identity_is_refused_saying_what_differs(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    text = HEAD + SAMPLING + DATASET
    claimed(tmp_path, text)
    before = (tmp_path / RUN).read_bytes()
    with pytest.raises(IdentityError) as caught:
        claimed(tmp_path, text.replace(old, new))
    assert words in caught.value.message
    assert len(caught.value.message.splitlines()) == 2  # the folder, and the one difference
    assert str(tmp_path) in caught.value.message
    assert "--output" in caught.value.hint
    assert caught.value.exit_code is ExitCode.USAGE
    assert (tmp_path / RUN).read_bytes() == before


def test_every_difference_is_told_at_once(tmp_path: Path) -> None:
    claimed(tmp_path, HEAD + SAMPLING + DATASET)
    text = (HEAD + "thinking = false\n" + SAMPLING + DATASET).replace("1.0", "2.0")
    with pytest.raises(IdentityError) as caught:
        claimed(tmp_path, text)
    assert len(caught.value.message.splitlines()) == 3


def test_datasets_may_be_added_left_out_and_reordered_but_are_remembered(tmp_path: Path) -> None:
    first, second, third = (dataset_text(name, 3) for name in ("A", "B", "C"))
    claimed(tmp_path, HEAD + first + second)
    assert claimed(tmp_path, HEAD + third + second) is True
    assert set(read_json(tmp_path / RUN)["identity"]["datasets"]) == {"A", "B", "C"}
    with pytest.raises(IdentityError, match=r"A\.turns"):
        claimed(tmp_path, HEAD + dataset_text("A", 3, turns="first"))
    assert claimed(tmp_path, HEAD + first) is True


def test_an_integer_and_the_same_float_are_the_same_sampling(tmp_path: Path) -> None:
    claimed(tmp_path, HEAD + "[sampling]\ntemperature = 1\n" + DATASET)
    assert claimed(tmp_path, HEAD + SAMPLING + DATASET) is True


ODD_RUNS = [
    *(b"", b"{", b"[]", b"{}", b"5", b'{"schema":1}', b"\0\0\0", b"\xff\xfe{}"),
    *(b'{"identity":5}', b'{"identity":{},"manifest":{}}', b'{"identity":{"datasets":[]}}'),
    b'{"identity":{"datasets":{"A":5}},"manifest":{"datasets":[]}}',
    b'{"identity":{"datasets":{}},"manifest":5}',
    b'{"identity":{"datasets":{}},"manifest":{"datasets":[5]}}',
    b'{"identity":{"datasets":{}},"manifest":{"datasets":[],"run":5}}',
]


@pytest.mark.parametrize("content", ODD_RUNS)
def test_an_unreadable_run_json_is_never_overwritten(tmp_path: Path, content: bytes) -> None:
    (tmp_path / RUN).write_bytes(content)
    with pytest.raises(IdentityError, match="not readable"):
        claimed(tmp_path, HEAD + DATASET)
    assert (tmp_path / RUN).read_bytes() == content


def test_no_difference_is_no_sentence() -> None:
    identity = manifest_of().identity()
    assert list(differs(identity, orjson.loads(orjson.dumps(identity)))) == []


def test_run_json_holds_the_manifest_whole(tmp_path: Path) -> None:
    claimed(tmp_path, HEAD + SAMPLING + DATASET)
    manifest = manifest_of(HEAD + SAMPLING + DATASET)
    record: dict[str, Any] = read_json(tmp_path / RUN)["manifest"]
    assert Manifest.model_validate(record) == manifest


# --- files that are replaced ------------------------------------------------------------------


def test_a_reader_sees_the_old_or_the_new_file_and_never_a_part(tmp_path: Path) -> None:
    path = tmp_path / STATUS
    texts = [orjson.dumps({"n": n, "pad": "x" * n * 2000}) for n in range(60)]
    write_atomically(path, texts[0])
    seen: list[Any] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.append(read_json(path))

    reader = threading.Thread(target=read)
    reader.start()
    for text in texts:
        write_atomically(path, text)
    done.set()
    reader.join()
    assert seen
    assert all(value is not None and len(value["pad"]) == value["n"] * 2000 for value in seen)
    assert [value["n"] for value in seen] == sorted(value["n"] for value in seen)
    assert [entry.name for entry in tmp_path.iterdir()] == [STATUS]


def test_json_that_is_not_there_or_broken_is_none(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("{")
    assert read_json(tmp_path / "broken") is None
    assert read_json(tmp_path / "none") is None
    assert read_json(tmp_path / "broken" / "below") is None


def test_a_folder_that_another_run_has_taken_is_no_longer_owned(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with hold(folder, "then") as owned:
        assert owned()
        folder.rename(tmp_path / "moved")
        assert owned()  # nobody has it: it may come back
        with hold(folder, "now"):
            assert not owned()


def test_rows_without_their_run_json_are_nobody_s(tmp_path: Path) -> None:
    rows = tmp_path / "D" / "rows.jsonl"
    rows.parent.mkdir()
    rows.write_bytes(b"")
    with pytest.raises(IdentityError, match="whose they are is unknown"):
        claim(tmp_path, manifest_of())
