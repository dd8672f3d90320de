"""What the screen is drawn from: charts, bars, lines, and the share-out of the space."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from detailed_run import detailed
from hypothesis import given
from hypothesis import strategies as st
from scripted_run import SCENES, dataset, disk_full, many, paused_run, stalled

from engine import format as fmt
from engine.clock import local_hms
from engine.view.snapshot import DatasetView, ErrorLine, Forecast, Latency, Series, Snapshot
from tui.draw import chart, detail, lists, rows, words
from tui.draw.alarm import alarm_line, alarms, calm
from tui.draw.dataset import rows_line, state_line, tokens_line
from tui.draw.header import header
from tui.draw.paint import Field, Span, arrange, exactly, field, line_width, plain, wrap
from tui.draw.pane import pane
from tui.draw.plan import heights, plan
from tui.draw.table import Column, table
from tui.headless import closing_line
from tui.picture import NOW, story

# charts


def test_a_chart_stands_on_zero_and_tells_zero_from_a_pause() -> None:
    shown = chart.columns(Series(0.0, 60.0, (0.0, 2.0, None, 8.0)), 4)
    assert chart.chart(shown, 4) == ["_▂╌█"]
    assert shown.maximum == 8.0


def test_a_chart_grows_from_the_right() -> None:
    assert chart.chart(chart.columns(Series(0.0, 60.0, (1.0,)), 5), 5) == ["    █"]
    assert chart.chart(chart.columns(Series(0.0, 60.0), 5), 5) == ["     "]


def test_columns_are_means_so_that_dips_stay() -> None:
    shown = chart.columns(Series(0.0, 60.0, (9.0, 1.0, 9.0, 9.0, None, 4.0, None, None)), 4)
    assert shown.values == [5.0, 9.0, 4.0, None]


def test_at_least_five_minutes_are_shown_where_there_are_as_many() -> None:
    shown = chart.columns(Series(0.0, 1.0, tuple(float(n) for n in range(600))), 60)
    assert shown.seconds == 5.0
    assert shown.span == 300.0
    assert shown.values[-1] == pytest.approx(597.0)


def test_a_column_keeps_its_value_while_time_goes_on() -> None:
    values = tuple(float(n % 7) for n in range(400))
    before = chart.columns(Series(1000.0, 1.0, values[:330]), 60).values
    after = chart.columns(Series(1003.0, 1.0, values[3:333]), 60).values
    assert before[1:] == after[:-1]


def test_the_tallest_of_several_lines_is_the_maximum() -> None:
    drawn = chart.chart(chart.columns(Series(0.0, 60.0, (0.0, 5.0, 10.0)), 3), 3, rows=2)
    assert drawn == ["  █", "_██"]


@given(
    st.lists(st.one_of(st.none(), st.floats(0, 1e6)), max_size=700),
    st.integers(1, 120),
    st.integers(1, 6),
)
def test_every_chart_has_the_size_that_was_asked_for(
    values: list[float | None], count: int, lines: int
) -> None:
    drawn = chart.chart(chart.columns(Series(5.0, 1.0, tuple(values)), count), count, lines)
    assert [len(line) for line in drawn] == [count] * lines


@given(st.integers(0, 100), st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_bar_is_full_only_when_all_is_done(
    cells: int, whole: int, done: int, flying: int
) -> None:
    bars = chart.progress(cells, whole, done, flying)
    assert sum(map(len, bars)) == cells
    if done + flying < whole and cells > 2:
        assert bars[2]
    if done and cells > 2:
        assert bars[0]


# lines


def test_fields_go_by_rank_and_the_first_ones_stay() -> None:
    left = [field("state"), field("name", rank=2), field("note", rank=3)]
    right = [field("$10", rank=1)]
    assert plain(arrange(24, left, right)) == "state  name  note    $10"
    assert plain(arrange(20, left, right)) == "state  name      $10"
    assert plain(arrange(12, left, right)) == "state    $10"
    assert plain(arrange(6, left, right)) == "state "
    assert plain(arrange(3, left, right)) == "st…"


@given(
    st.lists(st.tuples(st.text("ab漢 ", max_size=9), st.integers(0, 3)), max_size=5),
    st.lists(st.tuples(st.text("ab漢 ", max_size=9), st.integers(0, 3)), max_size=3),
    st.integers(0, 60),
)
def test_a_line_is_exactly_as_wide_as_asked(
    left: list[tuple[str, int]], right: list[tuple[str, int]], cells: int
) -> None:
    def fields(items: list[tuple[str, int]]) -> list[Field]:
        return [Field((Span(text),), rank) for text, rank in items]

    assert line_width(arrange(cells, fields(left), fields(right))) == cells


def test_a_cut_line_says_so() -> None:
    assert plain(exactly((Span("abc"), Span("def")), 5)) == "abcd…"
    assert plain(exactly((Span("abc"), Span("def")), 6)) == "abcdef"


# the space


@given(
    st.integers(1, 220),
    st.integers(1, 70),
    st.integers(0, 40),
    st.integers(0, 39),
    st.sampled_from(["running", "queued", "done", "paused"]),
)
def test_no_place_leaves_the_screen_or_covers_another(
    cells: int, lines: int, count: int, chosen: int, state: str
) -> None:
    views = tuple(replace(view, state=state) for view in many(count).datasets)  # type: ignore[arg-type]
    made = plan(cells, lines, views, min(chosen, max(0, count - 1)))
    assert made.header + made.alarm + made.area + made.hidden + made.message + made.keys <= lines
    taken: set[tuple[int, int]] = set()
    for place in made.places:
        assert place.x + place.width <= cells
        assert place.y + place.height <= made.area
        spots = {(place.x, place.y + n) for n in range(place.height)}
        assert not spots & taken
        taken |= spots
    assert made.above + len(made.places) + made.below == count or made.area == 0


def test_at_80x24_all_six_are_seen_and_the_chosen_one_has_a_pane() -> None:
    made = plan(80, 24, story().datasets, 3)
    assert len(made.places) == 6
    assert made.places[3].boxed
    assert made.places[3].height >= 11


def test_at_160x48_all_six_have_panes() -> None:
    made = plan(160, 48, SCENES["busy"]().datasets, 0)
    assert [place.boxed for place in made.places] == [True] * 6
    assert {place.width for place in made.places} == {80}


def test_equals_get_equal_heights() -> None:
    given_out = heights(17, SCENES["busy"]().datasets, 0)
    assert len(set(given_out[1:])) == 1


@given(st.integers(20, 200), st.integers(1, 24), st.sampled_from(sorted(SCENES)))
def test_every_pane_and_header_fills_its_place_exactly(cells: int, lines: int, scene: str) -> None:
    snapshot = SCENES[scene]()
    for view in snapshot.datasets:
        drawn = pane(view, cells, lines, NOW, snapshot.state)
        assert [line_width(line) for line in drawn] == [cells] * lines
        row = rows.Row(4, rows.widths(snapshot.datasets, cells), True, snapshot.state)
        dense = rows.dense(view, cells, min(lines, 5), NOW, row)
        assert all(line_width(line) <= cells for line in dense)
    for height in (1, 2, 4, 5, 8, 10):
        drawn = header(snapshot, cells, height, 0.0)
        assert [line_width(line) for line in drawn] == [cells] * height


# words


@pytest.mark.parametrize("scene", sorted(SCENES))
@pytest.mark.parametrize("cells", [76, 96])
def test_the_gauge_names_the_dataset_and_its_total(scene: str, cells: int) -> None:
    for view in SCENES[scene]().datasets:
        if view.attempts.total:
            text = "\n".join(plain(line) for line in pane(view, cells, 10, NOW, "running"))
            assert f"% of attempts · {words.label(view)}" in text


def test_the_story_reads_as_it_should() -> None:
    lines = [plain(line).strip() for line in pane(story().datasets[3], 76, 10, NOW, "running")]
    assert lines[0].startswith("► RUNNING")
    assert "3,900 of 15,000" in lines[0]
    assert lines[1].startswith("prompts ok 3,888 · failed 12 · in flight 1,998 · left 9,102")
    assert "errors 20% of attempts · B6_ultrachat · 15,000 prompts" in lines
    assert "✓ rate_limit SiliconFlow  RESOLVED 4m ago" in lines[8]
    assert lines[9] == "946 in 2m 48s, 939 of these prompts answered since, 7 wait"


def test_no_line_mixes_the_two_ledgers() -> None:
    """A percentage of attempts stands in no line that counts prompts, but for the gauge's label."""
    for line in pane(story().datasets[3], 76, 14, NOW, "running"):
        text = plain(line)
        if "attempts" in text:
            assert "failed" not in text
            assert "ok " not in text


