"""Whoever reads a headless run's output may stop reading or go away; no paid reply is lost."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk, until
from e2e_files import assert_accounted
from e2e_provider import arrived, playing, slow

from engine.simulator import Simulator

PAGE = 4096
FLYING = 6
PROMPTS = 60


class Pipe:
    """A pipe of one page with room for `room` bytes before its writer is stalled."""

    def __init__(self, room: int = PAGE) -> None:
        self.read_end, self.write_end = os.pipe()
        fcntl.fcntl(self.write_end, fcntl.F_SETPIPE_SZ, PAGE)
        os.write(self.write_end, b"." * (PAGE - room))

    def given(self) -> None:
        """The child has its own copy of the writing end now."""
        os.close(self.write_end)

    @property
    def held(self) -> int:
        """Bytes that nobody has read."""
        count: int = struct.unpack("i", fcntl.ioctl(self.read_end, termios.FIONREAD, b"\0" * 4))[0]
        return count

    def rest(self) -> bytes:
        """Everything until the writer has gone."""
        with os.fdopen(self.read_end, "rb") as file:
            return file.read()

    def hang_up(self) -> None:
        os.close(self.read_end)


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing(latency=slow(0.3)) as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, endpoint={"api": "openai"}, limits={"concurrency": FLYING})
        yield desk


def test_a_stalled_stderr_keeps_no_signal_from_the_engine(desk: Desk, provider: Simulator) -> None:
    pipe = Pipe(room=200)
    process = desk.begin("--interval", "0.1", stderr=pipe.write_end)
    pipe.given()
    process.until(lambda: pipe.held > PAGE - 100, "stderr is full")
    process.until(lambda: arrived(provider) > 3 * FLYING, "the engine goes on")
    process.signal(signal.SIGTERM)
    until(lambda: desk.files.status()["state"] == "stopped", "the run is drained")
    assert process.running
    said = pipe.rest().decode()
    assert process.wait().code == 130
    assert "SIGTERM: draining" in said
    assert "Traceback" not in said
    assert len(desk.files.all("rows")) == arrived(provider)
    assert_accounted(desk.files)


def test_a_reader_of_the_data_who_goes_away_drains_the_run(desk: Desk, provider: Simulator) -> None:
    pipe = Pipe()
    process = desk.begin("--json", "--interval", "0.05", stdout=pipe.write_end)
    pipe.given()
    with os.fdopen(pipe.read_end, "rb") as file:
        assert json.loads(file.readline())
    result = process.wait()
    assert result.code == 130
    assert "stdout is closed: draining" in result.err
    assert "Traceback" not in result.err
    assert 0 < len(desk.files.all("rows")) == arrived(provider) < PROMPTS
    assert_accounted(desk.files)


def test_a_reader_of_the_narration_who_goes_away_changes_nothing(desk: Desk) -> None:
    pipe = Pipe()
    process = desk.begin("--interval", "0.05", "--concurrency", 30, stderr=pipe.write_end)
    pipe.given()
    process.until(lambda: pipe.held, "a first line")
    pipe.hang_up()
    assert process.wait().code == 0
    assert len(desk.files.all("rows")) == PROMPTS
