"""Every error shape and transport failure gets its family; the table keeps its promises."""

from __future__ import annotations

import json
import re

import pytest
from error_cases import ALL, POOL, ErrorCase, openrouter
from hypothesis import given
from hypothesis import strategies as st

from engine.faults.fault import (
    FAMILIES,
    Family,
    Fault,
    Scope,
    fault,
    fault_of_error,
    fault_of_exception,
    fault_of_page,
)
from engine.faults.retry_hints import retry_after_s
from engine.safe_text import safe_words
from engine.wire.reply import Expectation, parse_reply

EXPECT = Expectation("moonshotai/kimi-k2.5")


def judge(case: ErrorCase) -> Fault:
    raw = case.body if isinstance(case.body, str) else json.dumps(case.body)
    found = parse_reply(case.status, case.headers, raw.encode(), EXPECT)
    assert isinstance(found, Fault)
    return found


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_error_replies_get_their_family(case: ErrorCase) -> None:
    found = judge(case)
    assert found.family == case.family, found
    assert found.status == case.status
    assert found.sent
    if case.scope is not None:
        assert found.scope == case.scope
    if case.retry is not None:
        assert found.retry is case.retry
    if case.wait_s is not None:
        assert found.wait_s == pytest.approx(case.wait_s)
    if case.provider is not None:
        assert found.provider == case.provider
    assert case.says in found.message
    assert found.message


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_error_objects_are_read_like_whole_bodies(case: ErrorCase) -> None:
    if isinstance(case.body, str):
        alone = fault_of_page(case.status, case.headers, case.body)
    else:
        inner = case.body.get("error", case.body)
        alone = fault_of_error(case.status, case.headers, inner)
    whole = judge(case)
    assert (alone.family, alone.scope, alone.retry) == (whole.family, whole.scope, whole.retry)
    assert (alone.message, alone.retry_after_s) == (whole.message, whole.retry_after_s)


@pytest.mark.parametrize(
    ("names", "family", "sent"),
    [
        (("ConnectTimeout", "ServerDisconnectedError"), "disconnected", True),
        (("ConnectTimeout", "ClientConnectorError"), "connect", False),
        (("ConnectTimeout", "ClientConnectorError", "ConnectionRefusedError"), "connect", False),
        (("ConnectTimeout", "ClientConnectorDNSError", "gaierror"), "dns", False),
        (("ConnectTimeout", "ConnectionTimeoutError"), "connect", False),
        (
            ("ConnectTimeout", "ConnectionTimeoutError", "TimeoutError", "CancelledError"),
            "connect",
            False,
        ),
        (("ReadTimeout", "SocketTimeoutError"), "read_timeout", True),
        (("ReadTimeout", "SocketTimeoutError", "CancelledError"), "read_timeout", True),
        (("ReadError", "ClientPayloadError"), "read_error", True),
        (("ReadError", "ClientPayloadError", "TransferEncodingError"), "read_error", True),
        (("ClientResponseError", "HttpProcessingError", "BadStatusLine"), "not_http", True),
        (("DecodingError", "error"), "read_error", True),
        (("ConnectTimeout", "ClientOSError", "ConnectionResetError"), "disconnected", True),
        (("ConnectTimeout", "ClientConnectorCertificateError"), "tls", False),
        (("ProxyError", "ClientProxyConnectionError"), "proxy", False),
        (("UnsupportedProtocol", "NonHttpUrlClientError"), "bad_url", False),
        (("ConnectTimeout",), "disconnected", True),
        (("ConnectError",), "connect", False),
        (("PoolTimeout",), "connect", False),
        (("RemoteProtocolError",), "disconnected", True),
        (("TimeoutError", "CancelledError"), "deadline", True),
        (("Deadline",), "deadline", True),
        (("Stalled",), "stalled", True),
        (("CancelledError",), "cancelled", True),
        (("SomethingNew",), "unexpected", True),
        ((), "unexpected", True),
    ],
)
def test_transport_failures_say_whether_it_was_sent(
    names: tuple[str, ...], family: str, sent: bool
) -> None:
    found = fault_of_exception(names, "words")
    assert (found.family, found.sent) == (family, sent)
    assert found.cost == (None if sent else 0.0)


def test_only_cancelled_and_our_own_are_no_errors_of_the_endpoint() -> None:
    silent = {name for name, family in FAMILIES.items() if not family.counts}
    assert silent == {"cancelled", "cut", "unknown", "invalid_row"}


@pytest.mark.parametrize("row", FAMILIES.values(), ids=lambda row: row.name)
def test_the_table_keeps_its_promises(row: Family) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", row.name)
    assert row.words.endswith(".")
    assert len(row.words) <= 80
    assert row.tries is None or row.tries >= 1
    if row.scope is Scope.RUN:
        assert not row.retry
        assert row.action.endswith(".")
    if row.scope is Scope.PROMPT:
        assert not row.retry
    if not row.retry:
        assert row.tries == 1


