"""A folder with a manifest and its sources, and the real command line started on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import IO, Any, Self
from unittest.mock import patch

import pytest
from e2e_files import RunFiles

from tui.cli import main

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
MODEL = "moonshotai/kimi-k2.5"
PATIENCE_S = 40.0
"""How long a condition may take on a busy machine before the test gives up."""
_POLL_S = 0.005
_MAIN = "from tui.cli import main; main()"


def until(condition: Callable[[], object], what: str, *, patience_s: float = PATIENCE_S) -> None:
    """Wait until a condition holds; the only place where these tests wait for anything."""
    pause = threading.Event()
    for _ in range(int(patience_s / _POLL_S)):
        if condition():
            return
        pause.wait(_POLL_S)
    raise AssertionError(f"never came true: {what}")


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """stdout as JSON lines; fails where a line is none."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def summary(self) -> dict[str, Any]:
        """The last JSON line."""
        return self.records[-1]


class Process:
    """One running command; its output goes to files, so that nobody has to read it on time.

    `pipes` may name descriptors for stdout and stderr instead.
    """

    def __init__(
        self,
        arguments: list[str],
        folder: Path,
        environment: Mapping[str, str],
        pipes: Mapping[str, int],
    ) -> None:
        self._out, self._err = folder / "stdout", folder / "stderr"
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.popen = subprocess.Popen(
                arguments,
                cwd=folder.parent,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=pipes.get("stdout", out),
                stderr=pipes.get("stderr", err),
            )

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def running(self) -> bool:
        return self.popen.poll() is None

    @property
    def out(self) -> str:
        return self._out.read_text("utf-8")

    @property
    def err(self) -> str:
        return self._err.read_text("utf-8")

    def until(self, condition: Callable[[], object], what: str) -> None:
        """Wait until a condition holds while this process is at work."""
        until(lambda: condition() or not self.running, what)
        assert condition(), f"it ended before: {what}\n{self.err[-4000:]}"

    def says(self, words: str) -> None:
        """Wait until these words are on stderr."""
        self.until(lambda: words in self.err, f"it says {words}")

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)

    def wait(self, timeout: float = PATIENCE_S) -> Result:
        try:
            code = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running; it said:\n{self.err[-4000:]}") from None
        return Result(code, self.out, self.err)

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()


def run_here(arguments: list[str], folder: Path, environment: Mapping[str, str]) -> Result:
    """Call the command line's main in this process, with descriptors, environment and folder."""
    with (
        TemporaryFile("w+", encoding="utf-8", newline="") as out,
        TemporaryFile("w+", encoding="utf-8", newline="", errors="backslashreplace") as err,
    ):
        with (
            _redirected(1, out),
            _redirected(2, err),
            patch.multiple(sys, argv=["eaglegen-tui", *arguments], stdout=out, stderr=err),
            patch.dict(os.environ, environment, clear=True),
            chdir(folder),
            pytest.raises(SystemExit) as ended,
        ):
            main()
        return Result(int(ended.value.code or 0), _content(out), _content(err))


@contextmanager
def _redirected(descriptor: int, file: IO[str]) -> Iterator[None]:
    saved = os.dup(descriptor)
    os.dup2(file.fileno(), descriptor)
    try:
        yield
    finally:
        file.flush()
        os.dup2(saved, descriptor)
        os.close(saved)


def _content(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


class Desk:
    """A user's folder; use as a context, so that no process outlives its test."""

    def __init__(self, folder: Path, base_url: str = "http://127.0.0.1:9/api/v1") -> None:
        self.folder = folder
        self.base_url = base_url
        self.environment: dict[str, str] = {
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
        }
        self._processes: list[Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in self._processes:
            process.kill()

    @property
    def files(self) -> RunFiles:
        """The run directory that `manifest` names."""
        return RunFiles(self.folder / "out")

    def source(self, name: str, rows: Iterable[Any]) -> str:
        """Write a jsonl source; a row that is bytes is written as it is."""
        lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
        (self.folder / name).write_bytes(b"".join(line + b"\n" for line in lines))
        return name

    def manifest(self, *datasets: dict[str, Any], **sections: dict[str, Any]) -> Path:
        """Write manifest.toml; `sections` are merged into short defaults."""
        tables: dict[str, dict[str, Any]] = {
            "run": {"name": "e2e", "output": "out"},
            "endpoint": {"base_url": self.base_url, "model": MODEL},
            "sampling": {"max_tokens": 300},
            "limits": {"concurrency": 8},
        }
        for name, values in sections.items():
            tables[name] = {**tables.get(name, {}), **values}
        lines = [line for name, table in tables.items() for line in _table(f"[{name}]", table)]
        lines += [line for dataset in datasets for line in _table("[[datasets]]", dataset)]
        path = self.folder / "manifest.toml"
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return path

    def asking(self, count: int, name: str = "A", **sections: dict[str, Any]) -> Path:
        """A manifest with one dataset of `count` questions."""
        rows = ({"prompt": f"Question {number} of {name}?"} for number in range(count))
        source = self.source(f"{name}.jsonl", rows)
        return self.manifest({"name": name, "source": source, "prompts": count}, **sections)

    def start(self, *arguments: object, before: str = "", **pipes: int) -> Process:
        """Start the command line as a process; `before` is Python that it runs first."""
        folder = self.folder / f"process{len(self._processes)}"
        folder.mkdir()
        program = [sys.executable, "-c", f"{before}\n{_MAIN}", *map(str, arguments)]
        process = Process(program, folder, self.environment, pipes)
        self._processes.append(process)
        return process

    def run(self, *arguments: object) -> Result:
        """Run the command line to its end, here: the same code, without a second of imports."""
        return run_here([*map(str, arguments)], self.folder, self.environment)

    def go(self, *options: object) -> Result:
        """`run` on this desk's manifest, here."""
        return self.run("run", self.folder / "manifest.toml", *options)

    def begin(self, *options: object, before: str = "", **pipes: int) -> Process:
        """Start `run` on this desk's manifest in a process of its own."""
        return self.start("run", self.folder / "manifest.toml", *options, before=before, **pipes)


def _table(header: str, values: Mapping[str, Any]) -> list[str]:
    return [header, *(f"{key} = {_value(value)}" for key, value in values.items())]


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {_value(v)}" for k, v in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
