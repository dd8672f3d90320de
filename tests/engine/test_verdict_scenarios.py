"""The scenario table of issue 3: what the person at the screen is told in each."""

from __future__ import annotations

from random import Random

import pytest
from verdict_case import Case, at

PROVIDERS = ("siliconflow", "novita", "venice")


def story_burst(case: Case, failures: int, start: str, end: str) -> list[int]:
    """`failures` prompts refused once each, evenly, while replies go on at 5 a second."""
    case.calm(start)
    hit: list[int] = []
    length = at(end) - at(start)

    def second(index: int) -> None:
        due = failures if index + 1 >= length else int((index + 1) * failures / length)
        while len(hit) < due:
            hit.append(case.bad())
        for _ in range(5):
            case.ok()

    case.play(end, second)
    return hit


def heal(case: Case, prompts: list[int], provider: str = "siliconflow") -> None:
    for prompt in prompts:
        case.ok(prompt, provider)


def test_the_story_958_and_stuck() -> None:
    case = Case()
    hit = story_burst(case, 958, "14:02:00", "14:09:00")
    assert case.line().verdict == "ACTIVE"
    case.now = at("14:09:30")
    heal(case, hit[:951])
    case.calm("14:12:59")
    line = case.line()
    assert line.verdict == "RESOLVED"
    assert line.count == 958
    assert line.trend == ""
    assert line.action == ""
    assert line.evidence == (
        "958 x rate_limit from siliconflow between 14:02 and 14:08, none for 4 min; "
        "951 of these prompts have succeeded since, 7 wait"
    )
    assert case.verdicts() == ["ACTIVE", "RESOLVED"]


def test_the_story_returned_958_then_976_and_stuck_again() -> None:
    case = Case()
    first = story_burst(case, 958, "14:02:00", "14:09:00")
    case.now = at("14:09:30")
    heal(case, first)
    second = story_burst(case, 18, "14:15:00", "14:16:00")
    line = case.line()
    assert line.verdict == "ACTIVE"
    assert "returned after 6 min of quiet: 958, then 18 more since 14:15:03" in line.evidence
    heal(case, second[:15])
    case.calm("14:20:00")
    line = case.line()
    assert line.verdict == "RESOLVED"
    assert line.count == 976
    assert line.evidence == (
        "976 x rate_limit from siliconflow in 2 bursts: 958 between 14:02 and 14:08, then "
        "18 between 14:15:03 and 14:15:59, none for 4 min; "
        "973 of these prompts have succeeded since, 3 wait"
    )
    assert case.verdicts() == ["ACTIVE", "RESOLVED", "ACTIVE", "RESOLVED"]


def test_burst_then_quiet_is_resolved_within_a_minute() -> None:
    case = Case()
    hit = story_burst(case, 200, "14:00:30", "14:01:00")
    heal(case, hit)
    case.calm("14:01:28")
    assert case.line().verdict == "ACTIVE"
    case.calm("14:01:45")
    line = case.line()
    assert line.verdict == "RESOLVED"
    assert "all 200 prompts have succeeded since" in line.evidence
    assert "between 14:00:30 and 14:00:59" in line.evidence


def test_no_attempts_after_a_burst_are_no_evidence() -> None:
    case = Case()
    story_burst(case, 300, "14:02:00", "14:03:00")
    case.idle("14:20:00")
    line = case.line()
    assert line.verdict == "ACTIVE"
    assert line.evidence.endswith("none for 17 min, but nothing started since then has succeeded")


@pytest.mark.parametrize(("count", "said"), [(1, "1 attempt since;"), (3, "3 attempts since;")])
def test_a_few_attempts_after_a_burst_are_too_few(count: int, said: str) -> None:
    case = Case()
    story_burst(case, 300, "14:02:00", "14:03:00")
    for _ in range(count):
        case.ok()
    case.idle("14:08:00")
    line = case.line()
    assert line.verdict == "ACTIVE"
    assert f"none for 5 min, but only {said}" in line.evidence


def test_replies_that_were_on_their_way_before_the_burst_are_no_evidence() -> None:
    """Paused in a burst: hundreds of long replies still come in, all started before."""
    case = Case()
    story_burst(case, 300, "14:02:00", "14:03:00")
    started = case.now - 90.0

    def second(_index: int) -> None:
        for _ in range(5):
            case.book.attempt_succeeded(case.now, case.fresh(), "siliconflow", started_at=started)

    case.play("14:05:00", second)
    line = case.line()
    assert line.verdict == "ACTIVE"
    assert line.evidence.endswith("none for 2 min, but nothing started since then has succeeded")


def test_a_burst_whose_prompts_have_not_come_back_is_not_over() -> None:
    case = Case()
    story_burst(case, 300, "14:02:00", "14:03:00")
    case.calm("14:06:00")
    line = case.line()
    assert line.verdict == "ACTIVE"
    assert "none of its 300 prompts has succeeded since" in line.evidence


