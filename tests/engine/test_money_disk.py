"""A real disk that is full, covered or gone: the run waits with what is paid, then goes on."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e_desk import PATIENCE_S, Desk, Process, until
from e2e_files import assert_accounted
from e2e_provider import arrived, is_idle, playing
from money_disk import Disk, disk_at, waits
from money_engine import ending, working

import engine.disk.sink
from engine.simulator import Simulator

PROMPTS = 150


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing() as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, run={"output": "disk/out"}, endpoint={"tokenizer": "none"})
        yield desk


def assert_whole(disk: Disk, process: Process, provider: Simulator) -> None:
    """The run ended well, and every reply that was paid for is a row, once."""
    result = process.wait()
    assert result.code == 0, result.err
    assert len(disk.files.all("rows")) == provider.ledger.charged == PROMPTS
    assert provider.ledger.requests == PROMPTS
    assert_accounted(disk.files)
    told = [entry["text"] for entry in disk.files.events("state")]
    assert any("→ waiting: disk: " in text for text in told)


def assert_stands_still(provider: Simulator) -> None:
    """What was in flight has arrived, and nothing new has started."""
    until(lambda: is_idle(provider), "what was in flight has come")
    assert 0 < arrived(provider) < PROMPTS


def test_a_full_disk(tmp_path: Path, desk: Desk, provider: Simulator) -> None:
    with disk_at(tmp_path / "disk", "96k") as disk:
        process = disk.begin(desk, "--headless")
        waits(process, "No space left on device; what is paid is kept in memory")
        assert_stands_still(provider)
        disk.resize("64m")
        assert_whole(disk, process, provider)


@pytest.mark.slow
def test_a_disk_that_turns_read_only(tmp_path: Path, desk: Desk, provider: Simulator) -> None:
    with disk_at(tmp_path / "disk", "64m") as disk:
        process = disk.begin(desk, "--headless", "--concurrency", 2)
        until(lambda: arrived(provider) > 10, "it is at work")
        disk.cover(disk.path / "out", "ro")
        waits(process, "Read-only file system")
        assert_stands_still(provider)
        disk.uncover(disk.path / "out")
        assert_whole(disk, process, provider)


@pytest.mark.slow
def test_a_run_directory_that_vanishes(tmp_path: Path, desk: Desk, provider: Simulator) -> None:
    """As when a network share is unmounted, and mounted again."""
    with disk_at(tmp_path / "disk", "64m") as disk:
        process = disk.begin(desk, "--headless", "--concurrency", 2)
        until(lambda: arrived(provider) > 10, "it is at work")
        disk.cover(disk.path, "size=1m")
        waits(process, "the run directory has vanished")
        assert_stands_still(provider)
        disk.uncover(disk.path)
        assert_whole(disk, process, provider)


class Hung:
    """A file whose writes hang in the kernel's place until `going` is set."""

    def __init__(self, file: Any, going: threading.Event) -> None:
        self._file = file
        self._going = going

    def write(self, data: Any) -> int:
        assert self._going.wait(PATIENCE_S)
        written: int = self._file.write(data)
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def test_a_disk_that_takes_very_long(
    tmp_path: Path, provider: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that hangs raises nothing: only the time that it takes tells of it."""
    going = threading.Event()
    going.set()
    opened = engine.disk.sink.aiofiles.open

    async def open_hung(*arguments: Any, **options: Any) -> Any:
        file = await opened(*arguments, **options)
        file._file = Hung(file._file, going)
        return file

    monkeypatch.setattr(engine.disk.sink.aiofiles, "open", open_hung)
    monkeypatch.setattr(engine.disk.sink, "SLOW_S", 0.3)
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, endpoint={"tokenizer": "none"}, limits={"concurrency": 2})
        with working(desk) as run:
            until(lambda: arrived(provider) > 10, "it is at work")
            going.clear()
            until(lambda: run.snapshot().state == "waiting", "it waits")
            assert "jsonl: a write has taken " in run.snapshot().reason
            assert_stands_still(provider)
            going.set()
            outcome = ending(run, desk)
        assert outcome.code == 0
        assert len(outcome.files.all("rows")) == provider.ledger.requests == PROMPTS
        assert_accounted(outcome.files)
