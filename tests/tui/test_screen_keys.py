"""Each key sends the right command, and asks first where it is dear."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from scripted_run import (
    HandClock,
    ScriptedRun,
    dataset,
    done,
    draining,
    paused_dataset,
    paused_run,
    skipped,
)
from textual.pilot import Pilot

from engine.commands import Drain, Pause, Resume, Skip, Stop, Throttle, Unskip
from engine.errors import EaglegenError
from engine.view.snapshot import Snapshot
from tui.app import EaglegenApp, OnEnd
from tui.draw.paint import plain
from tui.picture import story
from tui.widgets.canvas import Canvas


@asynccontextmanager
async def at_the_screen(
    run: ScriptedRun, clock: HandClock | None = None, on_end: OnEnd | None = None
) -> AsyncIterator[Pilot[None]]:
    app = EaglegenApp(run, clock=clock or HandClock(), on_end=on_end)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        yield pilot


def shown(pilot: Pilot[None], part: str = "message") -> str:
    canvases = [canvas for screen in pilot.app.screen_stack for canvas in screen.query(Canvas)]
    if part == "dialog":
        canvases = [
            canvas for canvas in canvases if canvas.parent and canvas.parent.has_class("dialog")
        ]
    else:
        canvases = [canvas for canvas in canvases if canvas.id == part]
    return "\n".join(plain(line).rstrip() for canvas in canvases for line in canvas.lines)


async def test_p_pauses_the_dataset_that_is_selected() -> None:
    run = ScriptedRun(story(), answer=lambda _: "paused B6_ultrachat: 1,998 in flight will finish")
    async with at_the_screen(run) as pilot:
        await pilot.press("p")
        await pilot.pause()
        assert run.commands == [Pause("B6_ultrachat")]
        assert shown(pilot).endswith("paused B6_ultrachat: 1,998 in flight will finish")


async def test_p_on_a_paused_dataset_resumes_it() -> None:
    run = ScriptedRun(paused_dataset())
    async with at_the_screen(run) as pilot:
        await pilot.press("4", "p")
        assert run.commands == [Resume("B6_ultrachat")]


async def test_a_second_p_takes_the_first_one_back_before_any_snapshot_shows_it() -> None:
    run = ScriptedRun(story())
    clock = HandClock()
    async with at_the_screen(run, clock) as pilot:
        await pilot.press("p", "p")
        assert run.commands == [Pause("B6_ultrachat"), Resume("B6_ultrachat")]
        clock.at += 10
        await pilot.press("p")
        assert run.commands[-1] == Pause("B6_ultrachat")


async def test_a_refused_pause_is_said_and_does_not_count_as_one() -> None:
    run = ScriptedRun(story(), answer=None)
    async with at_the_screen(run) as pilot:
        await pilot.press("p")
        run.settle(error=EaglegenError("read-only [viewer]", hint="attach without --read-only"))
        await pilot.pause()
        assert "not done: pausing B6_ultrachat: read-only [viewer]" in shown(pilot)
        await pilot.press("p")
        assert run.commands == [Pause("B6_ultrachat"), Pause("B6_ultrachat")]


async def test_another_fault_s_text_is_not_shown() -> None:
    run = ScriptedRun(story(), answer=None)
    async with at_the_screen(run) as pilot:
        await pilot.press("p")
        run.settle(error=RuntimeError("Authorization: Bearer sk-or-secret"))
        await pilot.pause()
        assert "a fault (RuntimeError)" in shown(pilot)
        assert "secret" not in shown(pilot)


async def test_an_engine_that_does_not_answer_is_said_and_keys_go_on() -> None:
    run = ScriptedRun(story(), answer=None)
    clock = HandClock()
    async with at_the_screen(run, clock) as pilot:
        await pilot.press("p")
        clock.at += 4
        await pilot.press("j")
        assert "pausing B6_ultrachat: waiting for the engine, 4s" in shown(pilot)
        await pilot.press("P")
        assert run.commands == [Pause("B6_ultrachat"), Pause()]
        run.settle("paused B6_ultrachat")
        run.settle("paused the run")
        await pilot.pause()
        assert shown(pilot).endswith("paused the run")


async def test_big_p_pauses_the_run_and_resumes_a_paused_one() -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("P")
        run.advance(paused_run())
        await pilot.press("P")
        assert run.commands == [Pause(), Resume()]


@pytest.mark.parametrize(
    ("snapshot", "key", "says"),
    [
        (done(), "P", "the run has ended: nothing to pause"),
        (draining(), "P", "nothing new is sent anyway"),
        (done(), "p", "B3_codealpaca · 3,383 prompts is done: nothing to pause"),
        (done(), "s", "B3_codealpaca · 3,383 prompts is done: nothing to skip"),
    ],
)
async def test_a_key_without_effect_says_why(snapshot: Snapshot, key: str, says: str) -> None:
    run = ScriptedRun(snapshot)
    async with at_the_screen(run) as pilot:
        await pilot.press("1", key)
        assert run.commands == []
        assert says in shown(pilot)


async def test_plus_and_minus_step_from_what_was_last_asked_for() -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("minus", "minus", "plus")
        assert run.commands == [Throttle(1900), Throttle(1800), Throttle(1900)]


async def test_equals_types_a_number() -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("equals_sign", "1", "a", "2", "5", "0", "enter")
        await pilot.pause()
        assert run.commands == [Throttle(1250)]


@pytest.mark.parametrize("keys", [("escape",), ("5", "escape")])
async def test_esc_leaves_the_ceiling_alone(keys: tuple[str, ...]) -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("equals_sign", *keys)
        await pilot.pause()
        assert run.commands == []
        assert len(pilot.app.screen_stack) == 1


@pytest.mark.parametrize("keys", [("enter",), ("0", "enter")])
async def test_a_ceiling_that_is_no_number_is_refused(keys: tuple[str, ...]) -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("equals_sign", *keys)
        await pilot.pause()
        assert "a whole number of at least 1" in shown(pilot, "dialog")
        assert run.commands == []


@pytest.mark.parametrize("key", ["y", "enter"])
async def test_skip_asks_with_the_prompts_at_stake_and_yes_skips(key: str) -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("s")
        await pilot.pause()
        assert "9,102 prompts left will not be asked, 7 of them wait" in shown(pilot, "dialog")
        assert pilot.app.screen.query_one(".dialog").border_title == (
            "Skip B6_ultrachat · 15,000 prompts?"
        )
        assert run.commands == []
        await pilot.press(key)
        await pilot.pause()
        assert run.commands == [Skip("B6_ultrachat")]


@pytest.mark.parametrize("question", ["s", "q"])
@pytest.mark.parametrize("answer", ["n", "escape"])
async def test_no_sends_nothing(question: str, answer: str) -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press(question, answer)
        await pilot.pause()
        assert run.commands == []
        assert len(pilot.app.screen_stack) == 1


async def test_while_a_question_stands_other_keys_do_nothing() -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("s", "p", "P", "plus", "minus", "s", "j", "2", "z", "f", "q", "x", "d")
        await pilot.pause()
        assert run.commands == []
        assert len(pilot.app.screen_stack) == 2
        await pilot.press("y")
        assert run.commands == [Skip("B6_ultrachat")]


async def test_s_on_a_skipped_dataset_asks_to_take_it_back() -> None:
    run = ScriptedRun(skipped())
    async with at_the_screen(run) as pilot:
        await pilot.press("4", "s")
        await pilot.pause()
        assert "11,063 prompts left will be asked again" in shown(pilot, "dialog")
        await pilot.press("y")
        await pilot.pause()
        assert run.commands == [Unskip("B6_ultrachat")]


async def test_the_question_keeps_the_dataset_it_named() -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("s")
        run.advance(dataset(story(), 4, state="running"))
        await pilot.press("y")
        await pilot.pause()
        assert run.commands == [Skip("B6_ultrachat")]


async def test_quit_says_the_dollars_in_flight_and_d_drains_then_closes() -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("q")
        await pilot.pause()
        assert "lose the 1,998 in flight, about $7.31 billed" in shown(pilot, "dialog")
        await pilot.press("d")
        await pilot.pause()
        assert run.commands == [Drain()]
        assert pilot.app.is_running
        run.advance(replace(draining(), exit_code=130, state="stopped"))
        pilot.app.poll()
        assert pilot.app._exit


async def test_x_stops() -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("q", "x")
        await pilot.pause()
        assert run.commands == [Stop()]


async def test_a_draining_run_offers_no_second_drain() -> None:
    run = ScriptedRun(draining())
    async with at_the_screen(run) as pilot:
        await pilot.press("q", "d")
        await pilot.pause()
        assert run.commands == []
        assert "drain:" not in shown(pilot, "dialog")


async def test_an_ended_run_stays_with_its_result_until_q() -> None:
    run = ScriptedRun(done())
    async with at_the_screen(run) as pilot:
        pilot.app.poll()
        assert not pilot.app._exit
        assert "DONE, exit 0: every dataset is complete; q closes" in shown(pilot, "alarm")
        await pilot.press("q")
        assert pilot.app._exit
        assert run.commands == []


async def test_the_caller_may_close_an_ended_run() -> None:
    seen: list[Snapshot] = []

    def close(last: Snapshot) -> bool:
        seen.append(last)
        return True

    run = ScriptedRun(story())
    async with at_the_screen(run, on_end=close) as pilot:
        run.advance(done())
        pilot.app.poll()
        assert pilot.app._exit
        assert seen == [done()]


async def test_ctrl_c_drains_and_a_later_one_stops() -> None:
    run = ScriptedRun(story())
    clock = HandClock()
    async with at_the_screen(run, clock) as pilot:
        await pilot.press("ctrl+c")
        assert run.commands == [Drain()]
        await pilot.press("ctrl+c")
        assert run.commands == [Drain()], "the key's own repeat is not an order to stop"
        clock.at += 1
        await pilot.press("ctrl+c")
        assert run.commands == [Drain(), Stop()]


async def test_ctrl_c_works_while_a_question_stands() -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("s", "ctrl+c")
        assert run.commands == [Drain()]


async def test_ctrl_c_on_a_draining_run_warns_before_it_stops() -> None:
    run = ScriptedRun(draining())
    clock = HandClock()
    async with at_the_screen(run, clock) as pilot:
        await pilot.press("ctrl+c")
        assert run.commands == []
        assert "ctrl+c again stops at once" in shown(pilot)
        clock.at += 1
        await pilot.press("ctrl+c")
        assert run.commands == [Stop()]


async def test_f_freezes_the_view_and_not_the_work() -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("f")
        run.advance(paused_dataset())
        await pilot.press("j", "k")
        assert "VIEW FROZEN" in shown(pilot, "alarm")
        panes = "\n".join(shown_panes(pilot))
        assert "PAUSED" not in panes
        await pilot.press("p")
        assert run.commands == [Resume("B6_ultrachat")], "keys act on the run as it is"
        await pilot.press("f")
        assert "VIEW FROZEN" not in shown(pilot, "alarm")
        assert "PAUSED" in "\n".join(shown_panes(pilot))


def shown_panes(pilot: Pilot[None]) -> Iterator[str]:
    for canvas in pilot.app.screen_stack[0].query(".dataset").results(Canvas):
        yield from (plain(line) for line in canvas.lines)


async def test_the_selection_follows_the_work_until_the_user_selects() -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        later = dataset(dataset(story(), 3, state="done"), 4, state="running")
        run.advance(later)
        pilot.app.poll()
        await pilot.press("p")
        assert run.commands == [Pause("B7_openhermes")]
        run.advance(dataset(dataset(later, 4, state="done"), 5, state="running"))
        pilot.app.poll()
        await pilot.press("p")
        assert len(run.commands) == 1, "the dataset that p was pressed on stays selected"


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        (("j",), "B7_openhermes"),
        (("down", "j", "j", "j"), "B8_tulu"),
        (("k",), "B5_mtbench"),
        (("up",), "B5_mtbench"),
        (("2",), "B4_gsm8k"),
        (("9",), "B6_ultrachat"),
    ],
)
async def test_j_k_arrows_and_digits_select(keys: tuple[str, ...], name: str) -> None:
    run = ScriptedRun(paused_run())
    everything = replace(
        story(), datasets=tuple(replace(view, state="running") for view in story().datasets)
    )
    async with at_the_screen(run) as pilot:
        await pilot.press(*keys)
        run.advance(everything)
        await pilot.press("p")
        assert run.commands == [Pause(name)]


@pytest.mark.parametrize("key", ["question_mark", "f1"])
async def test_help_is_drawn_from_the_live_keys(key: str) -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press(key)
        await pilot.pause()
        text = shown(pilot, "dialog")
        for part in ("j ↓ k ↑", "1-9", "? F1", "ctrl+c", "pause or resume work on the selected"):
            assert part in text
        await pilot.press("escape")
        await pilot.pause()
        assert len(pilot.app.screen_stack) == 1


async def test_before_the_first_dataset_the_keys_do_nothing() -> None:
    run = ScriptedRun(replace(story(), datasets=(), state="starting"))
    async with at_the_screen(run) as pilot:
        await pilot.press("p", "s", "j", "1")
        await pilot.pause()
        assert run.commands == []


async def test_a_key_before_the_first_picture_acts_on_the_dataset_that_runs() -> None:
    run = ScriptedRun(story())
    app = EaglegenApp(run, clock=HandClock())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("p")
        assert run.commands == [Pause("B6_ultrachat")]


async def test_no_key_of_textual_itself_is_left() -> None:
    run = ScriptedRun(story())
    async with at_the_screen(run) as pilot:
        await pilot.press("ctrl+q", "ctrl+p", "tab")
        await pilot.pause()
        assert pilot.app.is_running
        assert len(pilot.app.screen_stack) == 1