def test_a_provider_that_was_not_tried_again_is_said_to_be_untried() -> None:
    case = Case()
    hit = story_burst(case, 300, "14:02:00", "14:03:00")
    heal(case, hit, "novita")
    case.calm("14:06:00", provider="novita")
    line = case.line()
    assert line.verdict == "RESOLVED"
    assert line.evidence.endswith("; siliconflow itself has answered nothing since")


@pytest.mark.parametrize(("per_s", "every"), [(20, 100), (1, 100), (10, 1000)])
def test_a_slow_leak_stays_active(per_s: int, every: int) -> None:
    case = Case()
    attempts = 0

    def second(_index: int) -> None:
        nonlocal attempts
        for _ in range(per_s):
            attempts += 1
            if attempts % every == every // 2:
                case.ok(case.bad(family="bad_gateway"))
            else:
                case.ok()

    case.play("15:30:00", second)
    line = case.line("bad_gateway")
    assert line.verdict == "ACTIVE"
    assert "RESOLVED" not in case.verdicts("bad_gateway")[3:], "it flaps no longer than it must"
    assert "returned" not in line.evidence
    assert "bursts" not in line.evidence


def test_a_growing_fault_is_rising() -> None:
    case = Case()
    rng = Random(3)

    def second(index: int) -> None:
        for _ in range(20):
            if rng.random() < 0.01 * 2 ** (index / 60):
                case.bad(family="server_error")
            else:
                case.ok()

    case.play("14:05:00", second)
    line = case.line("server_error")
    assert line.verdict == "ACTIVE"
    assert line.trend == "rising"
    assert line.evidence.endswith(", rising")
    assert "in 100)" in line.evidence


def test_a_fading_fault_is_falling_and_a_constant_one_steady() -> None:
    for growth, expected in ((0.5, "falling"), (1.0, "steady")):
        case = Case()
        rng = Random(4)

        def second(
            index: int, growth: float = growth, case: Case = case, rng: Random = rng
        ) -> None:
            for _ in range(20):
                if rng.random() < 0.3 * growth ** (index / 60):
                    case.bad()
                else:
                    case.ok()

        case.play("14:03:00", second)
        assert case.line().trend == expected


def test_one_bad_provider_among_three_is_structural_and_the_others_are_clean() -> None:
    case = Case()

    def second(_index: int) -> None:
        for step in range(9):
            provider = PROVIDERS[step % 3]
            if provider == "siliconflow" and case.now > at("14:01:00"):
                case.ok(case.bad(family="empty_reply"), "novita")
            else:
                case.ok(provider=provider)

    case.play("14:04:00", second)
    line = case.line("empty_reply")
    assert line.verdict == "ACTIVE"
    assert line.evidence.endswith("; 537 of siliconflow's own 537 failed")
    case.play("14:08:00", second)
    line = case.line("empty_reply")
    assert line.verdict == "STRUCTURAL"
    assert "of siliconflow's" in line.evidence
    assert "succeeded since, elsewhere" in line.evidence
    assert line.action == "Exclude this provider, or route around it."
    assert len(case.look()) == 1


def test_a_dead_provider_that_is_only_probed_stays_structural_between_probes() -> None:
    case = Case()

    def second(index: int) -> None:
        case.ok(provider="novita")
        if index < 60 or index % 300 == 0:
            case.ok(case.bad(family="bad_gateway"), "novita")

    case.play("14:40:00", second)
    line = case.line("bad_gateway")
    assert line.verdict == "STRUCTURAL"
    case.ok(provider="siliconflow")
    for _ in range(20):
        case.ok(provider="siliconflow")
    case.calm("14:42:00")
    assert case.line("bad_gateway").verdict == "RESOLVED"


def test_a_bad_dataset_is_structural_with_its_share() -> None:
    case = Case()

    def second(_index: int) -> None:
        for _ in range(4):
            prompt = case.bad(family="bad_request", provider=None, scope="prompt", retry=False)
            case.give_up(prompt, "bad_request")

    case.play("14:01:00", second)
    line = case.line("bad_request", None)
    assert line.verdict == "STRUCTURAL"
    assert line.evidence == (
        "all 240 prompts tried were refused alike, with bad_request, between 14:00:00 and 14:00:59"
    )
    assert line.action


def test_single_refused_prompts_are_structural_but_concern_only_themselves() -> None:
    case = Case()
    case.calm("14:01:00")
    for _ in range(3):
        case.give_up(case.bad(family="moderation", scope="prompt", retry=False), "moderation")
    case.calm("14:05:00")
    line = case.line("moderation")
    assert line.verdict == "STRUCTURAL"
    assert line.evidence.startswith("3 prompts were refused for what they are (moderation) at")
    assert "while 6,000 attempts succeeded" in line.evidence


