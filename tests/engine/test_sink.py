"""The sink: grouped writes, counted only once on file, nothing lost when the disk misbehaves."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from engine.disk import sink as module
from engine.disk.jsonlines import load_line
from engine.disk.sink import Sink


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_EVERY_S", 0.01)
    monkeypatch.setattr(module, "SYNC_EVERY_S", 0.01)


@asynccontextmanager
async def writing(folder: Path) -> AsyncIterator[Sink]:
    sink = Sink(folder)
    task = asyncio.create_task(sink.run())
    try:
        yield sink
    finally:
        sink.close()
        await task


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("never came true")


def numbers(path: Path) -> list[int]:
    data = path.read_bytes()
    assert not data or data.endswith(b"\n")
    return [load_line(line)["n"] for line in data.splitlines()]


async def test_what_is_put_stands_in_its_file_in_order(tmp_path: Path) -> None:
    async with writing(tmp_path) as sink:
        for n in range(100):
            sink.put("D/rows.jsonl", {"n": n})
            sink.put("events.jsonl", {"n": -n})
    assert numbers(tmp_path / "D" / "rows.jsonl") == list(range(100))
    assert numbers(tmp_path / "events.jsonl") == [-n for n in range(100)]


async def test_a_later_sink_appends(tmp_path: Path) -> None:
    for n in range(3):
        async with writing(tmp_path) as sink:
            sink.put("f.jsonl", {"n": n})
    assert numbers(tmp_path / "f.jsonl") == [0, 1, 2]


async def test_what_comes_together_is_written_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[int] = []
    write = Sink._write_some

    async def counted(sink: Sink, name: str, data: memoryview) -> int:
        writes.append(len(data))
        return await write(sink, name, data)

    monkeypatch.setattr(Sink, "_write_some", counted)
    async with writing(tmp_path) as sink:
        for n in range(1000):
            sink.put("rows.jsonl", {"n": n})
        await sink.commit()
    assert len(writes) == 1
    assert len(numbers(tmp_path / "rows.jsonl")) == 1000


async def test_done_is_called_only_when_the_bytes_are_in_the_file(tmp_path: Path) -> None:
    seen: list[bool] = []

    def done(n: int) -> None:
        seen.append(n in numbers(tmp_path / "D" / "rows.jsonl"))

    async with writing(tmp_path) as sink:
        for n in range(50):
            sink.put("D/rows.jsonl", {"n": n}, lambda n=n: done(n))  # type: ignore[misc]
            if n % 7 == 0:
                await asyncio.sleep(0)
    assert seen == [True] * 50


async def test_commit_returns_when_all_before_it_is_in_the_file(tmp_path: Path) -> None:
    async with writing(tmp_path) as sink:
        await sink.commit()  # nothing was put: nothing to wait for
        for n in range(20):
            sink.put("sent.jsonl", {"n": n})
            await sink.commit()
            assert numbers(tmp_path / "sent.jsonl")[-1] == n


async def test_a_failing_callback_stops_no_other_row_and_is_told_at_the_end(tmp_path: Path) -> None:
    counted: list[int] = []
    sink = Sink(tmp_path)
    task = asyncio.create_task(sink.run())
    sink.put("rows.jsonl", {"n": 0}, lambda: 1 // 0)  # type: ignore[arg-type,return-value]
    sink.put("rows.jsonl", {"n": 1}, lambda: counted.append(1))
    await sink.commit()
    assert isinstance(sink.fault, ZeroDivisionError)
    sink.put("rows.jsonl", {"n": 2}, lambda: counted.append(2))
    sink.close()
    with pytest.raises(ZeroDivisionError):
        await task
    assert counted == [1, 2]
    assert numbers(tmp_path / "rows.jsonl") == [0, 1, 2]


# --- a full disk ------------------------------------------------------------------------------

LINE = {"text": "x" * 1000}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"0" * 4096)


async def test_a_full_disk_waits_with_a_reason_and_goes_on_at_the_very_byte(
    small_disk: Path,
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"0" * 40_000)
    run = small_disk / "run"
    run.mkdir()
    counted: list[int] = []
    async with writing(run) as sink:
        for n in range(50):
            sink.put("D/rows.jsonl", {"n": n, **LINE}, lambda n=n: counted.append(n))  # type: ignore[misc]
        await until(lambda: bool(sink.trouble))
        assert sink.trouble == "D/rows.jsonl: No space left on device"
        assert counted == []
        partial = (run / "D" / "rows.jsonl").read_bytes()
        assert partial
        assert not partial.endswith(b"\n")
        ballast.unlink()
        await until(lambda: len(counted) == 50)
        assert sink.trouble == ""
    assert numbers(run / "D" / "rows.jsonl") == list(range(50))
    assert (run / "D" / "rows.jsonl").read_bytes().startswith(partial)


async def test_a_disk_that_fills_up_again_and_again_loses_nothing(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    counted: list[int] = []
    async with writing(small_disk) as sink:
        for round_ in range(4):
            fill(ballast)
            for n in range(round_ * 12, round_ * 12 + 12):
                name = f"{'AB'[n % 2]}/rows.jsonl"
                sink.put(name, {"n": n, **LINE}, lambda n=n: counted.append(n))  # type: ignore[misc]
            await until(lambda: bool(sink.trouble))
            ballast.unlink()
            await sink.commit()
    assert counted == list(range(48))
    assert numbers(small_disk / "A" / "rows.jsonl") == list(range(0, 48, 2))
    assert numbers(small_disk / "B" / "rows.jsonl") == list(range(1, 48, 2))


async def test_a_quota_cuts_a_write_short_and_nothing_is_lost(tmp_path: Path) -> None:
    """RLIMIT_FSIZE does to any user what a quota does: a short write, then an error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    counted: list[int] = []
    async with writing(tmp_path) as sink:
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_500, before[1]))
            for n in range(50):
                sink.put("rows.jsonl", {"n": n, **LINE}, lambda n=n: counted.append(n))  # type: ignore[misc]
            await until(lambda: bool(sink.trouble))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert sink.trouble == "rows.jsonl: File too large"
        assert counted == []
        await sink.commit()
        assert sink.trouble == ""
    assert numbers(tmp_path / "rows.jsonl") == counted == list(range(50))


