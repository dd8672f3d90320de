"""What went wrong with one attempt, as data: made from an error reply or from an exception."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.faults.classify import classify
from engine.faults.error_body import ErrorSigns, read_error, read_page
from engine.faults.families import FAMILIES, Family, Scope
from engine.faults.retry_hints import header
from engine.safe_text import label, safe_words
from engine.wire.usage import read_usage

__all__ = [
    "FAMILIES",
    "Family",
    "Fault",
    "Scope",
    "fault",
    "fault_of_error",
    "fault_of_exception",
    "fault_of_page",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """One attempt that gave no row. What is not said here is in its family's row of the table."""

    family: str
    message: str
    """The server's own words, on one line, harmless on a terminal, at most 500 characters."""
    status: int | None = None
    provider: str | None = None
    retry_after_s: float | None = None
    """What the server asked for; None where it named nothing (then see `wait_s`)."""
    generation_id: str | None = None
    cost: float | None = None
    """USD; 0 where surely nothing was billed, None where it is not known."""
    sent: bool = True
    """False only where surely nothing reached the server."""
    scope_override: Scope | None = None
    retry_override: bool | None = None
    tries_override: int | None = None

    @property
    def row(self) -> Family:
        """The family's row of the table."""
        return FAMILIES[self.family]

    @property
    def scope(self) -> Scope:
        """Whom this fault concerns."""
        return self.scope_override or self.row.scope

    @property
    def retry(self) -> bool:
        """Whether another attempt can help."""
        return self.row.retry if self.retry_override is None else self.retry_override

    @property
    def tries(self) -> int | None:
        """Attempts that one prompt may make in all; None: the manifest's `max_attempts`."""
        return self.row.tries if self.tries_override is None else self.tries_override

    @property
    def wait_s(self) -> float | None:
        """Seconds to wait: the server's wish, else the family's; None: back-off with jitter."""
        return self.row.wait_s if self.retry_after_s is None else self.retry_after_s

    @property
    def counts(self) -> bool:
        """Whether this is an error of the endpoint (a cancelled attempt is none)."""
        return self.row.counts

    @property
    def words(self) -> str:
        """What the family means."""
        return self.row.words

    @property
    def action(self) -> str:
        """What the operator can do; empty where there is nothing to do."""
        return self.row.action


def fault(
    family: str,
    message: str = "",
    *,
    status: int | None = None,
    provider: str | None = None,
    generation_id: str | None = None,
    cost: float | None = None,
) -> Fault:
    """A fault that we found ourselves (deadline, stall, cancel, a reply that is no answer)."""
    row = FAMILIES[family]
    return Fault(
        family,
        safe_words(message) or row.words,
        status=status,
        provider=provider,
        generation_id=generation_id,
        cost=cost if row.sent or cost is not None else 0.0,
        sent=row.sent,
    )


def fault_of_error(
    status: int,
    headers: Mapping[str, str],
    error: object,
    *,
    document: Mapping[str, Any] | None = None,
) -> Fault:
    """The fault that a parsed error body tells of.

    `error` is the whole body, or the error object alone when `document` is the reply it stood in
    (`choices[0].error`, a chunk of a stream). Inside a 2xx reply an error without a code is
    `error_in_200`; elsewhere what nobody knows is `unknown_code`, with its body in the message.
    """
    whole = document if document is not None else error if isinstance(error, dict) else {}
    return _judged(status, headers, read_error(error, headers), whole)


def fault_of_page(status: int, headers: Mapping[str, str], text: str) -> Fault:
    """The fault that an error reply tells of whose body is no JSON object (HTML, text, nothing)."""
    return _judged(status, headers, read_page(text, headers), {})


