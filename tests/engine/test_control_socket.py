"""control.sock of a real run: every command, bad lines, several viewers, a slow one, its place."""

from __future__ import annotations

import json
import socket
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from e2e_desk import until
from e2e_provider import playing, slow
from engine_parts import manifest_of, write_rows

from engine.commands import NAMES, Drain, Pause, Resume, Throttle
from engine.errors import RunUnreachableError, UsageError
from engine.link.control import MAX_LINE
from engine.link.remote import RemoteRun, ask
from engine.link.socketplace import POINTER, SOCKET, find
from engine.plan import Options, make_plan
from engine.readers import reader_for
from engine.runner import EngineThread
from engine.settings import Settings
from engine.simulator import Simulator
from engine.view.snapshot import Snapshot

PROMPTS = 400
MANIFEST = """
[run]
name = "socket"
output = "out"
[endpoint]
base_url = "{url}"
model = "moonshotai/kimi-k2.5"
tokenizer = "none"
api = "openai"
[limits]
concurrency = 4
[[datasets]]
name = "A"
source = "A.jsonl"
prompts = {prompts}
[[datasets]]
name = "B"
source = "B.jsonl"
prompts = 2
"""


class Line:
    """A peer that speaks the contract's JSON lines, with nothing of ours."""

    def __init__(self, folder: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(str(find(folder)))
        self._file = self.socket.makefile("rb")

    def say(self, message: Any) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.socket.sendall(data + b"\n")

    def hear(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads(self._file.readline() or b"{}")
        return record

    def ask(self, message: Any) -> dict[str, Any]:
        self.say(message)
        return self.hear()

    def close(self) -> None:
        self._file.close()
        self.socket.close()


def start(folder: Path, provider: Simulator, prompts: int = PROMPTS) -> EngineThread:
    write_rows(folder / "A.jsonl", ({"prompt": f"Question {n}"} for n in range(prompts)))
    write_rows(folder / "B.jsonl", ({"prompt": f"Other {n}"} for n in range(2)))
    text = MANIFEST.format(url=provider.base_url, prompts=prompts)
    plan = make_plan(manifest_of(text, folder), Options())
    run = EngineThread(plan, key=None, reader=reader_for(plan.manifest, Settings()))
    run.start()
    until(lambda: run.ended or run.snapshot().in_flight, "the run works")
    return run


def end(run: EngineThread) -> Snapshot:
    run.send(Drain())
    assert run.join(20)
    return run.snapshot()


@pytest.fixture(scope="module")
def provider() -> Iterator[Simulator]:
    with playing(latency=slow(0.1)) as provider:
        yield provider


@pytest.fixture
def run(tmp_path: Path, provider: Simulator) -> Iterator[EngineThread]:
    run = start(tmp_path, provider)
    yield run
    end(run)


@pytest.fixture
def out(run: EngineThread) -> Path:
    return Path(run.snapshot().output)


@pytest.fixture
def line(out: Path) -> Iterator[Line]:
    with closing(Line(out)) as line:
        yield line


def test_every_command_is_obeyed_and_journalled(line: Line, run: EngineThread) -> None:
    given: list[dict[str, Any]] = [
        {"command": "pause", "dataset": None},
        {"command": "resume"},
        {"command": "pause", "dataset": "A"},
        {"command": "resume", "dataset": "A"},
        {"command": "throttle", "limit": 3},
        {"command": "skip", "dataset": "B"},
        {"command": "unskip", "dataset": "B"},
        {"command": "retry_failed", "dataset": None},
        {"command": "drain"},
        {"command": "stop"},
    ]
    for message in given:
        answer = line.ask(message)
        assert answer.keys() == {"ok", "applied_at", "said"}, answer
        assert answer["ok"] is True
    assert run.join(20)
    told = [entry for entry in run.snapshot().journal if entry.kind == "command"]
    assert len(told) == len(given)
    assert {message["command"] for message in given} == set(NAMES) - {
        "exclude_provider",
        "include_provider",
    }
    assert run.exit_code == 130


REFUSED: list[tuple[Any, str]] = [
    (b"{not json", "one JSON object"),
    (b"[1, 2]", "one JSON object"),
    (b"", "one JSON object"),
    ({"command": "explode"}, "unknown command 'explode'"),
    ({"command": ["drain"]}, "unknown command"),
    ({"limit": 3}, "unknown command None"),
    ({"command": "throttle"}, "needs limit"),
    ({"command": "throttle", "limit": 0}, "at least 1"),
    ({"command": "throttle", "limit": "many"}, "at least 1"),
    ({"command": "skip", "dataset": "C"}, "no dataset is called 'C'"),
    ({"command": "skip", "dataset": 7}, "must be a name"),
    ({"command": "drain", "now": True}, "does not take now"),
    ({"command": "exclude_provider", "provider": "X"}, "only OpenRouter"),
    ({"command": "subscribe", "hz": 0}, "hz must be above 0"),
    ({"command": "subscribe", "hz": 1e9}, "hz must be above 0"),
    ({"command": "subscribe", "hz": True}, "hz must be above 0"),
]


def test_what_cannot_be_obeyed_is_answered_with_the_reason(line: Line) -> None:
    for message, words in REFUSED:
        answer = line.ask(message)
        assert answer["ok"] is False, message
        assert words in answer["error"]
    assert line.ask({"command": "pause", "dataset": "A"})["ok"] is True


def test_a_line_without_an_end_is_refused_and_others_are_served(line: Line, out: Path) -> None:
    line.socket.sendall(b"x" * (MAX_LINE + 10))
    assert f"{MAX_LINE} bytes" in line.hear()["error"]
    assert line.hear() == {}
    with closing(Line(out)) as other:
        assert other.ask({"command": "resume"})["ok"] is True


def test_a_fault_of_ours_is_an_answer(
    line: Line, monkeypatch: pytest.MonkeyPatch, out: Path
) -> None:
    def broken(*_: Any, **__: Any) -> str:
        raise ZeroDivisionError("sk-secret")

    monkeypatch.setattr("engine.runner.apply", broken)
    assert line.ask({"command": "resume"}) == {
        "ok": False,
        "error": "a fault of ours (ZeroDivisionError)",
    }
    monkeypatch.undo()
    assert ask(out, Pause("A")).startswith("paused A")


def test_only_this_user_can_reach_it(out: Path) -> None:
    assert stat.S_IMODE((out / SOCKET).stat().st_mode) == 0o600


def test_who_has_an_answer_sees_what_the_order_did(run: EngineThread, line: Line) -> None:
    for paused in (True, False, True):
        run.send(Pause(None) if paused else Resume(None)).result(20)
        assert run.snapshot().paused is paused
    assert line.ask({"command": "throttle", "limit": 3})["ok"]
    assert run.snapshot().limit_ceiling == 3


def test_two_viewers_see_the_same_run_and_its_end(run: EngineThread, out: Path) -> None:
    viewers = [RemoteRun(out, hz=10), RemoteRun(out, hz=10, read_only=True)]
    for viewer in viewers:
        assert viewer.snapshot().run == "socket"
        assert [view.name for view in viewer.snapshot().datasets] == ["A", "B"]
    assert viewers[0].send(Throttle(2)).result(20) == "ceiling now 2 in flight"
    until(lambda: viewers[1].snapshot().limit_ceiling == 2, "the other one sees it")
    with pytest.raises(UsageError, match="read-only"):
        viewers[1].send(Throttle(4)).result(20)
    last = end(run)
    for viewer in viewers:
        until(lambda viewer=viewer: viewer.ended, "the viewer hears the end")  # type: ignore[misc]
        assert viewer.snapshot() == last
        viewer.close()
    assert last.limit_ceiling == 2
    assert last.exit_code == 130


@pytest.mark.slow
def test_a_viewer_that_reads_nothing_neither_piles_up_nor_delays(
    run: EngineThread, out: Path, line: Line
) -> None:
    with closing(Line(out)) as lazy:
        lazy.say({"command": "subscribe", "hz": 10})
        with closing(RemoteRun(out, hz=10)) as quick:
            before = quick.snapshot().heartbeat_at
            until(lambda: quick.snapshot().heartbeat_at > before + 3, "time has passed for others")
        assert line.ask({"command": "pause"})["ok"] is True
        assert end(run).exit_code == 130
        kept = 0
        while lazy.hear().get("schema") == 1:
            kept += 1
        assert kept < 20


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime folder with a short path, whatever pytest's own folders are called."""
    with tempfile.TemporaryDirectory(prefix="eg") as name:
        monkeypatch.setenv("XDG_RUNTIME_DIR", name)
        yield Path(name)


def test_a_path_too_long_for_a_socket_goes_to_the_runtime_folder(
    tmp_path: Path, provider: Simulator, runtime: Path
) -> None:
    folder = tmp_path / ("deep" * 20) / ("deeper" * 10)
    folder.mkdir(parents=True)
    run = start(folder, provider)
    out = folder / "out"
    place = find(out)
    assert (out / POINTER).read_text().strip() == str(place)
    assert place.parent.parent == runtime
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.parent.stat().st_mode) == 0o700
    assert "paused" in ask(out, Pause())
    end(run)
    assert not place.exists()
    assert not (out / POINTER).exists()


@pytest.mark.usefixtures("runtime")
def test_a_runtime_folder_of_somebody_else_is_not_used(tmp_path: Path, provider: Simulator) -> None:
    folder = tmp_path / ("deep" * 30)
    folder.mkdir()
    run = start(folder, provider)
    shared = find(folder / "out").parent
    end(run)
    shared.chmod(0o777)
    run = start(folder, provider)
    assert any("no control socket" in entry.text for entry in run.snapshot().journal)
    with pytest.raises(RunUnreachableError, match="does not answer"):
        ask(folder / "out", Pause())
    end(run)


def test_a_stale_socket_and_no_run_at_all_are_said_at_once(
    tmp_path: Path, provider: Simulator
) -> None:
    end(start(tmp_path, provider))
    out = tmp_path / "out"
    assert not (out / SOCKET).exists()
    with pytest.raises(RunUnreachableError, match="no process does this run"):
        RemoteRun(out)
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(str(out / SOCKET))
    stale.close()
    with pytest.raises(RunUnreachableError, match="no process does this run"):
        RemoteRun(out)
    with pytest.raises(RunUnreachableError, match="no process does this run"):
        ask(out, Drain())
    with pytest.raises(RunUnreachableError, match="is no run directory"):
        ask(tmp_path / "nowhere", Drain())
    run = start(tmp_path, provider)
    assert "paused" in ask(out, Pause())
    end(run)


def test_a_process_that_does_not_answer_is_said(
    tmp_path: Path, provider: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.link.remote.ANSWER_S", 0.2)
    end(start(tmp_path, provider))
    out = tmp_path / "out"
    with closing(socket.socket(socket.AF_UNIX)) as deaf:
        deaf.bind(str(out / SOCKET))
        deaf.listen(4)
        with pytest.raises(RunUnreachableError):
            RemoteRun(out)
        with pytest.raises(RunUnreachableError):
            ask(out, Drain())


def test_a_peer_that_speaks_another_language_is_said(tmp_path: Path, provider: Simulator) -> None:
    end(start(tmp_path, provider))
    out = tmp_path / "out"
    with closing(socket.socket(socket.AF_UNIX)) as other:
        other.bind(str(out / SOCKET))
        other.listen(4)
        for answer in (b"nonsense\n", b"[]\n", b'{"screen":{}}\n', b'{"ok":1}\n', b""):
            thread = threading.Thread(target=_answer_once, args=(other, answer))
            thread.start()
            with pytest.raises(RunUnreachableError):
                RemoteRun(out)
            thread.join()


def _answer_once(server: socket.socket, answer: bytes) -> None:
    peer, _ = server.accept()
    with peer:
        peer.recv(4096)
        peer.sendall(answer)