async def test_a_disk_without_any_room_is_waited_for_too(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").symlink_to("/dev/full")
    async with writing(tmp_path) as sink:
        sink.put("rows.jsonl", {"n": 1})
        await until(lambda: "No space left" in sink.trouble)
        (tmp_path / "rows.jsonl").unlink()
        await sink.commit()
    assert numbers(tmp_path / "rows.jsonl") == [1]


async def test_a_line_that_was_begun_when_its_file_was_synced_stays_whole_in_memory(
    tmp_path: Path,
) -> None:
    """Its beginning may vanish with the file while the rest of it is still to be written."""
    sink = Sink(tmp_path)
    sink._unsynced["f"] = bytearray(b'{"n":1}\n{"n":2}\n{"n"')
    sink._note_synced("f", 20, here=True)
    assert sink._unsynced["f"] == b'{"n"'
    await sink._close_files()


# --- files that vanish ------------------------------------------------------------------------


async def test_a_deleted_dataset_folder_is_made_again_with_what_was_not_yet_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SYNC_EVERY_S", 3600.0)
    rows = tmp_path / "D" / "rows.jsonl"
    async with writing(tmp_path) as sink:
        sink.put("D/rows.jsonl", {"n": 0})
        await sink.commit()
        await sink._sync()
        shutil.rmtree(tmp_path / "D")
        for n in range(1, 100):
            sink.put("D/rows.jsonl", {"n": n})
            await sink.commit()
        assert not rows.exists()
        await sink._sync()
        sink.put("D/rows.jsonl", {"n": 100})
        await sink.commit()
    assert numbers(rows) == list(range(1, 101))


async def test_a_file_that_vanishes_between_two_writes_is_noticed_without_one(
    tmp_path: Path,
) -> None:
    rows = tmp_path / "rows.jsonl"
    async with writing(tmp_path) as sink:
        sink.put("rows.jsonl", {"n": 0})
        await sink.commit()
        await until(lambda: not any(sink._unsynced.values()))
        rows.unlink()
        await until(rows.exists)
        sink.put("rows.jsonl", {"n": 1})
    assert numbers(rows) == [1]


async def test_a_vanished_run_directory_is_trouble_until_it_is_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SYNC_EVERY_S", 3600.0)
    run, away = tmp_path / "run", tmp_path / "away"
    run.mkdir()
    counted: list[int] = []
    async with writing(run) as sink:
        sink.put("D/rows.jsonl", {"n": 0}, lambda: counted.append(0))
        await sink.commit()
        run.rename(away)
        sink.put("D/rows.jsonl", {"n": 1}, lambda: counted.append(1))  # follows the moved file
        await sink.commit()
        await sink._sync()
        await until(lambda: sink.trouble.endswith("the run directory has vanished"))
        sink.put("D/rows.jsonl", {"n": 2}, lambda: counted.append(2))
        away.rename(run)
        await until(lambda: len(counted) == 3)
        assert sink.trouble == ""
    assert numbers(run / "D" / "rows.jsonl") == [0, 1, 2]


async def test_a_file_that_an_editor_replaced_gets_only_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SYNC_EVERY_S", 3600.0)
    rows, copy = tmp_path / "rows.jsonl", tmp_path / "copy"
    async with writing(tmp_path) as sink:
        for n in range(5):
            sink.put("rows.jsonl", {"n": n})
        await sink.commit()
        shutil.copy(rows, copy)
        for n in range(5, 8):
            sink.put("rows.jsonl", {"n": n})
        await sink.commit()
        copy.rename(rows)
        await sink._sync()
    assert numbers(rows) == list(range(8))


async def test_a_dataset_folder_that_is_a_file_is_named_and_waited_for(tmp_path: Path) -> None:
    (tmp_path / "D").write_text("in the way")
    async with writing(tmp_path) as sink:
        sink.put("D/rows.jsonl", {"n": 1})
        await until(lambda: bool(sink.trouble))
        assert sink.trouble.startswith("D/rows.jsonl: ")
        (tmp_path / "D").unlink()
        await sink.commit()
    assert numbers(tmp_path / "D" / "rows.jsonl") == [1]


async def test_closing_does_not_wait_for_a_folder_that_is_gone_when_all_is_written(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    async with writing(run) as sink:
        sink.put("rows.jsonl", {"n": 1})
        await sink.commit()
        await until(lambda: not any(sink._unsynced.values()))
        shutil.rmtree(run)
    assert not run.exists()


async def test_cancelling_ends_at_once_even_while_the_disk_does_not_write(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").symlink_to("/dev/full")
    sink = Sink(tmp_path)
    task = asyncio.create_task(sink.run())
    sink.put("rows.jsonl", {"n": 1})
    await until(lambda: bool(sink.trouble))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nobody_waits_for_a_writer_that_was_cancelled(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").symlink_to("/dev/full")
    sink = Sink(tmp_path)
    task = asyncio.create_task(sink.run())
    sink.put("rows.jsonl", {"n": 1})
    await until(lambda: bool(sink.trouble))
    waiting = asyncio.create_task(sink.commit())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    with pytest.raises(RuntimeError, match="the sink has ended"):
        await waiting


async def test_a_folder_that_another_run_has_taken_is_not_written_to(tmp_path: Path) -> None:
    mine = True
    sink = Sink(tmp_path, owned=lambda: mine)
    mine = False
    writing = asyncio.create_task(sink.run())
    sink.put("rows.jsonl", {"id": 1})
    await until(lambda: "another run" in sink.trouble)
    assert not (tmp_path / "rows.jsonl").exists()
    mine = True
    sink.close()
    await writing
    assert (tmp_path / "rows.jsonl").read_bytes() == b'{"id":1}\n'
