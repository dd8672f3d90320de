"""Orders on the screen: taken back one by one, those of others told, questions that go stale."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from detailed_run import detailed
from scripted_run import (
    HandClock,
    ScriptedRun,
    burst,
    dataset,
    done,
    draining,
    failed_some,
    skipped,
)
from textual import events
from textual.pilot import Pilot

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
from engine.errors import UsageError
from engine.view.snapshot import JournalEntry, Snapshot
from tui import copies
from tui.app import EaglegenApp
from tui.draw.paint import plain
from tui.moot import moot
from tui.overheard import Overheard
from tui.parting import Exits
from tui.picture import NOW, story
from tui.questions import at_stake
from tui.widgets.canvas import Canvas


@asynccontextmanager
async def watching(run: ScriptedRun, exits: Exits | None = None) -> AsyncIterator[Pilot[None]]:
    app = EaglegenApp(run, clock=HandClock(), exits=exits)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        yield pilot


async def press(pilot: Pilot[None], *keys: str) -> str:
    await pilot.press(*keys)
    return await looked(pilot)


async def looked(pilot: Pilot[None]) -> str:
    """The message line after the app has looked at the newest snapshot."""
    await pilot.pause()
    assert isinstance(pilot.app, EaglegenApp)
    pilot.app.poll()
    await pilot.pause()
    (canvas,) = pilot.app.screen_stack[0].query("#message").results(Canvas)
    return "\n".join(plain(line).rstrip() for line in canvas.lines)


# undo


async def test_undo_takes_back_one_order_after_the_other() -> None:
    run = ScriptedRun(detailed())
    async with watching(run) as pilot:
        await press(pilot, "p", "minus", "x", "enter", "y", "u")
        assert run.commands[3:] == [IncludeProvider("SiliconFlow")]
        await press(pilot, "u", "u")
        assert run.commands[4:] == [Throttle(2000), Resume("B6_ultrachat")]
        assert "nothing to undo" in await press(pilot, "u")
        assert len(run.commands) == 6


async def test_what_cannot_be_undone_is_said_and_does_not_stand_in_the_way() -> None:
    run = ScriptedRun(detailed())
    async with watching(run) as pilot:
        await press(pilot, "p", "r", "y")
        assert run.commands == [Pause("B6_ultrachat"), RetryFailed("B6_ultrachat")]
        said = await press(pilot, "u")
        assert "cannot be undone: retrying the failed prompts of B6_ultrachat" in said
        await press(pilot, "u")
        assert run.commands[2:] == [Resume("B6_ultrachat")]


async def test_a_refused_order_is_not_taken_back() -> None:
    def answer(command: Command) -> str:
        if isinstance(command, Throttle):
            raise UsageError("not so many")
        return "done"

    run = ScriptedRun(story(), answer=answer)
    async with watching(run) as pilot:
        await press(pilot, "p")
        assert "not done" in await press(pilot, "plus")
        await press(pilot, "u")
        assert run.commands[2:] == [Resume("B6_ultrachat")]


# orders of others


def ordered(snapshot: Snapshot, *entries: tuple[float, str, str]) -> Snapshot:
    found = (JournalEntry(NOW + at, "command", text, None, origin) for at, text, origin in entries)
    return replace(snapshot, journal=(*snapshot.journal, *found))


async def test_orders_of_others_are_told() -> None:
    run = ScriptedRun(ordered(story(), (-9, "paused the run", "control")))
    async with watching(run) as pilot:
        assert "paused the run" in await looked(pilot), "the newest entry of the journal"
        run.advance(ordered(story(), (1, "ceiling now 500 in flight", "control")))
        told = "control or another viewer: ceiling now 500 in flight"
        assert told in await looked(pilot)
        run.advance(ordered(story(), (1, "a", "control"), (2, "b", "control"), (3, "c", "SIGTERM")))
        assert "SIGTERM: c (and 1 more)" in await looked(pilot)


@pytest.mark.parametrize(
    ("exits", "origin"), [(Exits(), "screen"), (Exits(remote=True), "control")]
)
async def test_this_viewer_s_own_orders_are_not_told_twice(exits: Exits, origin: str) -> None:
    run = ScriptedRun(story(), answer=None)
    async with watching(run, exits) as pilot:
        await looked(pilot)
        await press(pilot, "p")
        run.advance(ordered(story(), (1, "paused B6", origin)))
        assert "pausing B6_ultrachat" in await looked(pilot)
        run.settle("paused B6")
        assert (await looked(pilot)).endswith(" paused B6")
        run.advance(ordered(story(), (1, "paused B6", origin), (2, "paused B6", "control")))
        assert "control or another viewer: paused B6" in await looked(pilot)


def test_what_the_engine_decides_is_no_order() -> None:
    heard = Overheard("screen")
    assert heard.news(story()) == ""
    entry = JournalEntry(NOW + 1, "limit", "the limit is back")
    assert heard.news(replace(story(), journal=(entry,))) == ""
    attached = Overheard("")
    attached.news(story())
    told = attached.news(ordered(story(), (1, "skipped [b]\x1b[2J", "screen")))
    assert told.startswith("the run's own screen: skipped [b]")
    assert "\x1b" not in told


# where no order is taken


async def footer(pilot: Pilot[None]) -> str:
    await looked(pilot)
    (canvas,) = pilot.app.screen_stack[0].query("#keys").results(Canvas)
    return plain(canvas.lines[0])


async def test_an_ended_run_offers_no_orders_and_says_what_retries() -> None:
    run = ScriptedRun(failed_some())
    async with watching(run) as pilot:
        shown = await footer(pilot)
        assert "quit" in shown
        assert not any(word in shown for word in ("pause", "skip", "throttle"))
        said = await press(pilot, "4", "r")
        assert "the run has ended: `run --retry-failed` takes up its 12 failed" in said
        for key in ("equals_sign", "x"):
            assert "the run has ended" in await press(pilot, key)
        assert len(pilot.app.screen_stack) == 1
        assert run.commands == []


async def test_a_viewer_that_only_looks_is_asked_nothing() -> None:
    def refuse(_: Command) -> str:
        raise UsageError("attached read-only: no command is sent")

    run = ScriptedRun(detailed(), answer=refuse)
    async with watching(run, Exits(remote=True, steers=False)) as pilot:
        assert "pause" not in await footer(pilot)
        for key in ("x", "equals_sign"):
            assert "attached read-only: no command is sent" in await press(pilot, key)
        assert run.commands == []
        for key in ("s", "r"):
            assert "not done: " in await press(pilot, key)
            assert len(pilot.app.screen_stack) == 1


async def test_datasets_that_were_paused_one_by_one_are_not_resumed_by_the_run_s_key() -> None:
    run = ScriptedRun(replace(detailed(), state="paused", paused=False))
    async with watching(run) as pilot:
        assert "p resumes them one by one" in await press(pilot, "P")
        assert run.commands == []


@pytest.mark.parametrize(("rows", "word"), [(49, "up to"), (50, "about")])
def test_a_worst_case_is_not_called_what_it_is_about(rows: int, word: str) -> None:
    view = replace(story().datasets[3], rows=700 + rows, restored_rows=700, in_flight=190)
    snapshot = replace(story(), datasets=(view,), in_flight=190, in_flight_cost_usd=3.83)
    assert at_stake(snapshot) == f"lose the 190 in flight, {word} $3.83 billed"


async def test_a_filter_hides_no_alarm() -> None:
    run = ScriptedRun(burst())
    async with watching(run) as pilot:
        await press(pilot, "slash", *"tulu", "enter")
        (canvas,) = pilot.app.screen_stack[0].query("#alarm").results(Canvas)
        assert plain(canvas.lines[0]).startswith(" ▲ ACTIVE rate_limit SiliconFlow 402 in the last")


# questions that go stale


@pytest.mark.parametrize(
    ("keys", "meanwhile", "reason"),
    [
        (("s",), dataset(detailed(), 3, state="done"), "B6_ultrachat · 15,000 prompts is done"),
        (("s",), done(), "the run has ended"),
        (("equals_sign",), done(), "the run has ended"),
        (("q",), done(), "the run has ended"),
        (("r",), dataset(detailed(), 3, failed=0), "has no failed prompts"),
        (("colon", *"drain", "enter"), draining(), "the run is draining already"),
    ],
)
async def test_a_question_that_has_answered_itself_closes(
    keys: tuple[str, ...], meanwhile: Snapshot, reason: str
) -> None:
    run = ScriptedRun(detailed())
    async with watching(run) as pilot:
        await press(pilot, *keys)
        assert len(pilot.app.screen_stack) == 2
        run.advance(meanwhile)
        said = await looked(pilot)
        assert len(pilot.app.screen_stack) == 1
        assert f"no longer: {reason}" in said or reason in said
        assert run.commands == []


async def test_a_yes_between_two_looks_is_no_order_either() -> None:
    run = ScriptedRun(story())
    async with watching(run) as pilot:
        await pilot.press("s")
        run.advance(dataset(story(), 3, state="done"))
        await pilot.press("y")
        await pilot.pause()
        assert "no longer: B6_ultrachat · 15,000 prompts is done" in await looked(pilot)
        assert run.commands == []


async def test_a_question_that_stands_stays() -> None:
    run = ScriptedRun(story())
    async with watching(run) as pilot:
        await pilot.press("s")
        run.advance(dataset(story(), 3, state="paused"))
        await looked(pilot)
        await pilot.press("y")
        await pilot.pause()
        assert run.commands == [Skip("B6_ultrachat")]


def test_what_is_moot() -> None:
    assert moot(Unskip("B6_ultrachat"), story()) == "B6_ultrachat · 15,000 prompts is not skipped"
    assert moot(Unskip("B6_ultrachat"), skipped()) == ""
    assert moot(Skip("no such"), story()) == ""
    assert moot(Drain(), story()) == ""
    assert moot(Drain(), draining()) == "the run is draining already"
    assert moot(ExcludeProvider("x"), done()) == "the run has ended"
    assert moot(None, story()) == ""


# keys typed ahead


def typed(app: EaglegenApp, *keys: str) -> None:
    """All at once, as a terminal sends them after a stall or a paste."""
    for key in keys:
        app.post_message(events.Key(key, key if len(key) == 1 else None))


async def test_keys_typed_ahead_are_for_what_the_key_before_them_opens() -> None:
    run = ScriptedRun(story())
    async with watching(run) as pilot:
        assert isinstance(pilot.app, EaglegenApp)
        typed(pilot.app, "s", "y")
        await looked(pilot)
        assert run.commands == [Skip("B6_ultrachat")]
        typed(pilot.app, "s", "n", "p", "q", "x")
        await looked(pilot)
        assert run.commands[1:] == [Pause("B6_ultrachat"), Stop()]


# words


async def test_the_run_says_itself_how_to_go_on_with_it() -> None:
    run = ScriptedRun(story())
    async with watching(run, Exits(again="This folder goes.")) as pilot:
        for keys in (("q",), ("colon", *"drain", "enter")):
            await press(pilot, *keys)
            canvases = pilot.app.screen.query(".dialog Canvas").results(Canvas)
            text = "\n".join(plain(line) for canvas in canvases for line in canvas.lines)
            assert "This folder goes." in text
            assert "same command" not in text
            await press(pilot, "escape")


@pytest.mark.parametrize("name", ["B6_ultrachat", "a_dataset_with_a_long_name_indeed"])
def test_a_copy_s_path_is_whole_on_80_columns(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    path = copies.save("text", name, NOW)
    said = copies.said("copied 12 lines", path, 69)
    assert len(said) <= 69
    shown = said.removeprefix("saved to ")
    assert Path(shown).expanduser().read_text() == "text"
    assert copies.said("copied 12 lines", path, 300) == f"copied 12 lines; saved to {path}"
