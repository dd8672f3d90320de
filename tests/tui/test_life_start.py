"""`eaglegen-tui` alone, what it remembers between commands, and the digest of what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk
from e2e_provider import playing, slow
from life_terminal import Terminal, command, wait_for
from money_engine import working
from scripted_run import busy, dataset

from engine.clock import iso
from engine.disk.rundir import is_held
from engine.plan import Options, Shard
from engine.simulator import Simulator
from tui.digest import digest, read_journal, seen_now
from tui.memory import Recent, Seen, last_look, look, recent, remember
from tui.start import entries, options_of

NOW = 1e9


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    return tmp_path


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing(latency=slow(0.1)) as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(8, endpoint={"api": "openai"}, limits={"concurrency": 2})
        yield desk


@pytest.fixture
def alone(desk: Desk) -> Iterator[Callable[[], Terminal]]:
    """Starts the bare command."""
    terminals: list[Terminal] = []

    def start() -> Terminal:
        terminals.append(command(desk))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def known(folder: Path, name: str = "kept", **more: object) -> Recent:
    folder.mkdir(exist_ok=True)
    return Recent(str(folder), str(folder.parent / "manifest.toml"), name, NOW, dict(more))


def test_an_ended_run_is_resumed_and_can_be_left_in_the_background(
    desk: Desk, alone: Callable[[], Terminal]
) -> None:
    assert desk.go("--limit", 3, "--concurrency", 1).code == 0
    terminal = alone()
    terminal.until("e2e  done; enter looks at it again", "3 of 8 prompts", "demo", "init")
    terminal.press("\r")
    terminal.until("RUNNING", "ceiling 1")
    terminal.press("q")
    terminal.until("go on in the background")
    terminal.press("b")
    assert terminal.end() == 0
    wait_for(lambda: not is_held(desk.files.folder))
    assert desk.files.status()["datasets"][0]["ok"] == 8


def test_a_live_run_comes_first_and_is_attached_to(
    desk: Desk, alone: Callable[[], Terminal]
) -> None:
    desk.asking(2000, endpoint={"api": "openai"}, limits={"concurrency": 2})
    with working(desk) as run:
        wait_for(lambda: run.snapshot().datasets[0].rows)
        remember(known(desk.files.folder, "e2e"))
        remember(known(desk.folder / "later", "later"))
        terminal = alone()
        terminal.until("e2e  live: running; enter attaches", "later  ended with work left")
        terminal.press("\r")
        terminal.until("RUNNING", "since the start")
        terminal.press("Q")
        terminal.until("leave this screen")
        terminal.press("b")
        assert terminal.end() == 0
        assert b"the run goes on" in terminal.sent
        assert not run.ended


@pytest.mark.slow
def test_init_writes_here_and_q_does_nothing(desk: Desk, alone: Callable[[], Terminal]) -> None:
    (desk.folder / "manifest.toml").unlink()
    terminal = alone()
    terminal.until("demo", "init")
    terminal.press("j\r")
    assert terminal.end() == 0
    assert (desk.folder / "manifest.toml").exists()
    terminal = alone()
    terminal.until("init")
    terminal.press("q")
    assert terminal.end() == 0
    assert b"\x1b[?1049l" in terminal.sent


def test_without_a_terminal_there_is_the_help(desk: Desk) -> None:
    result = desk.run()
    assert result.code == 0
    assert "Usage: " in result.out


def test_runs_are_remembered_the_latest_first_while_they_exist(tmp_path: Path) -> None:
    assert recent() == []
    for name in ("one", "two", "one"):
        remember(known(tmp_path / name, name, concurrency=3))
    assert [run.name for run in recent()] == ["one", "two"]
    (tmp_path / "two").rmdir()
    assert [run.name for run in recent()] == ["one"]
    assert (tmp_path / ".local/state/eaglegen-tui").stat().st_mode & 0o077 == 0


def test_options_come_back_for_the_next_start(tmp_path: Path) -> None:
    run = known(
        tmp_path / "run", only=["A"], shard={"index": 2, "count": 3}, base_url="http://x/v1"
    )
    remember(run)
    assert options_of(recent()[0]) == Options(
        only=("A",), shard=Shard(2, 3), base_url="http://x/v1", output=tmp_path / "run"
    )


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"x":1}', b'{"x":{"y":2}}'])
def test_a_broken_memory_is_an_empty_one(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / ".local/state/eaglegen-tui"
    folder.mkdir(parents=True)
    for name in ("recent.json", "seen.json"):
        (folder / name).write_bytes(content)
    assert recent() == []
    assert last_look(tmp_path) is None
    look(tmp_path, Seen(NOW, 1, 2))
    assert last_look(tmp_path) == Seen(NOW, 1, 2)


def test_a_memory_that_cannot_be_written_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / ".local").write_text("a file where a folder should be")
    remember(known(tmp_path / "run"))
    look(tmp_path, Seen(NOW, 1, 2))
    assert recent() == []


def test_a_run_without_its_manifest_is_shown_and_not_resumed(tmp_path: Path) -> None:
    (entry, *_) = entries([known(tmp_path / "demo")], NOW + 7200)
    assert entry.act == "status"
    assert "2h" in entry.detail


def test_the_digest_tells_what_came_since_the_last_look() -> None:
    snapshot = busy(NOW, 600)
    snapshot = dataset(snapshot, 0, rows=50, attempt_errors=7)
    now = seen_now(snapshot)
    journal = [
        {"at": iso(NOW + 100), "kind": "state", "text": "run running → paused"},
        {"at": iso(NOW + 400), "kind": "command", "text": "resumed the run"},
        {"at": iso(NOW + 410), "kind": "state", "text": "run paused → running"},
        {"at": iso(NOW + 420), "kind": "verdict", "text": "rate_limit is over"},
        {"at": "never", "kind": "state", "text": "broken"},
    ]
    told = digest(snapshot, Seen(NOW + 300, now.rows - 12, now.errors - 1), journal)
    assert told.startswith("since you looked 5m 00s ago: 12 rows, 1 failed attempt, ")
    assert "1 order, 1 verdict change, at " in told
    assert told.endswith("run paused → running")
    whole = digest(snapshot, None, journal)
    assert whole.startswith(f"since the start 10m 00s ago: {now.rows:,} rows, {now.errors:,} ")
    assert digest(snapshot, Seen(NOW + 300, now.rows + 1, 0), journal) == whole


def test_a_journal_that_is_torn_or_missing_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    assert read_journal(tmp_path) == []
    (tmp_path / "events.jsonl").write_bytes(b'{"kind":"state"}\nnonsense\n[1]\n{"kind":"com')
    assert read_journal(tmp_path) == [{"kind": "state"}]
