"""What stands between a screen and its reader: a tmux server, an SSH server on loopback."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest
from e2e_desk import Desk
from life_terminal import Terminal, environment, wait_for


class Tmux:
    """A server of its own, which reads nobody's configuration."""

    def __init__(self, desk: Desk) -> None:
        program = shutil.which("tmux")
        assert program is not None
        self._desk = desk
        self._base = [program, "-S", str(desk.folder / "tmux"), "-f", os.devnull]

    def __call__(self, *arguments: str) -> str:
        done = subprocess.run(
            [*self._base, *arguments],
            env=environment(self._desk),
            cwd=self._desk.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout

    def client(self) -> Terminal:
        """Somebody who looks at it."""
        return Terminal([*self._base, "attach"], self._desk.folder, environment(self._desk))

    def shows(self, *texts: str) -> bool:
        text = self("capture-pane", "-p")
        return all(one in text for one in texts)


class Sshd:
    """A server on loopback that lets this user in with a key of its own; skips where it cannot."""

    def __init__(self, program: str, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for name in ("host", "user"):
            self._keygen(name)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        config = self._configure()
        checked = subprocess.run(
            [program, "-t", "-f", str(config)], capture_output=True, text=True, check=False
        )
        if checked.returncode:
            pytest.skip(f"sshd cannot run here: {checked.stderr.strip()}")
        log = folder / "log"
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [program, "-D", "-e", "-f", str(config)], stdin=subprocess.DEVNULL, stderr=file
            )
        wait_for(lambda: b"listening" in log.read_bytes() or self.process.poll() is not None)
        assert self.process.poll() is None, log.read_text()

    def _keygen(self, name: str) -> None:
        words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]
        subprocess.run(words, check=True)

    def _configure(self) -> Path:
        config = self.folder / "config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder / 'host'}\n"
            f"AuthorizedKeysFile {self.folder / 'user.pub'}\nPidFile none\nStrictModes no\n"
            "UsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
            "PermitRootLogin prohibit-password\n"
        )
        return config

    def client(self, desk: Desk, remote: str) -> Terminal:
        """`ssh -tt` with that command, on a terminal."""
        ssh = shutil.which("ssh")
        assert ssh is not None
        options = ["StrictHostKeyChecking=no", f"UserKnownHostsFile={os.devnull}", "LogLevel=ERROR"]
        key = str(self.folder / "user")
        words = [ssh, "-tt", "-F", os.devnull, "-p", str(self.port), "-i", key]
        words += [word for option in options for word in ("-o", option)]
        words += [f"{getpass.getuser()}@127.0.0.1", remote]
        return Terminal(words, desk.folder, environment(desk))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def found_sshd() -> str | None:
    """sshd wants to be called by its whole path, and stands where plain users do not look."""
    return shutil.which("sshd") or shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:/sbin")


def session_of(pid: int) -> int:
    """The sshd process that holds the terminal of a process."""
    while pid > 1:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
        if name.startswith("sshd"):
            return pid
        pid = int(rest.split()[1])
    raise AssertionError("no sshd above the run")
