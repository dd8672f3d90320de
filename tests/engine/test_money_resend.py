"""What is remembered of requests that may be sent again: when they are repeated to the byte."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.faults.fault import Fault, fault
from engine.money.resend import SLOWEST, Traces, may_be_billed, resend_after_s
from engine.view.series import Quantiles

LOST = fault("disconnected", "hung up")
REFUSED = fault("rate_limit", "no room", status=429, provider="Novita", cost=0.0)


def asked(*ignore: str, caches: bool = True) -> Traces:
    """One request is on its way."""
    traces = Traces(caches=caches)
    traces.ask("A#0", ignore)
    return traces


@pytest.mark.parametrize(
    ("status", "cost", "sent", "expected"),
    [
        (None, None, True, True),
        (200, None, True, True),
        (None, None, False, False),
        (200, 0.01, True, False),
        (500, None, True, False),
        (429, 0.0, True, False),
    ],
)
def test_what_may_be_billed_unseen(
    status: int | None, cost: float | None, sent: bool, expected: bool
) -> None:
    assert may_be_billed(status, cost, sent=sent) is expected


def test_a_lost_request_is_repeated_with_the_hosts_it_left_out() -> None:
    traces = asked("novita", "atlas-cloud")
    assert not traces.repeats("A#0")
    traces.failed("A#0", LOST)
    assert traces.repeats("A#0")
    assert traces.ignore("A#0") == ("atlas-cloud", "novita")
    assert traces.unseen("A#0") == 1


def test_without_a_cache_nothing_is_repeated_but_counted() -> None:
    traces = asked(caches=False)
    traces.failed("A#0", LOST)
    assert not traces.repeats("A#0")
    assert traces.unseen("A#0") == 1


def test_a_host_that_answers_the_repeated_request_proves_that_the_cache_has_nothing() -> None:
    traces = asked()
    traces.failed("A#0", LOST)
    traces.failed("A#0", REFUSED)
    assert not traces.repeats("A#0")
    assert traces.unseen("A#0") == 1


@pytest.mark.parametrize(
    "between",
    [
        fault("connect", "refused"),
        fault("account_limit", "wait", status=429, cost=0.0),
        fault("edge_limit", "1015", status=403, cost=0.0),
        replace(fault("cancelled"), sent=False),
    ],
    ids=lambda each: each.family,
)
def test_a_refusal_before_the_cache_was_asked_changes_nothing(between: Fault) -> None:
    traces = asked("novita")
    traces.failed("A#0", LOST)
    traces.failed("A#0", between)
    assert traces.repeats("A#0")
    assert traces.ignore("A#0") == ("novita",)


def test_a_bad_reply_is_forgotten_by_the_cache_once_and_never_repeated() -> None:
    traces = asked()
    traces.spoilt("A#0")
    traces.failed("A#0", fault("finish_error", status=200))
    assert not traces.repeats("A#0")
    assert traces.unseen("A#0") == 1
    assert traces.clears("A#0")
    assert not traces.clears("A#0"), "what this request brings is not forgotten"


def test_what_has_its_row_is_forgotten() -> None:
    traces = asked()
    traces.failed("A#0", LOST)
    traces.settle("A#0")
    assert (traces.repeats("A#0"), traces.unseen("A#0"), traces.ignore("A#0")) == (False, 0, ())


def test_an_earlier_sessions_requests_are_repeated_as_they_were() -> None:
    traces = Traces(caches=True)
    traces.restore("A#0", ["novita"], 2)
    assert traces.repeats("A#0")
    assert traces.ignore("A#0") == ("novita",)
    assert traces.unseen("A#0") == 2


def test_a_resend_waits_for_the_slowest_reply_known_and_never_beyond_the_deadline() -> None:
    few, many, none = Quantiles(), Quantiles(), Quantiles()
    for seconds in range(1, 20):
        few.add(seconds)
    for seconds in range(1, 61):
        many.add(seconds)
    assert resend_after_s(1800, none, none) == 1800
    assert resend_after_s(1800, few, few) == 1800
    assert resend_after_s(1800, many, many) == pytest.approx(SLOWEST * 60, rel=0.03)
    assert resend_after_s(90, many, many) == 90
    assert resend_after_s(1800, many, none) == 1800, "hits of the cache come at once"