def test_every_state_has_a_word_and_a_glyph_of_its_own() -> None:
    states = ["queued", "running", "paused", "skipped", "done", "budget"]
    seen = [words.dataset_state(replace(story().datasets[3], state=s)) for s in states]  # type: ignore[arg-type]
    assert len({word.glyph for word in seen}) == len({word.text for word in seen}) == len(states)


def test_a_dataset_of_a_held_run_does_not_say_running() -> None:
    for state in ("paused", "waiting", "draining", "stopped"):
        assert words.dataset_state(story().datasets[3], state).text != "RUNNING"  # type: ignore[arg-type]


def test_a_dataset_that_gets_nothing_is_stalled_also_when_the_chart_is_all_zero() -> None:
    view = stalled().datasets[3]
    assert words.dataset_state(view).text == "STALLED"
    flat = replace(view, rate=Series(NOW - 600, 5.0, (0.0,) * 120))
    assert words.silence_s(flat) == 600
    assert words.silence_s(replace(flat, rows=0)) == 0, "nothing is known before the first row"
    assert words.silence_s(replace(flat, in_flight=0)) == 0


def test_the_worst_error_comes_first() -> None:
    def line(verdict: str | None, recent: int = 0) -> ErrorLine:
        return ErrorLine(str(verdict), None, 9, verdict, 0, 0, "", recent)  # type: ignore[arg-type]

    mixed = (line("RESOLVED"), line(None, 2), line("ACTIVE", 5), line("STRUCTURAL"))
    order = [error.family for error in words.worst_first(mixed)]
    assert order == ["STRUCTURAL", "ACTIVE", "None", "RESOLVED"]


