"""`python tests/perf/tls.py`: what TLS costs a client, as a new connection and as a request.

A bare server answers 6.6 KB in the clear and over TLS 1.3; the engine's own HTTP client asks it.
Needs the `openssl` command, for a certificate that lives as long as the measurement.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path

from perf_provider import ROOT, cores, pin

sys.path.insert(0, str(ROOT))

from engine.wire.client import Client, Exchange

REPLY = json.dumps({"choices": [{"message": {"content": "x" * 6500}}]}).encode()
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
BODY = b'{"messages":[{"role":"user","content":"' + b"q" * 300 + b'"}]}'


def _certify(folder: Path) -> Path:
    """A certificate and its key in one file."""
    path = folder / "server.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command += ["-keyout", str(path), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    with path.open("ab") as stream:
        stream.write((folder / "cert.pem").read_bytes())
    return folder / "cert.pem"


class _Responder(asyncio.Protocol):
    """Answers every request alike; a request ends with its body's last byte."""

    def __init__(self) -> None:
        self._seen = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer once the request is whole."""
        self._seen += data
        if self._seen.endswith(BODY[-4:]):
            self._seen = b""
            self._transport.write(HEAD % len(REPLY) + REPLY)


async def _serve(ready: int, pem: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if pem else None
    if context is not None:
        context.load_cert_chain(pem)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Responder, "localhost", 0, ssl=context, backlog=4096)
    port: int = server.sockets[0].getsockname()[1]
    os.write(ready, f"{port}\n".encode())
    async with server:
        await server.serve_forever()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _ask(base_url: str, in_flight: int, rounds: int) -> tuple[float, float]:
    """CPU milliseconds of a request that opens a connection, and of one that finds it open."""
    async with Client(base_url, key=None, headers={}) as client:

        async def once() -> None:
            outcome = await client.post("/chat", BODY, deadline_s=120, headers={})
            assert isinstance(outcome, Exchange), outcome

        before = _cpu_s()
        await asyncio.gather(*(once() for _ in range(in_flight)))
        opened = _cpu_s()
        for _ in range(rounds):
            await asyncio.gather(*(once() for _ in range(in_flight)))
        each = 1e3 / in_flight
        return (opened - before) * each, (_cpu_s() - opened) * each / rounds


def _measure(folder: Path, in_flight: int, rounds: int, *, tls: bool) -> tuple[float, float]:
    server_core, client_core = cores()
    certificate = _certify(folder) if tls else None
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        pin(server_core)
        asyncio.run(_serve(writing, str(folder / "server.pem") if tls else ""))
        os._exit(0)
    pin(client_core)
    try:
        port = os.read(reading, 16).decode().strip()
        if certificate is not None:
            os.environ["SSL_CERT_FILE"] = str(certificate)
        scheme = "https" if tls else "http"
        return asyncio.run(_ask(f"{scheme}://localhost:{port}", in_flight, rounds))
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def main() -> None:
    """Measure both and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--in-flight", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    sys.stdout.write(f"{arguments.in_flight} in flight, CPU ms of the client per request\n")
    sys.stdout.write(f"{'':8}{'opens a connection':>20}{'finds one open':>16}\n")
    for tls in (False, True):
        with tempfile.TemporaryDirectory() as name:
            spent = _measure(Path(name), arguments.in_flight, arguments.rounds, tls=tls)
        opens, finds = spent
        sys.stdout.write(f"{'TLS' if tls else 'plain':8}{opens:20.2f}{finds:16.2f}\n")


if __name__ == "__main__":
    main()
