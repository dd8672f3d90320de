"""HTTP to the endpoint: httpx over aiohttp's transport, one wall-clock deadline per request.

Why this transport, and how its exceptions mislead: encode/httpcore#1035 and CONTRIBUTING.
"""

from __future__ import annotations

import asyncio
import re
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import TracebackType
from typing import Self

import aiohttp
import httpx
import httpx_aiohttp

from engine.errors import UsageError

_CONNECT_S = 30.0
_KEEP_ALIVE_S = 15.0
_SPARE_DESCRIPTORS = 256
_CAUSES = 8
_KEY_LENGTH = 16
"""A shorter key (`EMPTY`, `token`) is no secret, and its letters may stand in any paid answer."""
_REFUSED = 400
_UNBOUNDED = 1_000_000  # the schedule keeps the bound, so nothing ever queues inside the pool


@dataclass(frozen=True, slots=True)
class Exchange:
    """One answered request: HTTP status, headers in lower case, the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Failure:
    """A request that got no answer: class names of the exception and its causes, outermost first.

    `("Deadline",)` is our own wall clock.
    """

    names: tuple[str, ...]
    message: str


class _Http(httpx_aiohttp.HttpxAiohttpClient):
    """httpx's settings, proxies and certificates, without what its `request` adds to each request.

    Merging headers, looking for cookies and following redirects cost as much CPU as all that the
    engine does with a reply, and the stream that it wraps ties each reply, body and all, into a
    reference cycle that only the garbage collector frees.
    """

    async def exchange(self, request: httpx.Request) -> httpx.Response:
        """Send a complete request; the response has its whole body."""
        response = await self._transport_for_url(request.url).handle_async_request(request)
        try:
            await response.aread()
        except BaseException:
            await response.aclose()
            raise
        return response


class Client:
    """Talks to one endpoint; use as an async context."""

    def __init__(self, base_url: str, *, key: str | None, headers: Mapping[str, str]) -> None:
        self._base = base_url.rstrip("/")
        self._secret = (key or "").encode()
        self._quoted = _as_quoted(self._secret)
        sent = {"content-type": "application/json", **headers}
        if key:
            sent["authorization"] = f"Bearer {key}"
        self._http = _Http(
            headers=sent,
            timeout=httpx.Timeout(None, connect=_CONNECT_S),
            limits=httpx.Limits(max_connections=_UNBOUNDED, keepalive_expiry=_KEEP_ALIVE_S),
        )
        self._timeout = self._http.timeout.as_dict()

    @property
    def keyed(self) -> bool:
        """Whether requests carry a key."""
        return bool(self._secret)

    async def __aenter__(self) -> Self:
        await self._http.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._http.__aexit__(kind, error, trace)

    async def post(
        self, path: str, body: bytes, *, deadline_s: float, headers: Mapping[str, str] | None = None
    ) -> Exchange | Failure:
        """POST a JSON body; the deadline covers everything from connecting to the last byte."""
        return await self._call("POST", path, body, deadline_s, headers)

    async def get(self, path: str, *, deadline_s: float = 20.0) -> Exchange | Failure:
        """GET a path below the base URL."""
        return await self._call("GET", path, None, deadline_s, None)

    async def _call(
        self,
        method: str,
        path: str,
        body: bytes | None,
        deadline_s: float,
        headers: Mapping[str, str] | None,
    ) -> Exchange | Failure:
        try:
            async with asyncio.timeout(deadline_s) as limit:
                reply = await self._http.exchange(self._request(method, path, body, headers))
        except TimeoutError as error:
            if not limit.expired():  # the system's own, such as ETIMEDOUT
                return self._failure(error)
            return Failure(("Deadline",), f"no complete reply within {deadline_s:.0f} s")
        except (httpx.HTTPError, httpx.InvalidURL, aiohttp.ClientError, OSError) as error:
            return self._failure(error)
        except (ValueError, AssertionError, RuntimeError) as error:
            # aiohttp's parser and httpx's decoders let these escape on malformed replies
            return self._failure(error)
        body = reply.content
        if len(self._secret) >= _KEY_LENGTH or reply.status_code >= _REFUSED:
            body = self._masked(body)
        return Exchange(reply.status_code, self._clean(reply.headers), body)

    def _request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str] | None
    ) -> httpx.Request:
        sent = self._http.headers.copy()
        sent.update(headers)
        request = httpx.Request(
            method,
            _url(self._base + path),
            headers=sent,
            stream=httpx.ByteStream(body or b""),  # given as `content` it costs twice as much
            extensions={"timeout": self._timeout},
        )
        request.read()
        return request

    def _masked(self, body: bytes) -> bytes:
        """A server may quote the key it was given; the reply goes into files and onto screens."""
        return self._quoted.sub(b"***", body) if self._secret else body

    def _clean(self, headers: httpx.Headers) -> httpx.Headers:
        if not self._secret or not any(self._secret in value for _, value in headers.raw):
            return headers
        return httpx.Headers([(name, self._masked(value)) for name, value in headers.raw])

    def _failure(self, error: BaseException) -> Failure:
        names, message = _chain(error)
        return Failure(names, self._masked(message.encode(errors="replace")).decode())


def ensure_descriptors(concurrency: int) -> None:
    """Raise the soft limit of open files to what is needed; UsageError where it can't be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = concurrency + _SPARE_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        possible = hard - _SPARE_DESCRIPTORS
        fewer = f"Use --concurrency {possible} or less, or raise" if possible > 0 else "Raise"
        raise UsageError(
            f"{concurrency} requests in flight need {needed} open files, this system allows {hard}",
            hint=f"{fewer} the limit (ulimit -Hn).",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _as_quoted(secret: bytes) -> re.Pattern[bytes]:
    """The secret as JSON may hold it: encoders differ in the characters that they escape."""
    forms = (
        re.escape(char) if char.isalnum() else _escaped(char)
        for char in (secret[place : place + 1] for place in range(len(secret)))
    )
    return re.compile(b"".join(forms))


def _escaped(char: bytes) -> bytes:
    number = f"{ord(char):04x}".encode()
    return b"(?:\\\\?" + re.escape(char) + b"|\\\\u(?i:" + number + b"))"


@lru_cache(maxsize=16)
def _url(address: str) -> httpx.URL:
    """An address parsed once: every request of a run goes to the same one."""
    return httpx.URL(address)


def _chain(error: BaseException) -> tuple[tuple[str, ...], str]:
    names: list[str] = []
    message = str(error)
    cause: BaseException | None = error
    while cause is not None and len(names) < _CAUSES:
        names.append(type(cause).__name__)
        message = message or str(cause)
        cause = cause.__cause__ or cause.__context__
    return tuple(names), message