def test_without_a_verdict_the_count_stands_in_its_place() -> None:
    bare = ErrorLine("rate_limit", "Novita", 958, None, NOW - 600, NOW - 252, "")
    view = replace(story().datasets[3], errors=(bare,))
    text = "\n".join(plain(line) for line in pane(view, 76, 10, NOW, "running"))
    assert "rate_limit Novita  958, last 4m ago" in text


def test_a_total_that_is_not_the_manifest_s_says_so() -> None:
    view = DatasetView("B6", "running", 14_210, manifest_prompts=15_000)
    assert words.label(view) == "B6 · 14,210 prompts (manifest 15,000)"
    assert words.label(DatasetView("a" * 40, "running", 15_000), 24) == "aaaaaa… · 15,000 prompts"


# alarms


def test_a_calm_run_has_no_alarm_and_says_so() -> None:
    assert alarms(story(), 0.0) == []
    assert calm(story()) == "✓ no errors in the last minute · 14 of 37,774 prompts failed"


@pytest.mark.parametrize(
    ("scene", "level", "text"),
    [
        ("burst", "warn", "▲ ACTIVE rate_limit SiliconFlow 402 in the last minute, rising · B6_ul"),
        (
            "structural",
            "bad",
            "✗ STRUCTURAL auth SiliconFlow 64, last 2s ago · B6_ultrachat · 15,0",
        ),
        ("disk_full", "warn", "◆ WAITING, goes on by itself: the disk of"),
        ("paused_run", "info", "║ PAUSED, nothing is in flight, P resumes: by P at 14:02:11"),
        ("draining", "info", "▼ DRAINING, 212 in flight finish, nothing new is sent: asked by q"),
        ("stalled", "warn", "▷ B6_ultrachat · 15,000 prompts: no row for 5m 00s"),
        ("done", "ok", "✓ DONE, exit 0: every dataset is complete; q closes"),
        (
            "failed_some",
            "warn",
            "▲ DONE, exit 3: 12 of 37,774 prompts failed; `run --retry-failed` takes",
        ),
        ("starting", "info", "◌ STARTING: reading B6_ultrachat"),
    ],
)
def test_the_worst_thing_is_said_first(scene: str, level: str, text: str) -> None:
    worst = alarms(SCENES[scene](), 0.0)[0]
    assert worst.level == level
    assert worst.text.startswith(text)


def test_a_silent_engine_is_worse_than_what_it_last_said() -> None:
    found = alarms(disk_full(), 73.0)
    assert found[0].level == "bad"
    assert found[0].text == "✗ ENGINE SILENT for 1m 13s: the numbers are that old"


def test_an_ended_run_is_not_silent() -> None:
    assert alarms(SCENES["done"](), 4000.0)[0].level == "ok"