def test_a_transient_402_is_not_the_terminal_one() -> None:
    transient = fault_of_error(
        402, {}, openrouter(402, "x", limit_source="openrouter_in_flight_budget")
    )
    terminal = fault_of_error(402, {}, openrouter(402, "x", limit_source="openrouter_credits"))
    assert (transient.scope, transient.retry) == (Scope.ACCOUNT, True)
    assert (terminal.scope, terminal.retry) == (Scope.RUN, False)
    assert "Top up" in terminal.action


def test_a_providers_400_has_two_tries_in_all() -> None:
    found = fault_of_error(400, {}, openrouter(400, "Provider returned error"))
    assert found.tries == 2
    assert fault_of_error(400, {}, openrouter(400, "no")).tries == 1


@pytest.mark.parametrize(
    ("status", "cost"),
    [
        (400, 0.0),
        (402, 0.0),
        (429, 0.0),
        (503, 0.0),
        (529, 0.0),
        (408, None),
        (500, None),
        (502, None),
        (504, None),
        (524, None),
    ],
)
def test_what_was_refused_cost_nothing_and_what_timed_out_may_have(
    status: int, cost: float | None
) -> None:
    assert fault_of_error(status, {}, openrouter(status, "x")).cost == cost


def test_a_redirect_says_where_to() -> None:
    found = fault_of_page(308, {"Location": "https://openrouter.ai/api/v1/chat"}, "")
    assert found.message == "redirected to https://openrouter.ai/api/v1/chat"


def test_ids_and_costs_are_kept_with_the_fault() -> None:
    body = {"id": "gen-7", "provider": "Novita", "usage": {"cost": 0.25}, "error": {"message": "x"}}
    found = fault_of_error(200, {}, body)
    assert (found.generation_id, found.provider, found.cost) == ("gen-7", "Novita", 0.25)
    from_header = fault_of_error(429, {"X-Generation-Id": "gen-8"}, openrouter(429, "x", **POOL))
    assert from_header.generation_id == "gen-8"


def test_faults_of_our_own_carry_the_tables_words() -> None:
    assert fault("stalled").message == FAMILIES["stalled"].words
    assert fault("dns").cost == 0.0
    assert fault("deadline").cost is None


@given(st.text(max_size=3000), st.integers(10, 500))
def test_words_from_outside_are_one_harmless_line(text: str, limit: int) -> None:
    words = safe_words(text, limit)
    assert words.isprintable()
    assert len(words) <= limit
    words.encode()


@pytest.mark.parametrize(
    "secret",
    ["sk-or-v1-0123456789abcdef", "Bearer abcdef.123456", "bearer  zzzzzzzzz", "key-a1b2c3d4"],
)
def test_keys_in_a_servers_words_are_masked(secret: str) -> None:
    found = fault_of_error(401, {}, openrouter(401, f"Incorrect API key provided: {secret}."))
    assert secret.rpartition(" ")[2][4:] not in found.message
    assert "***" in found.message


def test_escapes_in_a_servers_words_are_harmless() -> None:
    found = fault_of_error(400, {}, openrouter(400, "a\x1b[2Jb\u202ec\nd"))
    assert found.message == "a\ufffd[2Jb\ufffdc d"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "error",
                        "message",
                        "code",
                        "metadata",
                        "type",
                        "headers",
                        "raw",
                        "availability",
                        "retry_after_seconds",
                        "provider_name",
                        "Retry-After",
                        "reasons",
                        "detail",
                        "id",
                    ]
                ),
                inner,
                max_size=5,
            )
        ),
        max_leaves=12,
    ),
    st.integers(100, 599),
)
def test_no_error_body_whatever_breaks_the_reading(body: object, status: int) -> None:
    found = fault_of_error(status, {}, body)
    assert found.family in FAMILIES
    assert found.message.isprintable()
    assert len(found.message) <= 500
    assert found.retry_after_s is None or 0 <= found.retry_after_s <= 7 * 86400


@pytest.mark.parametrize(
    ("headers", "metadata", "availability", "seconds"),
    [
        ({"retry-after": "5"}, {"retry_after_seconds": 9}, {"retry_after": 3}, 5.0),
        ({}, {"retry_after_seconds": 9, "headers": {"Retry-After": "4"}}, {}, 9.0),
        ({}, {"headers": {"retry-AFTER": 4}}, {"retry_after": 3}, 4.0),
        ({}, {}, {"retry_after": "3.5"}, 3.5),
        ({"retry-after-ms": "1500"}, {}, {}, 1.5),
        ({"retry-after": "-3"}, {}, {}, None),
        ({"retry-after": "1e99"}, {}, {}, None),
        ({"retry-after": "soon"}, {}, {"retry_after": True}, None),
        ({"retry-after": "Mon, 30 Nov 2026 13:00:30 GMT"}, {}, {}, None),  # without a Date: unknown
        ({"x-ratelimit-reset": "30", "date": "Mon, 30 Nov 2026 13:00:00 GMT"}, {}, {}, None),
        ({}, {"headers": []}, {}, None),
    ],
)
def test_retry_hints_have_an_order_and_bounds(
    headers: dict[str, str],
    metadata: dict[str, object],
    availability: dict[str, object],
    seconds: float | None,
) -> None:
    assert retry_after_s(headers, metadata, availability) == seconds
