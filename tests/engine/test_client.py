"""The HTTP client against real servers that misbehave: what came of it, and was it sent?"""

from __future__ import annotations

import asyncio
import gzip
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from misbehaving import (
    OK,
    Behaviour,
    Server,
    Wire,
    closed_port,
    misbehaving,
    pages,
    reply,
    replying,
)

from engine.errors import ExitCode, UsageError
from engine.faults.fault import Fault, fault_of_exception
from engine.wire.client import Client, Exchange, Failure

ROOT = Path(__file__).parents[2]
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """No proxy of whoever runs the tests stands in between."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


def client(url: str, *, key: str | None = None, **headers: str) -> Client:
    return Client(url, key=key, headers=headers)


async def post(url: str, *, deadline_s: float = 20.0, key: str | None = None) -> Exchange | Failure:
    async with client(url, key=key) as talker:
        return await talker.post("/chat/completions", b'{"q":1}', deadline_s=deadline_s)


def read_fault(outcome: Exchange | Failure) -> Fault:
    assert isinstance(outcome, Failure), outcome
    return fault_of_exception(outcome.names, outcome.message)


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("never came true")


# --- what is sent -----------------------------------------------------------------------------


async def test_a_post_carries_its_body_and_headers_and_gives_status_headers_and_body() -> None:
    seen: list[bytes] = []

    async def behave(wire: Wire) -> None:
        seen.append(await wire.request())
        await wire.send(reply(b'{"a": 1}', status="429 Slow", headers="Retry-After: 7\r\n"))

    async with (
        misbehaving(behave) as server,
        client(server.url + "/", key="sk-test", **{"X-Team": "a"}) as talker,
    ):
        answer = await talker.post(
            "/chat/completions", b'{"q":1}', deadline_s=20, headers={"X-Extra": "b"}
        )
    assert isinstance(answer, Exchange)
    assert (answer.status, answer.body) == (429, b'{"a": 1}')
    assert answer.headers["retry-after"] == answer.headers["Retry-After"] == "7"
    head, _, body = seen[0].partition(b"\r\n\r\n")
    lines = head.lower().split(b"\r\n")
    assert lines[0] == b"post /v1/chat/completions http/1.1"
    wanted = {b"authorization: bearer sk-test", b"x-team: a", b"x-extra: b"}
    assert wanted | {b"content-type: application/json"} <= set(lines)
    assert body == b'{"q":1}'


async def test_without_a_key_nothing_is_sent_in_its_place(
    plain: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2\n")
    netrc.chmod(0o600)
    plain.setenv("NETRC", str(netrc))
    seen: list[bytes] = []

    async def behave(wire: Wire) -> None:
        seen.append(await wire.request())
        await wire.send(OK)

    async with misbehaving(behave) as server:
        await post(server.url)
    assert b"authorization" not in seen[0].lower()


async def test_a_redirect_is_not_followed_so_no_key_goes_elsewhere() -> None:
    seen: list[bytes] = []

    async def elsewhere(wire: Wire) -> None:
        seen.append(await wire.request())
        await wire.send(OK)

    async with misbehaving(elsewhere) as other:
        moved = reply(b"", status="307 Moved", headers=f"Location: {other.url}\r\n")
        async with misbehaving(replying(moved)) as server:
            answer = await post(server.url, key="sk-test")
    assert isinstance(answer, Exchange)
    assert answer.status == 307
    assert seen == []


async def test_a_server_that_quotes_the_key_is_masked() -> None:
    key = "sk-or-v1-0123456789abcdef"
    words = reply(f'{{"error":"bad key {key}"}}'.encode(), status="401 No")
    async with misbehaving(replying(words)) as server:
        answer = await post(server.url, key=key)
    assert isinstance(answer, Exchange)
    assert answer.body == b'{"error":"bad key ***"}'


async def test_gzip_is_decoded_and_large_replies_are_whole() -> None:
    text = b'{"x": "' + b"ab" * 3_000_000 + b'"}'
    packed = reply(gzip.compress(text), headers="Content-Encoding: gzip\r\n")
    for data in (packed, reply(text)):
        async with misbehaving(replying(data)) as server:
            answer = await post(server.url)
        assert isinstance(answer, Exchange)
        assert answer.body == text


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.0 200 OK\r\n\r\n{}",  # ends by closing
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
async def test_unusual_but_whole_replies_are_replies(data: bytes) -> None:
    async with misbehaving(replying(data)) as server:
        answer = await post(server.url)
    assert isinstance(answer, Exchange)
    assert (answer.status, answer.body) == (200, b"{}")


async def test_blanks_that_keep_a_slow_connection_alive_do_no_harm() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    drip = [b"1\r\n\n\r\n"] * 60
    async with misbehaving(replying(head, *drip, b"2\r\n{}\r\n0\r\n\r\n")) as server:
        answer = await post(server.url)
    assert isinstance(answer, Exchange)
    assert answer.body.strip() == b"{}"


# --- the table of facts/transport.md: what happened, and may it have been charged? -------------


async def hang_up(wire: Wire) -> None:
    await wire.request()


async def hang_up_unread(wire: Wire) -> None:
    wire.reset()


async def reset_after_reading(wire: Wire) -> None:
    await wire.request()
    wire.reset()


async def reset_in_the_body(wire: Wire) -> None:
    await wire.request()
    await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{")
    await asyncio.sleep(0.05)
    wire.reset()


async def never(wire: Wire) -> None:
    await wire.request()
    await wire.reader.read()  # until the client hangs up


async def drip(wire: Wire) -> None:
    await wire.request()
    await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n")
    while True:
        await wire.send(b" ")
        await asyncio.sleep(0.01)


TABLE: list[tuple[Behaviour, str]] = [
    (hang_up, "disconnected"),
    (hang_up_unread, "disconnected"),
    (reset_after_reading, "disconnected"),
    (replying(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{"), "read_error"),
    (replying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"), "read_error"),
    (replying(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "not_http"),
    (reset_in_the_body, "read_error"),
    (
        replying(reply(b"no gzip at all", headers="Content-Encoding: gzip\r\n")),
        "read_error",
    ),
    (replying(b"SSH-2.0-OpenSSH_9.6\r\n"), "not_http"),
    (replying(b"\x16\x03\x01\x00\xa5" * 10), "not_http"),
    (replying(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n"), "not_http"),
]


@pytest.mark.parametrize(("behaviour", "family"), TABLE)
async def test_whatever_a_server_does_after_it_was_asked_may_have_been_charged(
    behaviour: Behaviour, family: str
) -> None:
    async with misbehaving(behaviour) as server:
        found = read_fault(await post(server.url))
    assert (found.family, found.sent) == (family, True)


@pytest.mark.parametrize("behaviour", [never, drip])
async def test_only_our_own_clock_ends_a_reply_that_never_comes_or_drips(
    behaviour: Behaviour,
) -> None:
    async with misbehaving(behaviour) as server:
        outcome = await post(server.url, deadline_s=0.3)
        found = read_fault(outcome)
        assert (found.family, found.sent) == ("deadline", True)
        await until(lambda: server.open == 0)  # the connection is given up, not kept


async def test_a_refused_connection_was_not_sent() -> None:
    found = read_fault(await post(f"http://127.0.0.1:{closed_port()}/v1"))
    assert (found.family, found.sent, found.cost) == ("connect", False, 0.0)


async def test_a_host_that_does_not_answer_the_door_was_not_sent(
    plain: pytest.MonkeyPatch,
) -> None:
    plain.setattr("engine.wire.client._CONNECT_S", 0.3)
    with socket.socket() as deaf, ExitStack() as callers:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen(0)
        for _ in range(4):  # who waits here fills its queue: further calls hang
            caller = callers.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(deaf.getsockname())
        found = read_fault(await post(f"http://127.0.0.1:{deaf.getsockname()[1]}/v1"))
    assert (found.family, found.sent) == ("connect", False)


async def test_a_name_that_does_not_resolve_was_not_sent(plain: pytest.MonkeyPatch) -> None:
    def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    plain.setattr(socket, "getaddrinfo", unknown)
    found = read_fault(await post("http://no.such.host.invalid/v1"))
    assert (found.family, found.sent) == ("dns", False)


@settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    start=st.sampled_from([b"", b"HTTP/1.1 ", b"HTTP/1.1 200 OK\r\n", OK[:-2]]),
    rest=st.binary(max_size=60),
)
def test_no_bytes_of_a_server_can_raise(start: bytes, rest: bytes) -> None:
    async def ask() -> Exchange | Failure:
        async with misbehaving(replying(start + rest)) as server:
            return await post(server.url, deadline_s=5.0)

    outcome = asyncio.run(ask())
    if isinstance(outcome, Failure):
        assert read_fault(outcome).family != "unexpected"
        assert read_fault(outcome).sent


# --- connections ------------------------------------------------------------------------------


async def test_a_connection_is_kept_and_used_again() -> None:
    async with misbehaving(pages({"/v1/models": OK})) as server, client(server.url) as talker:
        for _ in range(3):
            assert isinstance(await talker.get("/models"), Exchange)
        assert server.connections == 1


async def test_a_connection_that_the_peer_dropped_while_idle_is_replaced() -> None:
    served = 0

    async def once(wire: Wire) -> None:
        nonlocal served
        await wire.request()
        await wire.send(OK)
        served += 1

    async with misbehaving(once) as server, client(server.url) as talker:
        for number in range(1, 4):
            assert isinstance(await talker.post("/x", b"{}", deadline_s=20), Exchange)
            await until(lambda: server.open == 0)
            await asyncio.sleep(0.01)  # the client's loop hears of the end
            assert served == number


async def test_nothing_queues_inside_the_client_however_many_are_in_flight() -> None:
    everybody = asyncio.Event()

    async def wait_for_all(wire: Wire) -> None:
        while await wire.request():
            if server.connections >= 300:
                everybody.set()
            await everybody.wait()
            await wire.send(OK)

    server: Server
    async with misbehaving(wait_for_all) as server, client(server.url) as talker:
        asking = [talker.post("/x", b"{}", deadline_s=60) for _ in range(300)]
        answers = await asyncio.gather(*asking)
    assert all(isinstance(answer, Exchange) for answer in answers)


async def test_a_cancelled_request_gives_its_connection_up() -> None:
    async with misbehaving(never) as server, client(server.url) as talker:
        tasks = [asyncio.create_task(talker.post("/x", b"{}", deadline_s=60)) for _ in range(20)]
        await until(lambda: server.open == 20)
        for task in tasks:
            task.cancel()
        assert all(
            isinstance(end, asyncio.CancelledError)
            for end in await asyncio.gather(*tasks, return_exceptions=True)
        )
        await until(lambda: server.open == 0)


# --- proxies and certificates -----------------------------------------------------------------


async def test_a_proxy_of_the_environment_is_used_but_not_where_it_is_excepted(
    plain: pytest.MonkeyPatch,
) -> None:
    seen: list[bytes] = []

    async def proxy(wire: Wire) -> None:
        while head := await wire.request():
            seen.append(head.split(b"\r\n")[0])
            await wire.send(OK)

    async with misbehaving(proxy) as middle, misbehaving(pages({"/v1/models": OK})) as server:
        plain.setenv("HTTP_PROXY", f"http://127.0.0.1:{middle.port}")
        async with client("http://far.invalid/v1") as talker:
            assert isinstance(await talker.get("/models"), Exchange)
        assert seen == [b"GET http://far.invalid/v1/models HTTP/1.1"]
        plain.setenv("NO_PROXY", "127.0.0.1")
        async with client(server.url) as talker:
            assert isinstance(await talker.get("/models"), Exchange)
        assert (len(seen), server.connections) == (1, 1)


async def test_a_proxy_that_refuses_or_is_gone_let_nothing_through(
    plain: pytest.MonkeyPatch,
) -> None:
    plain.setenv("HTTPS_PROXY", f"http://127.0.0.1:{closed_port()}")
    found = read_fault(await post("https://far.invalid/v1"))
    assert (found.family, found.sent) == ("proxy", False)
    async with misbehaving(replying(reply(b"", status="403 Forbidden"))) as middle:
        plain.setenv("HTTPS_PROXY", f"http://127.0.0.1:{middle.port}")
        found = read_fault(await post("https://far.invalid/v1"))
    assert (found.family, found.sent) == ("proxy", False)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """A certificate that no system knows, and a server's context with it."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl makes the test's certificate")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1"
    extra = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*command.split(), *extra], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    return cert, context


