"""Profiles: votes, thresholds, drift, and the grades of hosts that distort in six ways."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from distorting_hosts import SIX, Host, rows
from hypothesis import given
from hypothesis import strategies as st
from kimi_cases import VARIANT, graded, ids, read, vocabulary

from engine.tokens.final import FinalGrades, final_grades
from engine.tokens.layouts import answer_of_row
from engine.tokens.profiles import Profile, ProfileTally
from engine.tokens.reader import TokenReader
from engine.tokens.readings import NO_EVIDENCE, Evidence

R, C = "I see.", "Two apples"
NATIVE = ids(f"{R}</think>{C}<|im_end|>")


def evidence(kind: str) -> Evidence:
    """What one row of each kind says."""
    count = len(NATIVE)
    return {
        "verbatim": read(C, R, count=count).evidence,
        "spaced": read(f" {C}", f" {R} ", count=count).evidence,
        "both": read(f" {C}", f" {R}", count=count).evidence,
        "trimmed": read(C, R, count=count + 1).evidence,
        "uncounted": read(C, R, count=count - 1).evidence,
        "nothing": read(C, R, count=count + 9).evidence,
        "unverified": read(C, R).evidence,
    }[kind]


def tally(**numbers: int) -> ProfileTally:
    result = ProfileTally()
    for kind, number in numbers.items():
        row = evidence(kind)
        for _ in range(number):
            result.fold(row)
    return result


def test_nothing_is_known_before_300_decisive_rows() -> None:
    assert tally(spaced=299).profile().name == ""
    assert tally(spaced=300).profile().name == "spaced"
    assert tally(verbatim=300).profile().name == "verbatim"
    assert tally(spaced=299, both=50, nothing=50, unverified=50).profile().name == ""


def test_99_of_100_must_agree() -> None:
    assert tally(spaced=297, verbatim=3).profile().reading == "spaced"
    assert tally(spaced=296, verbatim=4).profile().reading is None
    assert tally(verbatim=296, spaced=4).profile().reading is None


def test_one_trimmed_row_in_a_hundred_makes_a_trimmer() -> None:
    assert tally(verbatim=297, trimmed=3).profile().name == "trimmed"
    assert tally(verbatim=396, trimmed=3).profile().name == "verbatim"
    assert tally(verbatim=10, trimmed=1).profile().name == ""
    assert tally(verbatim=10, trimmed=2).profile().name == "trimmed"


def test_a_host_that_begins_to_trim_late_is_noticed() -> None:
    late = tally(verbatim=20_000, trimmed=12)
    assert late.profile().trims
    late.merge(tally(verbatim=1000))
    assert not late.profile().trims


def test_a_host_that_changes_its_reading_loses_its_profile() -> None:
    changed = tally(spaced=20_000, verbatim=11)
    assert changed.profile().reading is None


def test_whether_the_end_is_counted_is_learned() -> None:
    assert tally(verbatim=300).profile().counts_end
    few = tally(uncounted=299).profile()
    assert (few.counts_end, few.end_disputed) == (True, True)
    known = tally(uncounted=300).profile()
    assert (known.counts_end, known.end_disputed, known.name) == (False, False, "verbatim")
    assert not tally(verbatim=300, uncounted=3).profile().end_disputed
    assert tally(verbatim=300, uncounted=30).profile().end_disputed


def test_rows_that_fit_nothing_or_have_no_count_are_not_counted() -> None:
    assert evidence("unverified") == NO_EVIDENCE
    assert not tally(nothing=5, unverified=5).votes


KINDS = st.sampled_from(["verbatim", "spaced", "both", "trimmed", "uncounted", "nothing"])


@given(st.lists(KINDS, max_size=40), st.lists(KINDS, max_size=40))
def test_merged_tallies_equal_one_tally(first: list[str], second: list[str]) -> None:
    one, two, whole = ProfileTally(), ProfileTally(), ProfileTally()
    for kind in first:
        one.fold(evidence(kind))
    for kind in second:
        two.fold(evidence(kind))
    for kind in (*first, *second):
        whole.fold(evidence(kind))
    one.merge(two)
    assert one == whole


def test_an_established_profile_settles_what_a_count_cannot() -> None:
    spaced = tally(spaced=300).profile()
    verbatim = tally(verbatim=300).profile()
    count = len(NATIVE)
    assert graded(f" {C}", f" {R}", count=count).exactness == "ambiguous"
    assert graded(f" {C}", f" {R}", count=count, profile=spaced).ids == NATIVE
    kept = ids(f" {R}</think> {C}<|im_end|>")
    assert graded(f" {C}", f" {R}", count=count, profile=verbatim).ids == kept
    for profile in (spaced, verbatim):
        assert graded(f" {C}", f" {R}", count=count, profile=profile).exactness == "matched"


# six hosts

Grades = dict[str, Counter[str]]


def live(hosts: tuple[Host, ...], number: int, split_share: float) -> tuple[Grades, Grades]:
    """Grades at writing time, before and after the host was caught trimming."""
    reader = TokenReader(vocabulary())
    before: Grades = defaultdict(Counter)
    after: Grades = defaultdict(Counter)
    for row, truth in rows(hosts, number, split_share=split_share):
        provider = row["provider"]
        found = reader.completion(answer_of_row(row), provider=provider)
        part = after if reader.profile(provider).trims else before
        part[provider][found.exactness] += 1
        part[provider]["wrong"] += found.exactness == "matched" and found.ids != truth
    return before, after


def final(hosts: tuple[Host, ...], number: int, split_share: float) -> tuple[Grades, FinalGrades]:
    made = list(rows(hosts, number, split_share=split_share))
    grades = FinalGrades(vocabulary(), thinking=True, variant=VARIANT)
    grades.learn(row for row, _ in made)
    result: Grades = defaultdict(Counter)
    for (row, truth), (_, found) in zip(made, grades.grade(row for row, _ in made), strict=True):
        result[row["provider"]][found.exactness] += 1
        result[row["provider"]]["wrong"] += found.exactness == "matched" and found.ids != truth
    return result, grades


def test_six_hosts_sampling_canonically() -> None:
    before, after = live(SIX, 5000, 0.0)
    for name in ("verbatim", "spaced", "streamed", "inline", "uncounted"):
        assert before[name]["wrong"] == 0, name
        assert not after[name], name
    assert after["trimmed"]["wrong"] == 0
    assert before["trimmed"].total() - before["trimmed"]["wrong"] < 200  # caught within 200 rows
    result, grades = final(SIX, 5000, 0.0)
    assert {name: counts["wrong"] for name, counts in result.items()} == dict.fromkeys(result, 0)
    names = {str(name): profile.name for name, profile in grades.profiles().items()}
    assert names == {
        "verbatim": "verbatim",
        "spaced": "spaced",
        "streamed": "spaced",
        "trimmed": "trimmed",
        "inline": "verbatim",
        "uncounted": "verbatim",
    }
    for name in ("verbatim", "spaced", "streamed", "inline", "uncounted"):
        assert result[name]["matched"] >= 0.99 * result[name].total(), (name, result[name])


@pytest.mark.parametrize(
    "host",
    [
        Host("both", spaced=True, trims=True),
        Host("joined", inline=True, trims=True),
        Host("odd", spaced=True, inline=True, counts_end=False),
    ],
)
def test_hosts_that_distort_in_two_ways_are_never_matched_wrongly(host: Host) -> None:
    result, grades = final((host,), 1500, 0.0)
    assert result[host.name]["wrong"] == 0
    assert grades.profiles()[host.name].trims == host.trims


def test_split_tokens_are_not_taken_for_anothers_reading() -> None:
    result, grades = final(SIX, 5000, 0.005)
    wrong = sum(counts["wrong"] for counts in result.values())
    matched = sum(counts["matched"] for counts in result.values())
    # What counts cannot show: a split token beside a tag that was left out.
    assert wrong <= 0.001 * matched
    assert grades.profiles()["spaced"].name == "spaced"


def test_final_grades_know_what_the_first_rows_could_not() -> None:
    made = [row for row, _ in rows((SIX[2],), 900, split_share=0.0)]
    reader = TokenReader(vocabulary())
    first = [reader.completion(answer_of_row(row), provider="streamed") for row in made]
    last = [found for _, found in final_grades(lambda: made, vocabulary(), **SETTINGS)]
    assert sum(found.exactness == "ambiguous" for found in first) > 100
    assert all(found.exactness == "matched" for found in last)


SETTINGS: dict[str, Any] = {"thinking": True, "variant": VARIANT}


def test_a_drift_in_the_middle_of_a_run_is_graded_by_its_own_stretch() -> None:
    def made() -> list[dict[str, Any]]:
        early = [row for row, _ in rows((Host("x"),), 3000, split_share=0.0, habit=0.0)]
        trims = [row for row, _ in rows((Host("x", trims=True),), 1000, split_share=0.0)]
        late = [row for row, _ in rows((Host("x"),), 3000, split_share=0.0, habit=0.0)]
        return [*early, *trims, *late]

    grades = [found.exactness for _, found in final_grades(made, vocabulary(), **SETTINGS)]
    assert grades[:2000].count("matched") == 2000
    assert grades[3000:4000].count("ambiguous") > 300
    assert grades[-2000:].count("matched") == 2000


def test_ids_of_a_server_keep_their_grade() -> None:
    row = {"exactness": "engine", "completion_ids": [1, 2], "provider": None, "content": C}
    assert [found.ids for _, found in final_grades(lambda: [row], vocabulary(), **SETTINGS)] == [
        [1, 2]
    ]


@pytest.mark.parametrize("profile", [Profile(), Profile(reading="spaced")])
def test_grading_twice_gives_the_same(profile: Profile) -> None:
    for row, _ in rows(SIX, 60, split_share=0.1):
        one = graded(row["content"], row["reasoning"], count=9, profile=profile)
        two = graded(row["content"], row["reasoning"], count=9, profile=profile)
        assert one == two
