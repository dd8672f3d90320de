"""The verdict's bookkeeping: counts that add up, bounded memory, the rate and the rings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from verdict_case import START, Case, clock_text

from engine.verdicts import verdict
from engine.verdicts.burst import Bins, Burst, Mark
from engine.verdicts.evidence import duration
from engine.verdicts.judgement import QUIET_ATTEMPTS, needed, trend
from engine.verdicts.verdict import VerdictBook


def test_bins_count_what_lies_in_the_window_and_forget_the_rest() -> None:
    bins = Bins(5.0, 4)
    for at in (2, 7, 8, 12, 13, 14, 19):
        bins.add(at)
    assert bins.between(0, 19) == 6
    assert bins.between(5, 14) == 3
    bins.add(21)
    assert not bins.reaches_back_to(4)
    assert bins.reaches_back_to(5)
    bins.add(1)
    bins.add(11)
    assert bins.between(9, 30) == 6
    bins.add(500)
    assert bins.between(0, 1000) == 1


@given(st.lists(st.floats(min_value=0, max_value=300), max_size=60))
def test_bins_never_count_an_event_twice(times: list[float]) -> None:
    bins = Bins(5.0, 100)
    for at in sorted(times):
        bins.add(at)
    assert bins.between(-1.0, 300.0) == len(times)


def test_the_rate_is_of_attempts_and_has_a_window() -> None:
    case = Case()
    for _ in range(30):
        case.bad()
    case.calm("14:01:00", per_s=2)
    rate = case.book.rate(case.now)
    assert (rate.failed, rate.total) == (30, 150)
    assert (rate.recent_failed, rate.recent_total, rate.recent_s) == (30, 150, 300.0)
    case.calm("14:10:00", per_s=2)
    rate = case.book.rate(case.now)
    assert (rate.failed, rate.total) == (30, 1230)
    assert rate.recent_failed == 0
    assert rate.recent_total == pytest.approx(600, abs=10)


def test_an_empty_book_has_no_lines() -> None:
    book = VerdictBook(clock_text)
    assert book.lines(START) == ()
    assert book.changes() == []
    assert book.rate(START).total == 0


@pytest.mark.parametrize(
    ("failures", "attempts", "expected"),
    [(1, 1, QUIET_ATTEMPTS), (50, 100, QUIET_ATTEMPTS), (10, 100, 44), (10, 1000, 459)],
)
def test_the_rarer_a_failure_the_longer_the_silence_needed(
    failures: int, attempts: int, expected: int
) -> None:
    after = Mark(ok=attempts - failures, failed=failures)
    assert needed(Burst(0.0, 0.0, Mark(), after, 0, 0, failures)) == expected


def test_a_trend_needs_more_than_chance() -> None:
    assert trend(10, 100, 9, 100) == "steady"
    assert trend(30, 100, 9, 100) == "rising"
    assert trend(2, 100, 20, 100) == "falling"
    assert trend(3, 5, 0, 100) == ""
    assert trend(0, 100, 0, 100) == "steady"


def test_durations_read_as_people_say_them() -> None:
    assert [duration(value) for value in (4.2, 119, 240, 7199, 10_800)] == [
        "4 s",
        "119 s",
        "4 min",
        "120 min",
        "3 h",
    ]


def test_beyond_the_cap_prompts_are_lower_bounds_and_said_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verdict, "MOST_WAITING", 50)
    case = Case()
    hit = [case.bad() for _ in range(80)]
    for prompt in hit[:40]:
        case.ok(prompt)
    case.calm("14:02:00")
    line = case.line()
    assert line.count == 80
    assert "at least 40 of these prompts have succeeded since, 10 wait" in line.evidence


def test_an_endless_number_of_provider_names_stays_bounded() -> None:
    case = Case()
    for number in range(1000):
        case.bad(provider=f"host-{number}")
        case.ok(provider=f"mirror-{number}")
    lines = case.look()
    assert len(lines) <= verdict.MOST_TRACKS + 1
    assert sum(line.count for line in lines) == 1000
    assert any(line.provider == "others" for line in lines)


def test_a_prompt_hit_by_two_families_heals_in_both() -> None:
    case = Case()
    prompt = case.bad()
    case.bad(prompt)
    case.bad(prompt, family="bad_gateway")
    case.ok(prompt)
    case.calm("14:02:00")
    for family in ("rate_limit", "bad_gateway"):
        assert "its prompt has succeeded since" in case.line(family).evidence


def test_actions_come_from_the_family_table_unless_given() -> None:
    case = Case()
    case.bad(family="in_flight_budget", provider=None, scope="account")
    assert case.line("in_flight_budget", None).action == "Top up, lower max_tokens, or throttle."
    own = Case(book=VerdictBook(clock_text, {"rate_limit": "Wait."}))
    own.bad()
    assert own.line().action == "Wait."


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ok", "rate_limit", "bad_request", "auth", "give_up", "look"]),
            st.integers(min_value=1, max_value=12),
            st.sampled_from(["siliconflow", "novita", None]),
            st.floats(min_value=0, max_value=200),
        ),
        max_size=150,
    )
)
def test_any_history_gives_one_line_a_family_and_counts_that_add_up(
    events: list[tuple[str, int, str | None, float]],
) -> None:
    scopes = {"rate_limit": "provider", "bad_request": "prompt", "auth": "run"}
    case = Case()
    failed = 0
    for kind, prompt, provider, wait in events:
        case.now += wait
        if kind == "ok":
            case.ok(prompt, provider)
        elif kind == "give_up":
            case.give_up(prompt)
        elif kind == "look":
            case.look()
        else:
            failed += 1
            retry = kind == "rate_limit"
            case.bad(prompt, family=kind, provider=provider, scope=scopes[kind], retry=retry)
    lines = case.look()
    assert sum(line.count for line in lines) == failed == case.book.rate(case.now).failed
    assert len({(line.family, line.provider) for line in lines}) == len(lines)
    for line in lines:
        assert line.verdict in {"ACTIVE", "RESOLVED", "STRUCTURAL"}
        assert line.evidence
        assert "\n" not in line.evidence
        assert 0 <= line.recent <= line.count
        assert line.first_at <= line.last_at
    for track in case.book._tracks.values():
        assert 0 <= track.waiting <= track.prompts
    assert [change.new for change in case.seen[-1:]] in (
        [],
        ["ACTIVE"],
        ["RESOLVED"],
        ["STRUCTURAL"],
    )
