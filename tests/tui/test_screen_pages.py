"""The screens beyond the overview: how they are reached, and what each of their keys does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from detailed_run import detailed
from scripted_run import HandClock, ScriptedRun, dataset, paused_dataset
from textual.events import MouseScrollDown, MouseScrollUp
from textual.pilot import Pilot

from engine.clock import iso
from engine.commands import (
    Command,
    Drain,
    ExcludeProvider,
    IncludeProvider,
    Pause,
    Resume,
    RetryFailed,
    Skip,
    Stop,
    Throttle,
    Unskip,
)
from engine.disk.jsonlines import dump_line
from engine.disk.rundir import EVENTS
from engine.view.snapshot import Snapshot
from tui.app import EaglegenApp
from tui.parting import Exits
from tui.picture import NOW
from tui.screens.dataset import DatasetScreen
from tui.screens.failures import FailuresScreen
from tui.screens.journal import JournalScreen
from tui.screens.overview import OverviewScreen
from tui.screens.row import RowScreen

Run = tuple[Pilot[None], ScriptedRun]


@asynccontextmanager
async def watching(
    snapshot: Snapshot | None = None, size: tuple[int, int] = (80, 24), **more: object
) -> AsyncIterator[Run]:
    run = ScriptedRun(snapshot or detailed())
    app = EaglegenApp(run, clock=HandClock(), **more)  # type: ignore[arg-type]  # any of its options
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield pilot, run


async def settle(pilot: Pilot[None]) -> None:
    """Until what runs off the loop has been drawn."""
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def text_of(pilot: Pilot[None]) -> str:
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


async def press(pilot: Pilot[None], *keys: str) -> str:
    await pilot.press(*keys)
    await settle(pilot)
    return text_of(pilot)


# the ways from screen to screen


@pytest.mark.parametrize(
    ("keys", "kind", "title"),
    [
        (("enter",), DatasetScreen, "4 B6_ultrachat · 15,000 prompts"),
        (("2", "enter"), DatasetScreen, "2 B4_gsm8k · 1,891 prompts"),
        (("e",), FailuresScreen, "Errors and failed prompts"),
        (("enter", "e"), FailuresScreen, "Errors and failed prompts"),
        (("o",), JournalScreen, "Journal of kimi-k25-eagle3"),
        (("enter", "enter"), RowScreen, "B6_ultrachat · 15,000 prompts  row"),
    ],
)
@pytest.mark.parametrize("back", ["escape", "backspace"])
async def test_a_screen_is_reached_and_left_by_key(
    keys: tuple[str, ...], kind: type, title: str, back: str
) -> None:
    async with watching() as (pilot, run):
        assert title in await press(pilot, *keys)
        assert isinstance(pilot.app.screen, kind)
        await press(pilot, *[back] * (len(pilot.app.screen_stack) - 1))
        assert isinstance(pilot.app.screen, OverviewScreen)
        assert run.commands == []


async def test_the_screen_on_top_is_the_one_that_is_drawn() -> None:
    async with watching() as (pilot, run):
        assert "3,900 of 15,000" in await press(pilot, "enter")
        run.advance(dataset(detailed(), 3, ok=4_000, left=8_990))
        pilot.app.poll()  # type: ignore[attr-defined]  # the app is ours
        await settle(pilot)
        assert "4,012 of 15,000" in text_of(pilot)


async def test_before_the_first_dataset_every_screen_opens() -> None:
    async with watching(replace(detailed(), datasets=(), providers=())) as (pilot, run):
        await press(pilot, "enter", "e", "r", "x", "j", "escape", "o", "escape")
        assert isinstance(pilot.app.screen, OverviewScreen)
        assert run.commands == []


# the dataset screen


@pytest.mark.parametrize(
    ("keys", "name"),
    [
        (("n",), "B7_openhermes"),
        (("right", "n", "n", "n"), "B8_tulu"),
        (("N",), "B5_mtbench"),
        (("left",), "B5_mtbench"),
        (("1",), "B3_codealpaca"),
    ],
)
async def test_next_previous_and_number_change_the_dataset(
    keys: tuple[str, ...], name: str
) -> None:
    async with watching() as (pilot, _):
        assert f" {name} · " in (await press(pilot, "enter", *keys)).splitlines()[2]
        await press(pilot, "escape")
        chosen = pilot.app.screen_stack[0].query_one(".dataset.chosen")
        assert name in str(chosen.border_title) or name in text_of(pilot)


async def test_every_section_is_there_and_scrolling_reaches_the_last_line() -> None:
    async with watching() as (pilot, _):
        seen = [await press(pilot, "enter")]
        seen += [await press(pilot, "space") for _ in range(7)]
        text = "\n".join(seen)
        for part in (
            "errors 20% of attempts · B6_ultrachat · 15,000 prompts",
            "server  Rate limit exceeded: limit_rpm/moonshotai",
            "Prompts  each is counted once",
            "3,900 became rows",
            "Given up  12 of 15,000 prompts",
            "Input was flagged by the provider [violence]",
            "12  engine     ids from the server itself",
            "3 truncated  1 reasoning_only",
            "3,885 stop  3 length",
            "6,420,000 tokens: engine or matched, no flag",
            "half within 1m 11s · 90% within 2m 44s · 99% within 6m 52s",
            "1,025 to   2,048",
            "SiliconFlow    11,966     946",
            "11m 42s        1  B6_ultrachat/c0de000000000000.0#0",
            "Last rows",
            "The derivative of x",
        ):
            assert part in text, part
        assert " 0 below" in seen[-1]
        assert (await press(pilot, "g")) == seen[0]
        assert (await press(pilot, "G")) == seen[-1]


@pytest.mark.parametrize(
    ("down", "up"), [("j", "k"), ("down", "up"), ("space", "b"), ("pagedown", "pageup")]
)
async def test_keys_scroll_and_the_ends_hold(down: str, up: str) -> None:
    async with watching() as (pilot, _):
        top = await press(pilot, "enter", up)
        moved = await press(pilot, down)
        assert moved != top
        assert await press(pilot, up) == top
        bottom = await press(pilot, "end")
        assert await press(pilot, down) == bottom
        assert await press(pilot, "home") == top


async def test_steering_acts_on_the_dataset_that_is_shown() -> None:
    async with watching() as (pilot, run):
        await press(pilot, "enter", "n", "p", "P", "plus", "minus")
        assert run.commands == [Pause("B7_openhermes"), Pause(), Throttle(2200), Throttle(2000)]
        assert "Skip B7_openhermes · 10,000 prompts?" in await press(pilot, "s")
        await press(pilot, "y")
        assert run.commands[-1] == Skip("B7_openhermes")


async def test_a_frozen_view_stays_frozen_on_every_screen() -> None:
    async with watching() as (pilot, run):
        await press(pilot, "enter", "f")
        run.advance(paused_dataset())
        assert "VIEW FROZEN" in await press(pilot, "j", "k")
        assert "PAUSED" not in text_of(pilot)
        assert "VIEW FROZEN" in await press(pilot, "escape")
        assert "PAUSED" in await press(pilot, "f")


async def test_q_asks_on_every_screen() -> None:
    async with watching() as (pilot, run):
        assert "lose the 1,998 in flight" in await press(pilot, "enter", "q")
        await press(pilot, "d")
        assert run.commands == [Drain()]


async def test_help_names_the_keys_of_the_screen_and_scrolls() -> None:
    async with watching() as (pilot, _):
        shown = await press(pilot, "enter", "question_mark")
        assert "read the newest rows, tokens and all" in shown
        lower = await press(pilot, *["space"] * 4)
        assert "only engine ids are exact" in lower
        assert await press(pilot, *["b"] * 4) == shown
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, DatasetScreen)


# the failures screen


async def test_r_asks_and_retries_the_failed_prompts_of_the_dataset() -> None:
    async with watching() as (pilot, run):
        shown = await press(pilot, "e", "r")
        assert "Retry the failed prompts of B6_ultrachat · 15,000 prompts?" in shown
        assert "12 of 15,000 prompts were given up" in shown
        assert "about $0.04 if all of them succeed" in shown
        await press(pilot, "n")
        assert run.commands == []
        await press(pilot, "r", "y")
        assert run.commands == [RetryFailed("B6_ultrachat")]


async def test_a_dataset_without_failed_prompts_says_so() -> None:
    async with watching() as (pilot, run):
        shown = await press(pilot, "e", "1", "r")
        assert "B3_codealpaca · 3,383 prompts has no failed prompts" in shown
        assert run.commands == []


async def test_x_asks_and_excludes_the_provider_under_the_cursor() -> None:
    async with watching() as (pilot, run):
        shown = await press(pilot, "e", "x")
        assert "Leave SiliconFlow out from now on?" in shown
        assert "it gave 11,020 rows and 946 errors" in shown
        await press(pilot, "escape")
        assert run.commands == []
        await press(pilot, "x", "enter")
        assert run.commands == [ExcludeProvider("SiliconFlow")]


@pytest.mark.parametrize("keys", [("e", "k"), (), ("enter",)])
async def test_x_without_a_provider_under_the_cursor_lets_one_be_picked(
    keys: tuple[str, ...],
) -> None:
    async with watching() as (pilot, run):
        shown = await press(pilot, *keys, "x")
        assert "Leave a provider out, or let one in again" in shown
        assert "► SiliconFlow  11,020 rows, 946 errors" in shown
        await press(pilot, "enter")
        assert run.commands == []
        await press(pilot, "y")
        assert run.commands == [ExcludeProvider("SiliconFlow")]


async def test_x_lets_a_provider_that_is_left_out_in_again() -> None:
    snapshot = detailed()
    views = tuple(replace(view, state="excluded") for view in snapshot.providers)
    async with watching(replace(snapshot, providers=views)) as (pilot, run):
        assert "946 errors; left out" in await press(pilot, "x")
        await press(pilot, "enter")
        assert run.commands == [IncludeProvider("SiliconFlow")]


async def test_before_any_provider_has_answered_x_says_so() -> None:
    async with watching(replace(detailed(), providers=())) as (pilot, run):
        assert "no provider has answered yet" in await press(pilot, "x")
        assert run.commands == []


async def test_r_on_the_overview_asks_for_the_selected_dataset() -> None:
    async with watching() as (pilot, run):
        assert "Retry the failed prompts of B6_ultrachat" in await press(pilot, "r")
        await press(pilot, "y")
        assert run.commands == [RetryFailed("B6_ultrachat")]


async def test_the_cursor_goes_through_datasets_and_causes_and_shows_the_whole_evidence() -> None:
    async with watching() as (pilot, _):
        shown = await press(pilot, "e")
        assert "► ✓ rate_limit SiliconFlow" in shown
        assert "► ✓ deadline SiliconFlow" in await press(pilot, "j")
        assert "► 5 B7_openhermes" in await press(pilot, "down")
        assert "► ✓ deadline SiliconFlow" in await press(pilot, "up")
        assert "► 1 B3_codealpaca" in await press(pilot, *["k"] * 9)
        assert "► 2 B4_gsm8k" in await press(pilot, "n")
        assert "► 1 B3_codealpaca" in await press(pilot, "N")


async def test_a_cause_that_has_gone_leaves_the_cursor_on_its_dataset() -> None:
    async with watching() as (pilot, run):
        await press(pilot, "e")
        run.advance(dataset(detailed(), 3, errors=()))
        pilot.app.poll()  # type: ignore[attr-defined]  # the app is ours
        await settle(pilot)
        assert "► 4 B6_ultrachat" in text_of(pilot)


# the journal


async def test_the_journal_shows_what_the_file_holds_once(tmp_path: Path) -> None:
    snapshot = replace(detailed(), output=str(tmp_path))
    known = [(entry.at, entry.kind, entry.text, entry.dataset) for entry in snapshot.journal]
    earlier = [(NOW - 90_000 - n, "note", f"an earlier session {n}", None) for n in range(3)]
    lines = [
        dump_line({"at": iso(at), "kind": kind, "text": text, "dataset": name})
        for at, kind, text, name in [*reversed(earlier), *known]
    ]
    broken = b'{"at": 3}\n{"at": "not a time"}\n[]\nnot json\n'
    await asyncio.to_thread((tmp_path / EVENTS).write_bytes, broken + b"".join(lines) + b'{"torn')
    async with watching(snapshot) as (pilot, _):
        shown = await press(pilot, "o")
        assert shown.count("paused B7_openhermes: 0 in flight will finish") == 2, "and the message"
        assert shown.count("429 burst from SiliconFlow") == 1
        assert "an earlier session 2" in shown
        assert shown.index("earlier session 0") < shown.index("earlier session 2")
        assert "2026-11-29" in shown


# the command line


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("pause", Pause()),
        ("pause B7_openhermes", Pause("B7_openhermes")),
        ("res", Resume()),
        ("throttle 1,500", Throttle(1500)),
        ("unskip b8", Unskip("B8_tulu")),
    ],
)
async def test_a_typed_command_is_sent(line: str, command: Command) -> None:
    async with watching() as (pilot, run):
        await press(pilot, "colon", *typed(line), "enter")
        assert run.commands == [command]


@pytest.mark.parametrize(
    ("line", "command", "question"),
    [
        ("skip B6", Skip("B6_ultrachat"), "Skip B6_ultrachat · 15,000 prompts?"),
        ("retry B6", RetryFailed("B6_ultrachat"), "Retry the failed prompts of B6_ultrachat"),
        ("exclude nov", ExcludeProvider("Novita"), "Leave Novita out from now on?"),
        ("drain", Drain(), "finish the 1,998 in flight"),
        ("stop", Stop(), "about $7.31 billed"),
    ],
)
async def test_a_dear_command_asks(line: str, command: Command, question: str) -> None:
    async with watching() as (pilot, run):
        assert question in await press(pilot, "colon", *typed(line), "enter")
        assert run.commands == []
        await press(pilot, "y")
        assert run.commands == [command]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("pase", "command 'pase' is not known: pause, resume"),
        ("throttle", "throttle needs a number"),
        ("throttle 0", "throttle needs a whole number of at least 1"),
        ("pause B9", "dataset 'B9' is not known: B3_codealpaca"),
        ("skip B", "dataset 'B' could be several: B3_codealpaca, B4_gsm8k"),
        ("drain now", "drain takes nothing more"),
    ],
)
async def test_a_wrong_command_says_what_is_wrong(line: str, says: str) -> None:
    async with watching() as (pilot, run):
        assert says[:60] in await press(pilot, "colon", *typed(line), "enter")
        assert run.commands == []


async def test_tab_completes_verbs_and_names() -> None:
    async with watching() as (pilot, run):
        shown = await press(pilot, "colon")
        assert "pause  resume  throttle" in shown
        assert ": pause" in await press(pilot, "p", "a", "tab")
        assert "B3_codealpaca  B4_gsm8k" in text_of(pilot)
        assert "pause B7_openhermes" in await press(pilot, "B", "7", "tab")
        await press(pilot, "enter")
        assert run.commands == [Pause("B7_openhermes")]


async def test_commands_of_the_screen_itself() -> None:
    async with watching() as (pilot, run):
        await press(pilot, "colon", *typed("go b7"), "enter")
        await press(pilot, "colon", *typed("errors"), "enter")
        assert isinstance(pilot.app.screen, FailuresScreen)
        assert "► 5 B7_openhermes" in text_of(pilot)
        await press(pilot, "colon", *typed("theme light"), "enter")
        assert pilot.app.theme == "eaglegen-light"
        assert "Keys" in await press(pilot, "colon", *typed("help"), "enter")
        await press(pilot, "escape", "colon", "escape", "colon", "enter")
        assert isinstance(pilot.app.screen, FailuresScreen)
        assert run.commands == []


def typed(line: str) -> list[str]:
    names = {" ": "space", ",": "comma", "_": "underscore"}
    return [names.get(char, char) for char in line]


# filter, theme, copy, mouse, undo


async def test_slash_filters_the_datasets_and_esc_shows_all_again() -> None:
    async with watching() as (pilot, run):
        shown = await press(pilot, "slash", "b", "7")
        assert "B7_openhermes" in shown
        assert "B6_ultrachat" not in shown
        shown = await press(pilot, "enter")
        assert "1 of 6 datasets" in shown
        assert "11,674 of 37,774 in 6 datasets" in shown, "totals stay the run's"
        await press(pilot, "p")
        assert run.commands == [Pause("B7_openhermes")]
        assert "B6_ultrachat" in await press(pilot, "escape")


async def test_a_filter_may_be_given_up_or_match_nothing() -> None:
    async with watching() as (pilot, _):
        assert "B6_ultrachat" not in await press(pilot, "slash", "b", "3")
        assert "B6_ultrachat" in await press(pilot, "escape")
        shown = await press(pilot, "slash", "z", "z", "enter")
        assert "no name holds 'zz': all 6 datasets are shown" in shown
        assert "B6_ultrachat" in shown


async def test_several_of_the_filtered_are_walked_through() -> None:
    async with watching() as (pilot, run):
        await press(pilot, "slash", "t", "u", "l", "enter", "escape")
        await press(pilot, "slash", "h", "e", "enter", "j", "j", "p")
        assert run.commands == [Pause("B7_openhermes")]


async def test_t_shows_each_theme_and_esc_brings_the_old_one_back() -> None:
    async with watching() as (pilot, _):
        await press(pilot, "t", "j")
        assert pilot.app.theme == "eaglegen-colorblind"
        await press(pilot, "k", "k")
        assert pilot.app.theme == "eaglegen-mono"
        assert "RUNNING" in text_of(pilot)
        await press(pilot, "escape")
        assert pilot.app.theme == "eaglegen-dark"
        await press(pilot, "t", "up", "enter")
        assert pilot.app.theme == "eaglegen-mono"


@pytest.mark.parametrize(
    ("keys", "first", "holds"),
    [
        ((), "B6_ultrachat · 15,000 prompts", "prompts ok 3,888"),
        (("enter",), "4 B6_ultrachat · 15,000 prompts", "Providers  over the whole run"),
        (("e",), "Errors and failed prompts", "Given up  12 of 15,000 prompts"),
    ],
)
async def test_y_copies_and_saves_the_view(
    keys: tuple[str, ...], first: str, holds: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    async with watching() as (pilot, _):
        shown = await press(pilot, *keys, "y")
        assert "copied" in shown
        (path,) = (tmp_path / "eaglegen-tui" / "copies").iterdir()
        text = path.read_text(encoding="utf-8")
        assert pilot.app.clipboard == text
    assert path.name.startswith("B6_ultrachat-")
    assert text.splitlines()[0] == first
    assert holds in text


async def test_a_copy_that_cannot_be_saved_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    async with watching() as (pilot, _):
        assert "not saved" in await press(pilot, "y")


async def test_m_turns_the_mouse_on_and_off() -> None:
    async with watching() as (pilot, _):
        assert "mouse on" in await press(pilot, "m")
        assert "mouse off" in await press(pilot, "m")


async def test_a_click_chooses_a_dataset_a_second_one_opens_it_and_the_wheel_scrolls() -> None:
    async with watching() as (pilot, run):
        await pilot.click(offset=(10, 7))
        await press(pilot, "p")
        assert "B4_gsm8k · 1,891 prompts is done" in text_of(pilot)
        await pilot.click(offset=(10, 6))
        await settle(pilot)
        assert isinstance(pilot.app.screen, OverviewScreen)
        before = text_of(pilot)
        first = next(y for y, line in enumerate(before.splitlines()) if " 1  B3_codealpaca" in line)
        await pilot.click(offset=(10, first))
        await settle(pilot)
        assert isinstance(pilot.app.screen, DatasetScreen)
        assert "1 B3_codealpaca · 3,383 prompts" in text_of(pilot)
        assert run.commands == []


async def test_the_wheel_scrolls() -> None:
    async with watching() as (pilot, _):
        await press(pilot, "enter")
        screen = pilot.app.screen
        assert isinstance(screen, DatasetScreen)
        wheel = {"x": 5, "y": 8, "delta_x": 0, "delta_y": 0, "button": 0}
        held = {"shift": False, "meta": False, "ctrl": False}
        for kind, top in ((MouseScrollDown, 3), (MouseScrollDown, 6), (MouseScrollUp, 3)):
            screen.sheet.post_message(kind(screen.sheet, **wheel, **held))
            await settle(pilot)
            assert screen.sheet.top == top
            assert f"{top} lines above" in text_of(pilot)


async def test_u_takes_the_last_command_back() -> None:
    async with watching() as (pilot, run):
        assert "nothing to undo" in await press(pilot, "u")
        await press(pilot, "p", "u", "minus", "u", "s", "y", "u")
        assert run.commands == [
            Pause("B6_ultrachat"),
            Resume("B6_ultrachat"),
            Throttle(1900),
            Throttle(2000),
            Skip("B6_ultrachat"),
            Unskip("B6_ultrachat"),
        ]


async def test_leaving_from_any_screen_asks_what_this_viewer_may() -> None:
    async with watching(exits=Exits(steers=False)) as (pilot, _):
        await press(pilot, "enter", "q")
        assert pilot.app._exit


# small screens and plain ones


@pytest.mark.parametrize("keys", [("enter",), ("e",), ("o",), ("enter", "enter")])
@pytest.mark.parametrize("size", [(20, 5), (40, 12), (200, 60), (10, 3), (1, 1)])
async def test_every_size_is_drawn_and_grows_back(
    keys: tuple[str, ...], size: tuple[int, int]
) -> None:
    async with watching() as (pilot, _):
        before = await press(pilot, *keys)
        await pilot.resize_terminal(*size)
        await settle(pilot)
        assert len(text_of(pilot).splitlines()) == size[1]
        await pilot.resize_terminal(80, 24)
        await settle(pilot)
        assert text_of(pilot) == before


@pytest.mark.parametrize(
    "keys",
    [(), ("enter",), ("e",), ("o",), ("enter", "enter"), ("s",), ("t",), ("colon",), ("q",),
     ("question_mark",), ("e", "x")],
)  # fmt: skip
@pytest.mark.parametrize("size", [(80, 24), (160, 48)])
async def test_ascii_mode_shows_nothing_else(keys: tuple[str, ...], size: tuple[int, int]) -> None:
    async with watching(size=size, ascii=True) as (pilot, _):
        shown = await press(pilot, *keys)
        assert [char for char in shown if not char.isascii()] == []
        assert "kimi-k2" in shown or "Keys" in shown