async def test_a_certificate_that_nobody_vouches_for_is_refused_before_anything_is_sent(
    certificate: tuple[Path, ssl.SSLContext],
) -> None:
    async with misbehaving(replying(OK), tls=certificate[1]) as server:
        found = read_fault(await post(server.url, key="sk-test"))
    assert (found.family, found.sent) == ("tls", False)


async def test_ones_own_certificate_authority_is_taken_from_the_environment(
    certificate: tuple[Path, ssl.SSLContext], plain: pytest.MonkeyPatch
) -> None:
    plain.setenv("SSL_CERT_FILE", str(certificate[0]))
    async with misbehaving(replying(OK), tls=certificate[1]) as server:
        assert isinstance(await post(server.url), Exchange)


# --- open files -------------------------------------------------------------------------------

LIMITED = """
import resource, sys
from engine.wire.client import ensure_descriptors
from engine.errors import UsageError
resource.setrlimit(resource.RLIMIT_NOFILE, (64, int(sys.argv[1])))
try:
    ensure_descriptors(int(sys.argv[2]))
except UsageError as error:
    print(int(error.exit_code), error)
else:
    print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def limited(hard: int, concurrency: int) -> str:
    command = [sys.executable, "-c", LIMITED, str(hard), str(concurrency)]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_the_soft_limit_of_open_files_is_raised_to_what_is_needed() -> None:
    soft = int(limited(4096, 2000))
    assert 2000 < soft <= 4096


def test_too_few_open_files_say_how_many_requests_are_possible() -> None:
    said = limited(600, 2000)
    assert said.startswith(f"{int(ExitCode.USAGE)} 2000 requests in flight need")
    assert "this system allows 600" in said
    assert "--concurrency 344" in said
    assert issubclass(UsageError, Exception)