def test_all_prompts_fail_alike_and_no_retry_helps() -> None:
    case = Case()
    prompts = [case.fresh() for _ in range(60)]

    def second(index: int) -> None:
        for prompt in prompts[index % 6 :: 6]:
            case.bad(prompt, family="no_choices")
        if index == 47:
            for prompt in prompts:
                case.give_up(prompt, "no_choices")

    case.play("14:00:48", second)
    line = case.line("no_choices")
    assert line.verdict == "STRUCTURAL"
    assert line.evidence == (
        "nothing gets through since 14:00:00: all 480 attempts failed, 480 with no_choices, "
        "on 60 prompts, 60 given up; no retry helped"
    )
    assert line.action


def test_an_opening_burst_is_not_taken_for_a_dead_endpoint() -> None:
    case = Case()

    def second(_index: int) -> None:
        for _ in range(10):
            case.bad()

    case.play("14:01:30", second)
    assert case.line().verdict == "ACTIVE"


def test_nothing_but_429_for_minutes_is_a_dead_route() -> None:
    case = Case()

    def second(_index: int) -> None:
        case.bad()

    case.play("14:06:00", second)
    line = case.line()
    assert line.verdict == "STRUCTURAL"
    assert line.evidence.startswith("nothing gets through since 14:00")
    case.calm("14:06:10")
    assert case.line().verdict == "ACTIVE"


def test_a_refused_key_is_structural_at_once() -> None:
    case = Case()
    case.calm("14:01:00")
    case.bad(family="auth", provider=None, scope="run", retry=False)
    line = case.line("auth", None)
    assert line.verdict == "STRUCTURAL"
    assert line.evidence == "1 x auth, the last at 14:01:00; none has succeeded since"
    assert "key" in line.action.lower()


def test_errors_only_in_the_tail_hit_the_same_prompts_again_and_again() -> None:
    case = Case()
    case.calm("14:05:00")
    long_ones = [case.fresh() for _ in range(5)]

    def second(index: int) -> None:
        case.ok()
        if index % 30 == 29:
            for prompt in long_ones:
                case.bad(prompt, family="deadline", scope="attempt")

    case.play("14:06:30", second)
    assert case.line("deadline").verdict == "ACTIVE"
    for prompt in long_ones:
        case.give_up(prompt, "deadline")
    line = case.line("deadline")
    assert line.verdict == "STRUCTURAL"
    assert line.evidence == (
        "15 x deadline from siliconflow between 14:05:29 and 14:06:29: 5 prompts failed alike "
        "on every attempt and no retry helped, while 60 others succeeded"
    )


def test_two_families_are_judged_apart_and_the_worst_comes_first() -> None:
    case = Case()
    hit = story_burst(case, 100, "14:01:00", "14:01:30")
    heal(case, hit)
    rng = Random(5)

    def second(_index: int) -> None:
        for _ in range(20):
            if rng.random() < 0.2:
                case.bad(family="bad_gateway", provider="novita")
            else:
                case.ok()

    case.play("14:04:00", second)
    assert [(line.family, line.verdict) for line in case.look()] == [
        ("bad_gateway", "ACTIVE"),
        ("rate_limit", "RESOLVED"),
    ]


def test_given_up_prompts_of_a_passed_burst_are_named() -> None:
    case = Case()
    hit = story_burst(case, 100, "14:01:00", "14:03:30")
    heal(case, hit[:90])
    for prompt in hit[90:94]:
        case.give_up(prompt)
    case.calm("14:06:00")
    line = case.line()
    assert line.verdict == "RESOLVED"
    assert line.evidence.endswith("90 of these prompts have succeeded since, 6 wait, 4 given up")


def test_a_dataset_that_ends_with_all_prompts_done_has_no_open_burst() -> None:
    case = Case()
    hit = story_burst(case, 8, "14:01:00", "14:01:30")
    heal(case, hit)
    case.idle("14:10:00")
    assert case.line().verdict == "ACTIVE", "too little was tried since"
    case.book.finish()
    case.idle("14:30:00")
    line = case.line()
    assert line.verdict == "RESOLVED"
    assert line.evidence.endswith("; the dataset has ended")
    case.book.resume()
    assert case.line().verdict == "ACTIVE", "it may fail again"


def test_changes_are_sentences_for_the_journal() -> None:
    case = Case()
    hit = story_burst(case, 100, "14:01:00", "14:01:30")
    heal(case, hit)
    case.calm("14:04:00")
    first, second = case.seen
    assert (first.old, first.new) == (None, "ACTIVE")
    assert (second.old, second.new) == ("ACTIVE", "RESOLVED")
    assert str(second).startswith("rate_limit from siliconflow is RESOLVED, was ACTIVE: 100 x")
    assert case.book.changes() == []