def test_the_next_step_stays_where_the_line_is_cut() -> None:
    refused = (
        "the endpoint ends the run: the first 100 prompts all failed, the last with connect: "
        "connection refused (http://127.0.0.1:8123/v1). Mend it, then run with --retry-failed."
    )
    ended = replace(story(), state="stopped", exit_code=4, reason=refused)
    unasked = replace(ended, datasets=tuple(replace(v, failed=0) for v in ended.datasets))
    text = plain(alarm_line(alarms(unasked, 0.0), 80))
    assert text.startswith(" ■ STOPPED, exit 4: connection refused (con")
    assert text.rstrip().endswith("; the next run goes on · q closes")
    retried = plain(alarm_line(alarms(ended, 0.0), 180))
    assert "exit 4: connection refused (c" in retried
    assert retried.rstrip().endswith("; `run --retry-failed` takes them up · q closes")
    assert "http" not in alarms(ended, 0.0)[0].text
    lost = plain(alarm_line(alarms(SCENES["failed_some"](), 0.0), 80)).strip()
    assert lost == "▲ DONE, exit 3: 12 of 37,774 prompts failed; `run --retry-failed` · q closes"


def test_a_pilot_s_end_is_not_called_the_whole_run_s() -> None:
    pilot = replace(story().datasets[0], state="done", pilot=140, prompts=700, ok=140, failed=0)
    ended = replace(SCENES["done"](), datasets=(replace(pilot, invalid=0, left=560, in_flight=0),))
    text = alarms(ended, 0.0)[0].text
    assert text == (
        "✓ DONE, exit 0: the pilot is complete: 140 of 700 prompts; "
        "`run` without --limit goes on · q closes"
    )


def test_a_dataset_that_lost_prompts_is_done_with_a_warning() -> None:
    view = SCENES["failed_some"]().datasets[3]
    assert words.dataset_state(view) == words.Word("▲", "DONE", "warn")
    assert "▲ DONE" in plain(state_line(view, 90, "done"))
    assert "12 failed" in plain(state_line(view, 90, "done"))
    assert str(words.dataset_state(SCENES["done"]().datasets[3])) == "✓ DONE"


def test_what_was_paused_by_order_does_not_go_on_by_itself() -> None:
    waits = replace(disk_full(), reason="429")
    one = alarms(dataset(waits, 3, state="paused"), 0.0)[0].text
    assert one == ("◆ WAITING; B6_ultrachat is paused: p resumes; the rest goes on by itself: 429")
    two = alarms(dataset(dataset(waits, 3, state="paused"), 4, state="paused"), 0.0)[0].text
    assert "B6_ultrachat and 1 more are paused: p resumes them one by one" in two
    each = replace(paused_run(), paused=False, reason="")
    assert alarms(each, 0.0)[0].text.endswith("p resumes them one by one")


def test_of_an_ended_run_a_verdict_has_its_time_of_day() -> None:
    ended = replace(story(), state="stopped", exit_code=130)
    (error, *_) = ended.datasets[3].errors
    at = fmt.ago(NOW - error.last_at)
    assert words.verdict(error, words.moment(story())).text == f"RESOLVED {at}"
    told = f"RESOLVED at {local_hms(error.last_at)}"
    assert words.verdict(error, words.moment(ended)).text == told
    counted = replace(error, verdict=None, count=7, recent=0)
    assert words.verdict(counted, math.inf).text == f"7, last at {local_hms(error.last_at)}"


def test_an_ended_run_has_no_present_rate() -> None:
    for lines in (1, 2):
        ended = replace(SCENES["done"](), rows_per_s=49.5)
        text = "\n".join(plain(line) for line in header(ended, 78, lines, 0.0))
        assert "in flight" not in text
        assert "/s" not in text
    assert "rows/s" in plain(header(story(), 118, 1, 0.0)[0])


def test_a_frozen_view_says_that_the_run_goes_on() -> None:
    assert "VIEW FROZEN at 14:03:22: the run goes on" in alarms(story(), 0.0, "14:03:22")[0].text


def test_errors_of_a_dataset_that_is_not_on_screen_are_still_an_alarm() -> None:
    far = dataset(story(), 5, errors=SCENES["burst"]().datasets[3].errors)
    assert alarms(far, 0.0)[0].text.startswith(
        "▲ ACTIVE rate_limit SiliconFlow 402 in the last minute, rising · B8_tulu · 5,000 prompts"
    )


