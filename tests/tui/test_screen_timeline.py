"""The time axis: every row's bucket stands under the others', and each mark in its column."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from detailed_run import detailed
from hypothesis import given
from hypothesis import strategies as st
from scripted_run import SCENES, burst, dataset

from engine.view.snapshot import EventSeries, FamilySeries, Mark, Series, Snapshot, Spell
from tui import glyphs
from tui.draw import axis, timeline
from tui.draw.header import header
from tui.draw.paint import Line, line_width, plain
from tui.draw.plan import plan
from tui.picture import NOW, story

VALUES = st.lists(st.one_of(st.none(), st.floats(0, 1e4)), max_size=300)


@pytest.fixture(autouse=True)
def _times_of_day_in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def steady(count: int, width: float = 4.0, value: float = 2.0) -> Series:
    return Series(NOW - count * width, width, (value,) * count)


def run(count: int = 240, **more: object) -> Snapshot:
    bare = replace(story(), rate=steady(count), errors_by_family=(), events=EventSeries())
    return replace(bare, limit_series=steady(count, value=500.0), **more)  # type: ignore[arg-type]


def counted(count: int, *, at: int, failed: float, family: str = "rate_limit") -> FamilySeries:
    values = [0.0] * count
    values[at] = failed
    return FamilySeries(family, Series(NOW - count * 4.0, 4.0, tuple(values)))


def rows(snapshot: Snapshot, cells: int = 158) -> dict[str, str]:
    """The full axis by its labels, each row's text from the axis's first cell on."""
    drawn = timeline.full(timeline.of_run(snapshot), cells, 1)
    names = ("rate", "errors", "limit", "orders", "clock")
    return {name: plain(line)[18:] for name, line in zip(names, drawn, strict=True)}


# the grid


@given(VALUES, st.integers(1, 160), st.floats(0, 1e9), st.sampled_from([1.0, 2.0, 4.0, 5.0]))
def test_a_grid_fits_its_cells_and_holds_most_of_the_series(
    values: list[float | None], cells: int, start: float, width: float
) -> None:
    series = Series(start, width, tuple(values))
    made = axis.grid(series, cells)
    assert 0 <= made.columns <= cells
    known = [place for place, value in enumerate(values) if value is not None]
    if known:
        assert made.columns >= 1
        assert made.end >= start + len(values) * width - 1e-3
        assert made.seconds * made.columns >= min(0.7, 1.0) * (len(values) - known[0]) * width


@given(VALUES, st.integers(4, 160))
def test_no_count_is_lost_or_moved_by_wider_columns(values: list[float | None], cells: int) -> None:
    whole = tuple(float(round(value or 0)) for value in values)
    made = axis.grid(Series(1000.0, 1.0, (1.0,) * len(whole)), cells)
    sums = axis.sums(made, Series(1000.0, 1.0, whole))
    shown = [v for n, v in enumerate(whole) if 1000.5 + n >= made.begin]
    assert sum(sums) == sum(shown)


def test_a_column_keeps_its_moment_while_the_axis_moves_on() -> None:
    before = axis.grid(Series(1001.0, 4.0, (2.0,) * 240), 100)
    later = Series(1005.0, 4.0, (2.0,) * 240)
    after = axis.grid(later, 100)
    assert (after.begin - before.begin) % before.seconds == pytest.approx(0, abs=1e-6)
    assert after.seconds == before.seconds == 8.0


def test_a_limit_s_short_dip_is_seen_in_a_wide_column() -> None:
    levels = [2000.0] * 240
    levels[100] = 500.0
    dipped = replace(run(), limit_series=Series(NOW - 960, 4.0, tuple(levels)))
    assert "▂" in rows(dipped)["limit"]
    assert "lowest 500 at" in rows(dipped)["limit"]


# alignment


def test_error_order_and_dip_of_one_moment_stand_in_one_column() -> None:
    moment = NOW - 400.0
    values = [2.0] * 240
    values[140] = 0.0
    values[141] = 0.0
    snapshot = run(
        rate=Series(NOW - 960, 4.0, tuple(values)),
        errors_by_family=(counted(240, at=140, failed=30.0),),
        events=EventSeries((Mark(moment + 1, "throttle", "throttle 500"),)),
    )
    shown = rows(snapshot)
    column = shown["errors"].index("R")
    assert shown["orders"].index("t") == column
    assert shown["rate"][column] == glyphs.ZERO


def test_clock_labels_begin_under_their_minute() -> None:
    shown = rows(run())
    minute = NOW - NOW % 60
    at_minute = run(events=EventSeries((Mark(minute + 0.5, "skip", "skip B"),)))
    column = rows(at_minute)["orders"].index("s")
    ticks = [place for place, char in enumerate(shown["clock"]) if char == "╵"]
    assert ticks
    assert any((column - tick) * 8 % 60 <= 8 for tick in ticks)


def test_an_order_newer_than_the_last_bucket_stands_at_the_right_edge() -> None:
    fresh = run(events=EventSeries((Mark(NOW + 3, "drain", "drain"),)))
    shown = rows(fresh)
    assert shown["orders"].index("d") == len(shown["rate"].rstrip().partition(" max")[0]) - 1
    assert "d " in shown["orders"].rstrip()[-14:]


# what the cells say


@pytest.mark.parametrize(
    ("failed", "letter", "reverse"),
    [(1, "r", False), (2, "r", False), (3, "R", False), (40, "R", True)],
)
def test_a_letter_is_louder_the_more_attempts_failed(
    failed: float, letter: str, reverse: bool
) -> None:
    snapshot = run(errors_by_family=(counted(240, at=239, failed=failed),))
    line = timeline.full(timeline.of_run(snapshot), 158, 1)[1]
    (span,) = [span for span in line if span.text == letter and span.role in {"warn", "bad"}]
    assert span.reverse is reverse


def test_the_commonest_family_of_a_column_is_shown_and_each_has_its_own_letter() -> None:
    names = ("rate_limit", "read_timeout", "redirected")
    families = [counted(240, at=100, failed=n + 3.0, family=name) for n, name in enumerate(names)]
    given_letters = timeline.letters(families)
    assert given_letters == {"rate_limit": "R", "read_timeout": "E", "redirected": "D"}
    shown = rows(replace(run(errors_by_family=tuple(families)), datasets=()))["errors"]
    assert shown.count("D") == 2, "once on the axis, once in the legend"
    assert "D redirected 5" in shown


def test_no_family_is_without_a_letter() -> None:
    families = [counted(10, at=1, failed=1.0, family=name) for name in ("aa", "a", "A!", "漢")]
    assert timeline.letters(families) == {"aa": "A", "a": "#", "A!": "#", "漢": "#"}


def test_a_paused_span_is_hatched_and_named_at_both_ends() -> None:
    marks = (Mark(NOW - 500, "pause", "pause run"), Mark(NOW - 300, "resume", "resume run"))
    snapshot = run(events=EventSeries(marks, (Spell(NOW - 500, NOW - 300, "paused"),)))
    shown = rows(snapshot)["orders"]
    begin, end = shown.index("P"), shown.index("R")
    assert set(shown[begin + 1 : end]) == {glyphs.GAP}
    assert (end - begin) * 8 == pytest.approx(200, abs=8)


def test_where_the_engine_waited_is_told_from_a_pause() -> None:
    spells = (Spell(NOW - 500, NOW - 400, "waiting"), Spell(NOW - 100, None, "paused"))
    shown = rows(run(events=EventSeries((), spells)))["orders"]
    assert glyphs.HELD in shown
    assert shown.index(glyphs.HELD) < shown.index(glyphs.GAP)


def test_several_orders_in_a_column_are_counted() -> None:
    marks = tuple(Mark(NOW - 401 - n / 10, "throttle", "throttle 1") for n in range(3))
    assert "3" in rows(run(events=EventSeries(marks)))["orders"].partition(" t ")[0]


def test_a_dataset_s_axis_leaves_out_orders_for_others() -> None:
    snapshot = replace(
        detailed(),
        events=EventSeries(
            (
                Mark(NOW - 90, "pause", "pause B7_openhermes", "B7_openhermes"),
                Mark(NOW - 60, "throttle", "throttle 100"),
                Mark(NOW - 30, "skip", "skip B6_ultrachat", "B6_ultrachat"),
            )
        ),
    )
    track = timeline.of_dataset(snapshot, snapshot.datasets[3])
    assert [mark.command for mark in track.marks] == ["throttle", "skip"]


# how it fits


@given(st.integers(1, 200), st.sampled_from(sorted(SCENES)), st.integers(1, 4))
def test_every_row_is_exactly_as_wide_as_asked(cells: int, scene: str, tall: int) -> None:
    track = timeline.of_run(SCENES[scene]())
    drawn = [*timeline.full(track, cells, tall), *timeline.brief(track, cells)]
    assert {line_width(line) for line in drawn} == {cells}
    assert len(drawn) == tall + timeline.BELOW + 2


def test_a_small_screen_has_two_rows_of_it_and_every_dataset_its_own() -> None:
    made = plan(80, 24, story().datasets, 3)
    assert (made.header, len(made.places)) == (5, 6)
    text = [plain(line) for line in header(burst(), 78, 5, 0.0)]
    assert text[2].lstrip().startswith("rate")
    assert text[3].lstrip().startswith("errors")
    assert "R rate_limit 612" in text[3]


@pytest.mark.parametrize(("lines", "rows_of_header"), [(48, 10), (40, 9), (24, 5), (20, 4)])
def test_the_axis_grows_with_the_screen(lines: int, rows_of_header: int) -> None:
    assert plan(120, lines, story().datasets, 3).header == rows_of_header


def test_the_axis_gives_way_before_a_dataset_loses_its_line() -> None:
    views = story().datasets * 3
    made = plan(80, 24, views[:17], 0)
    assert (made.header, len(made.places)) == (4, 17)


def test_an_order_takes_no_room_from_the_small_axis_legend() -> None:
    strip = plain(timeline.brief(timeline.of_run(story()), 78)[1])
    assert glyphs.HERE in strip
    assert "pause B7" not in strip
    assert "R rate_limit" in strip


# the number of errors is the run's, whatever the axis still holds


def test_failed_attempts_are_counted_over_all_sessions() -> None:
    errors = burst().datasets[3].errors
    resumed = dataset(run(), 3, attempt_errors=1_740, errors=errors)
    others = sum(view.attempt_errors for view in resumed.datasets) - 1_740
    shown = timeline.full(timeline.of_run(resumed), 158, 1)[1]
    assert plain(shown)[:18].split() == ["errors", f"{1_740 + others:,}"]
    small = timeline.brief(timeline.of_run(resumed), 78)[1]
    assert plain(small)[:18].split() == ["errors", f"{1_740 + others:,}"]
    own = timeline.full(timeline.of_dataset(resumed, resumed.datasets[3]), 158, 1)[1]
    assert plain(own)[:18].split() == ["errors", "1,740"]


def test_the_legend_has_the_totals_of_families_that_left_the_axis() -> None:
    bursting = burst().datasets[3].errors
    late = (*bursting, replace(bursting[0], family="deadline", count=9))
    resumed = dataset(run(errors_by_family=(counted(240, at=230, failed=4.0),)), 3, errors=late)
    assert "R rate_limit 612  D deadline 9" in rows(resumed)["errors"]


def test_what_only_the_axis_has_is_said_to_be_since_when() -> None:
    bare = replace(run(errors_by_family=(counted(240, at=230, failed=4.0),)), datasets=())
    assert re.search(r"since \d\d:\d\d: R rate_limit 4", rows(bare)["errors"])


def test_held_spans_are_hatched_on_the_small_axis_where_no_attempt_failed() -> None:
    spells = (Spell(NOW - 700, NOW - 500, "paused"), Spell(NOW - 300, NOW - 100, "waiting"))
    snapshot = run(
        errors_by_family=(counted(240, at=90, failed=9.0),), events=EventSeries((), spells)
    )
    strip = plain(timeline.brief(timeline.of_run(snapshot), 78)[1])
    assert strip.index(glyphs.GAP) < strip.index("R") < strip.index(glyphs.HELD)


def test_a_run_that_begins_has_an_axis_without_columns() -> None:
    drawn: list[Line] = timeline.full(timeline.of_run(SCENES["starting"]()), 118, 2)
    assert "none" not in plain(drawn[2])
