"""A small real disk (tmpfs) in a mount namespace of its own: it can be full, covered, or grown."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from e2e_desk import Desk, Process, until
from e2e_files import RunFiles

_ROOT = [] if os.name == "nt" or os.geteuid() == 0 else ["-U", "-r"]
_IN = [*_ROOT[:1], *(["--preserve-credentials"] if _ROOT else [])]


@dataclass(frozen=True, slots=True)
class Disk:
    """A tmpfs at `path`, seen only from inside the namespace that `holder` keeps open."""

    path: Path
    holder: int

    def inside(self, *command: str) -> None:
        """Run a command in the namespace; fails where it does."""
        subprocess.run([*self._enter, *command], check=True, capture_output=True)

    def resize(self, size: str) -> None:
        """Give the disk another size, such as `64m`."""
        self.inside("mount", "-o", f"remount,size={size}", str(self.path))

    def cover(self, path: Path, options: str) -> None:
        """Mount an empty file system over a folder: what was there is out of reach."""
        self.inside("mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path))

    def uncover(self, path: Path) -> None:
        """Take it away again, although files may be open."""
        self.inside("umount", "-l", str(path))

    @property
    def files(self) -> RunFiles:
        """The run directory `out` on the disk, seen from outside."""
        return RunFiles(Path(f"/proc/{self.holder}/root{self.path}/out"))

    def begin(self, desk: Desk, *options: object) -> Process:
        """Start `run` on the desk's manifest inside the namespace."""
        folder = desk.folder / "process-on-disk"
        folder.mkdir()
        # the folder is entered from inside: one that was entered before shows what lies beneath
        entered = [*self._enter, "sh", "-c", 'cd "$0" && exec "$@"', str(desk.folder)]
        main = "from tui.cli import main; main()"
        command = [*entered, sys.executable, "-c", main, "run", "manifest.toml"]
        process = Process([*command, *map(str, options)], folder, desk.environment, {})
        desk._processes.append(process)
        return process

    @property
    def _enter(self) -> list[str]:
        return ["nsenter", "-t", str(self.holder), "-m", *_IN]


@contextmanager
def disk_at(path: Path, size: str) -> Iterator[Disk]:
    """A disk of this size for as long as the context lasts; skips where none can be mounted."""
    if not (sys.platform == "linux" and shutil.which("unshare") and shutil.which("nsenter")):
        pytest.skip("needs Linux with unshare and nsenter")
    path.mkdir()
    script = 'mount -t tmpfs -o size="$1" tmpfs "$2" && echo mounted && exec sleep 600'
    holder = subprocess.Popen(
        ["unshare", "-m", *_ROOT, "sh", "-c", script, "sh", size, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stderr is not None
        try:
            if holder.stdout.readline() != "mounted\n":
                pytest.skip(f"this system mounts no tmpfs for us: {holder.stderr.read().strip()}")
            yield Disk(path, holder.pid)
        finally:
            holder.kill()


def waits(process: Process, words: str) -> None:
    """Wait until the run says that it waits for its disk, and why."""
    until(lambda: "waiting: disk: " in process.err or not process.running, "it waits")
    assert words in process.err, process.err[-2000:]