# grades


@pytest.mark.parametrize("cells", [76, 96, 156])
def test_rows_are_called_by_their_grade_and_none_is_called_exact(cells: int) -> None:
    view = replace(
        story().datasets[3],
        exactness={"engine": 12, "matched": 380, "ambiguous": 9, "mismatch": 3},
        flags={"truncated": 3, "refusal": 1},
    )
    line = plain(rows_line(view, cells))
    assert "12 engine" in line
    assert "380 matched" in line
    assert "▲ suspect 3 mismatch" in line
    if cells > 96:
        for part in ("9 ambiguous", "3 truncated", "1 refusal"):
            assert part in line
    everything = "\n".join(plain(each) for each in pane(view, cells, 18, NOW, "running"))
    assert "exact" not in everything


def test_a_grade_of_a_later_version_is_shown_too() -> None:
    view = replace(story().datasets[3], exactness={"likely": 7})
    assert "7 likely" in plain(rows_line(view, 96))


def test_tokens_that_can_be_exported_stand_beside_the_budget() -> None:
    line = plain(tokens_line(replace(story().datasets[3], exportable_tokens=5_200_000), 76))
    assert "6.4M of 10M tok  65%  5.2M exportable" in line


# tables and paragraphs


@given(st.text(max_size=300), st.integers(1, 90))
def test_wrapped_text_loses_nothing_but_the_blanks_at_its_breaks(text: str, cells: int) -> None:
    safe = fmt.safe_text(text)
    lines = wrap(safe, cells)
    assert all(fmt.width(line) <= max(cells, 2) for line in lines)
    assert "".join(lines).replace(" ", "") == safe.replace(" ", "")


@given(
    st.lists(st.lists(st.text("ab漢 ", max_size=30), min_size=4, max_size=4), max_size=6),
    st.integers(0, 120),
)
def test_a_table_is_exactly_as_wide_as_asked(texts: list[list[str]], cells: int) -> None:
    columns = (
        Column("one"),
        Column("two", right=True, rank=2),
        Column("three", rank=1),
        Column("four", grow=True, rank=3),
    )
    lines = table(columns, [[Span(text) for text in row] for row in texts], cells)
    assert [line_width(line) for line in lines] == [cells] * (len(texts) + 1)


@pytest.mark.parametrize("cells", [20, 76, 119, 120, 196])
@pytest.mark.parametrize("scene", [*sorted(SCENES), "detailed"])
def test_every_section_is_as_wide_as_the_screen(scene: str, cells: int) -> None:
    snapshot = detailed() if scene == "detailed" else SCENES[scene]()
    for view in snapshot.datasets:
        assert {line_width(line) for line in detail.body(snapshot, view, cells)} == {cells}


def test_the_ledgers_sum_up() -> None:
    view = detailed().datasets[3]
    text = "\n".join(plain(line) for line in detail.ledgers(view, 76))
    for part in ("3,888 ok", "12 failed", "1,998 in flight", "9,102 left", "15,000 manifest"):
        assert part in text
    for part in ("3,900 became rows", "958 failed", "4,858 all that ended", "31 failed, last 5m"):
        assert part in text


def test_a_structural_cause_says_what_to_do_and_in_whose_words() -> None:
    error = replace(SCENES["structural"]().datasets[3].errors[-1], words="No auth [401]")
    text = "\n".join(plain(line) for line in detail.full_error(error, 76, NOW))
    assert "STRUCTURAL" in text
    assert "do  check OPENROUTER_API_KEY" in text
    assert "server  No auth [401]" in text


# honest totals, costs and times


def test_what_will_not_be_asked_is_in_no_total_and_said_beside_it() -> None:
    text = [plain(line) for line in header(SCENES["skipped"](), 118, 5, 0.0)]
    assert "11,674 of 26,711 + 11,063 skipped" in text[1]
    budgeted = plain(header(SCENES["budget"](), 118, 5, 0.0)[1])
    assert "past budget" in budgeted
    assert "100%" in plain(header(dataset_left_out(), 78, 1, 0.0)[0])


def dataset_left_out() -> Snapshot:
    """A finished run that skipped one dataset."""
    ended = SCENES["done"]()
    return dataset(ended, 5, state="skipped", ok=1_000, rows=1_000, left=4_000)