def _judged(
    status: int, headers: Mapping[str, str], signs: ErrorSigns, document: Mapping[str, Any]
) -> Fault:
    inside = 200 <= status < 300  # noqa: PLR2004 - HTTP's success codes
    ruling = classify(status, signs, "error_in_200" if inside else "unknown_code")
    message = signs.message or f"{FAMILIES[ruling.family].words} (no words from the server)"
    target = header(headers, "location")
    if ruling.family == "redirected" and target:
        message = safe_words(f"redirected to {target}")
    cost = read_usage(document).cost
    if cost is None and _refused(status):
        cost = 0.0
    return Fault(
        ruling.family,
        message,
        status=status,
        provider=signs.provider or label(document.get("provider"), 80),
        retry_after_s=signs.retry_after_s,
        generation_id=label(document.get("id")) or label(header(headers, "x-generation-id")),
        cost=cost,
        scope_override=ruling.scope,
        retry_override=ruling.retry,
        tries_override=ruling.tries,
    )


def _refused(status: int) -> bool:
    """Refused before any work was done: such a request is not billed.

    Not so the time-outs (408, 499, 504, 524), where the provider may have gone on, nor the 500s.
    """
    client = 300 <= status < 500  # noqa: PLR2004 - HTTP's redirects and refusals
    return (client and status not in {408, 499}) or status in {503, 529}


_OURS = {"CancelledError": "cancelled", "Deadline": "deadline", "Stalled": "stalled"}
"""Ended by ourselves. Only the outermost name says so: a CancelledError further in is how asyncio's
time-outs work."""
_BY_NAME: tuple[tuple[str, str], ...] = (
    ("ClientConnectorDNSError", "dns"),
    ("gaierror", "dns"),
    ("ClientConnectorCertificateError", "tls"),
    ("SSLCertVerificationError", "tls"),
    ("ServerFingerprintMismatch", "tls"),
    ("ClientProxyConnectionError", "proxy"),
    ("ClientHttpProxyError", "proxy"),
    ("InvalidURL", "bad_url"),
    ("InvalidUrlClientError", "bad_url"),
    ("NonHttpUrlClientError", "bad_url"),
    ("UnsupportedProtocol", "bad_url"),
    ("LocalProtocolError", "bad_url"),
    ("TooManyRedirects", "redirected"),
    ("ConnectionTimeoutError", "connect"),
    ("ClientConnectorSSLError", "connect"),
    ("ClientSSLError", "connect"),
    ("UnixClientConnectorError", "connect"),
    ("ClientConnectorError", "connect"),
    ("ConnectionRefusedError", "connect"),
    ("PoolTimeout", "connect"),
    ("ServerDisconnectedError", "disconnected"),
    ("ClientConnectionResetError", "disconnected"),
    ("SocketTimeoutError", "read_timeout"),
    ("ServerTimeoutError", "read_timeout"),
    ("ClientPayloadError", "read_error"),
    ("HttpProcessingError", "not_http"),
    ("ClientResponseError", "not_http"),
    ("ClientOSError", "disconnected"),
    ("ClientConnectionError", "disconnected"),
    # httpx's own names come last: its aiohttp transport gives them to other things (a reply that
    # never came is a ConnectTimeout), so they are believed only where no cause is known.
    ("ProxyError", "proxy"),
    ("ConnectError", "connect"),
    ("ReadTimeout", "read_timeout"),
    ("WriteTimeout", "disconnected"),
    ("ConnectTimeout", "disconnected"),
    ("ReadError", "read_error"),
    ("DecodingError", "read_error"),
    ("WriteError", "disconnected"),
    ("CloseError", "disconnected"),
    ("RemoteProtocolError", "disconnected"),
    ("ConnectionResetError", "disconnected"),
    ("BrokenPipeError", "disconnected"),
    ("TimeoutError", "deadline"),
)
"""Exception names, the surest first, and their family (facts/transport.md)."""


def fault_of_exception(names: Sequence[str], message: str) -> Fault:
    """The fault that an exception tells of.

    `names` are the class names of the exception and of its causes, outermost first, as in
    `("ConnectTimeout", "ServerDisconnectedError")`. What is not known is taken as sent: counting
    a request as unsent that was billed would pay for it twice unseen.
    """
    family = _OURS.get(names[0]) if names else None
    if family is None:
        present = set(names)
        family = next((family for name, family in _BY_NAME if name in present), "unexpected")
    words = safe_words(message)
    kind = names[-1] if names else "exception"
    return fault(family, f"{kind}: {words}" if words else kind)