@pytest.mark.parametrize(
    ("cells", "words_"),
    [(78, "+ 3 unpriced"), (88, "+ 3 of unknown cost"), (158, "+ 3 attempts of unknown cost")],
)
def test_the_ceiling_stays_beside_a_cost_that_is_not_all_known(cells: int, words_: str) -> None:
    snapshot = replace(story(), cost_unknown_attempts=3, max_cost_usd=12_345.0, limit=1_999)
    text = plain(header(snapshot, cells, 5, 0.0)[4])
    assert f"cost $30.09 of $12,345.00 0.2% {words_}" in text


def test_the_estimate_stands_beside_the_projected_cost_and_the_eta() -> None:
    text = "\n".join(plain(line) for line in header(story(), 158, 10, 0.0))
    assert "$68.40 at the end · est. $58-$97" in text
    assert "ETA 45m 38s  est. total 1h 05m-2h 10m" in text


def test_a_grade_that_has_no_room_is_counted() -> None:
    view = detailed().datasets[3]
    assert plain(rows_line(view, 76)).rstrip().endswith("1 mismatch +3 more")
    assert "more" not in plain(rows_line(view, 120))


@given(st.integers(30, 120))
def test_shown_and_counted_grades_are_all_there_are(cells: int) -> None:
    text = plain(rows_line(detailed().datasets[3], cells))
    names = ("engine", "matched", "ambiguous", "mismatch", "truncated", "reasoning_only")
    shown = sum(name in text for name in names)
    more = re.search(r"\+(\d) more", text)
    if "…" not in text:
        assert shown + (int(more[1]) if more else 0) == len(names)


def test_after_a_resume_attempts_are_said_to_be_those_of_all_sessions() -> None:
    view = replace(story().datasets[3], restored_rows=2_000)
    text = "\n".join(plain(line) for line in pane(view, 100, 14, NOW, "running"))
    assert "all sessions 958 of 4,858 attempts" in text
    assert "all sessions" in plain(detail.ledgers(view, 90)[0])


def test_less_than_a_second_is_not_called_zero() -> None:
    view = replace(detailed().datasets[3], latency=Latency(0.41, 1.2, 71.0))
    assert "half within 0.4s · 90% within 1.2s · 99% within 1m 11s" in plain(
        detail.latency(view, 90)[0]
    )


def test_of_equal_alarms_the_larger_one_is_said_and_the_others_are_counted() -> None:
    base = story().datasets[3].errors[0]
    active = [
        replace(base, verdict="ACTIVE", family=family, recent=recent, last_at=NOW - age)
        for family, recent, age in (("deadline", 2, 0), ("rate_limit", 402, 5))
    ]
    few, many_ = dataset(story(), 3, errors=(active[0],)), active[1]
    snapshot = dataset(few, 2, state="running", errors=(many_,))
    found = alarms(dataset(few, 4, errors=(many_,)), 0.0)
    assert ["rate_limit" in alarm.text for alarm in found] == [True, False]
    assert "B5_mtbench" in alarms(snapshot, 0.0)[0].text
    assert plain(alarm_line(found, 100)).rstrip().endswith("+1 cause")


@pytest.mark.parametrize("cells", [76, 77, 156])
def test_a_provider_s_state_is_never_the_column_that_goes(cells: int) -> None:
    resting = replace(detailed().providers[2], state="resting until 14:07: 5 refusals in a row")
    snapshot = replace(detailed(), providers=(*detailed().providers[:2], resting))
    text = "\n".join(plain(line) for line in lists.providers(snapshot, cells))
    assert "rests to 14:07" in text
    assert "verbatim" in text
    assert ("5 refusals in a row" in text) == (cells > 100)


def test_the_last_prompts_of_a_run_are_told_where_nothing_is_wrong() -> None:
    shown = calm(replace(story(), reason="last 7 in flight, oldest 4m 12s"))
    assert shown.startswith("last 7 in flight, oldest 4m 12s · ")


def test_the_last_line_of_a_log_has_the_estimate_beside_what_it_came_to() -> None:
    line = closing_line(SCENES["done"]())
    assert "cost $86.00 (estimated $58-$97), 31m 04s (estimated 1h 05m-2h 10m)" in line
    assert "estimated" not in closing_line(replace(SCENES["done"](), forecast=None))
    unpriced = replace(SCENES["done"](), forecast=Forecast(None, None, 60.0, 120.0))
    assert "cost $86.00, 31m 04s (estimated 1m 00s-2m 00s)" in closing_line(unpriced)
