"""Names and texts from outside never crash the screen, and never move what stands beside them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from detailed_run import detailed
from rich.cells import cell_len
from scripted_run import HandClock, ScriptedRun, dataset, many
from textual.screen import Screen

from engine.commands import Pause
from engine.disk.jsonlines import dump_line
from engine.view.snapshot import (
    ErrorLine,
    FailureLine,
    Flying,
    JournalEntry,
    ProviderView,
    RowLine,
    Snapshot,
)
from tui.app import EaglegenApp
from tui.draw.paint import plain
from tui.parting import Exits
from tui.picture import NOW, story
from tui.widgets.canvas import Canvas

HOSTILE = [
    "HTTP 429 [/v1/chat/completions]",
    "[bold red]x[/bold red] [/] [[",
    "[@click=app.quit]press[/]",
    "\x1b[2J\x1b[31mred\x1b[0m",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x9b2J and \x90 and \x84",
    "line\nbreak\r\nand\ttab",
    "\u202eright to left override",
    "\u2067isolate\u2069 \u200f mark",
    "שלום עולם",
    "مرحبا بالعالم ١٢٣",
    "你好世界" * 30,
    "👩‍🚀👨‍👩‍👧‍👦 🏳️‍🌈 🇩🇪",
    "e" + "\u0301" * 500,
    "x" * 10_000,
    "zero\u200bwidth\u200djoiner\ufeff",
    "\x00\x01\x7f",
    "lone surrogate \udc80",
    "",
    "   ",
]


def hostile(text: str) -> Snapshot:
    error = ErrorLine(text, text, 3, "ACTIVE", NOW - 60, NOW, text, 3, "rising", text)
    views = [
        replace(
            view, reason=text, errors=(error, replace(error, verdict="STRUCTURAL")), flags={text: 3}
        )
        for view in story().datasets
    ]
    views[3] = replace(views[3], name=text)
    return replace(
        story(),
        run=text,
        model=text,
        endpoint=text,
        reason=text,
        limit_reason=text,
        state="waiting",
        datasets=tuple(views),
        journal=(JournalEntry(NOW, "note", text, text),),
    )


@pytest.mark.slow
async def test_hostile_text_is_shown_in_its_place() -> None:
    run = ScriptedRun(story())
    app = EaglegenApp(run, clock=HandClock())
    async with app.run_test(size=(80, 24)) as pilot:
        for text in HOSTILE:
            run.advance(hostile(text))
            app.poll()
            await pilot.press("4", "s")
            check(app, text)
            await pilot.press("n", "q")
            check(app, text)
            await pilot.press("escape")
            assert len(app.screen_stack) == 1
        await pilot.resize_terminal(160, 48)
        for text in HOSTILE:
            run.advance(hostile(text))
            app.poll()
            await pilot.pause()
            check(app, text)


def hostile_details(text: str) -> Snapshot:
    snapshot = hostile(text)
    row = RowLine(text, NOW, text, None, text, (text,), text, 1.0, text)
    views = tuple(
        replace(
            view,
            exactness={text: 3, "mismatch": 1},
            finish_reasons={text: 3},
            lengths=((1, 3),),
            slowest=(Flying(text, 9.0, 1),),
            last_rows=(row,),
            last_failures=(FailureLine(text, NOW, text, text, 1),),
        )
        for view in snapshot.datasets
    )
    provider = ProviderView(text, 1, 1, profile=text, prompt_delta=text, state=text)
    return replace(snapshot, datasets=views, providers=(provider,))


@pytest.mark.parametrize("keys", [("enter",), ("e",), ("o",)])
@pytest.mark.parametrize(("size", "plainly"), [((80, 24), True), ((160, 48), False)])
async def test_hostile_text_on_every_other_screen(
    keys: tuple[str, ...], size: tuple[int, int], plainly: bool
) -> None:
    run = ScriptedRun(story())
    app = EaglegenApp(run, clock=HandClock(), ascii=plainly)
    async with app.run_test(size=size) as pilot:
        await pilot.press(*keys)
        for text in HOSTILE:
            run.advance(hostile_details(text))
            app.poll()
            await pilot.pause()
            check_canvases(app.screen, text)
        await pilot.press("x", "escape", "colon", "p", "a", "u", "s", "e", "space", "tab", "enter")
        await pilot.pause()
        check_canvases(app.screen, HOSTILE[-1])


@pytest.mark.slow
async def test_a_hostile_dataset_s_rows_cannot_be_read_and_nothing_breaks() -> None:
    run = ScriptedRun(story())
    app = EaglegenApp(run, clock=HandClock())
    async with app.run_test(size=(80, 24)) as pilot:
        for text in HOSTILE:
            run.advance(hostile_details(text))
            await pilot.press("enter", "enter")
            await app.workers.wait_for_complete()
            check_canvases(app.screen, text)
            await pilot.press("escape", "escape")


async def test_hostile_prompts_and_replies_are_read_row_by_row(tmp_path: Path) -> None:
    name = story().datasets[3].name
    path = tmp_path / name / "rows.jsonl"
    path.parent.mkdir()
    path.write_bytes(b"".join(row_of(n, text) for n, text in enumerate(HOSTILE)))
    newest = replace(detailed().datasets[3].last_rows[0], id=f"{len(HOSTILE) - 1}")
    run = ScriptedRun(dataset(replace(detailed(), output=str(tmp_path)), 3, last_rows=(newest,)))
    app = EaglegenApp(run, clock=HandClock())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter", "enter")
        for number, text in reversed(list(enumerate(HOSTILE))):
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert f" {number} " in f" {plain_of(app)} "
            check_canvases(app.screen, text)
            await pilot.press("G")
            check_canvases(app.screen, text)
            await pilot.press("y", "n")


def row_of(number: int, text: str) -> bytes:
    said = text.replace("\udc80", "?")
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": None}
    row = {
        "id": f"{number}",
        "index": number,
        "turn": 0,
        "messages": [{"role": said, "content": said}],
        "reasoning": said,
        "content": said,
        "tool_calls": [{"function": {"name": said, "arguments": said}}],
        "exactness": "matched",
        "flags": [said],
        "finish_reason": said,
        "model": said,
        "provider": said,
        "usage": usage,
        "attempts": 1,
        "latency_s": 1.0,
    }
    return dump_line(row)


def plain_of(app: EaglegenApp) -> str:
    canvases = [canvas for canvas in app.screen.query(Canvas) if canvas.display]
    return " ".join(plain(line) for canvas in canvases for line in canvas.lines)


@pytest.mark.slow
async def test_hostile_names_in_the_pickers_and_orders_of_others() -> None:
    run = ScriptedRun(story())
    app = EaglegenApp(run, clock=HandClock(), exits=Exits(remote=True))
    async with app.run_test(size=(80, 24)) as pilot:
        for number, text in enumerate(HOSTILE):
            entry = JournalEntry(NOW + number, "command", text, None, "control")
            snapshot = hostile_details(text)
            run.advance(replace(snapshot, journal=(entry,)))
            app.poll()
            await pilot.pause()
            check_canvases(app.screen, text)
            await pilot.press("x")
            check_dialog(app, text)
            await pilot.press("enter")
            check_dialog(app, text)
            await pilot.press("escape", "r", "y")
            await pilot.pause()
            check_canvases(app.screen, text)
            assert len(app.screen_stack) == 1, text


def check_dialog(app: EaglegenApp, text: str) -> None:
    assert len(app.screen_stack) == 2
    for canvas in app.screen.query(Canvas):
        for y, line in enumerate(canvas.lines):
            assert plain(line).isprintable(), text
            assert cell_len(plain(line)) <= canvas.content_size.width, text
            assert canvas.render_line(y).cell_length == canvas.content_size.width, text


def check_canvases(screen: Screen[object], text: str) -> None:
    for canvas in screen.query(Canvas):
        cells = canvas.content_size.width
        for y, line in enumerate(canvas.lines if canvas.display else ()):
            assert plain(line).isprintable(), text
            assert canvas.render_line(y).cell_length == cells, text
            assert cell_len(plain(line)) == cells, text


async def test_hostile_answers_are_shown_as_they_are() -> None:
    texts = iter(HOSTILE)
    run = ScriptedRun(story(), answer=lambda _: next(texts))
    app = EaglegenApp(run, clock=HandClock())
    async with app.run_test(size=(80, 24)) as pilot:
        for text in HOSTILE:
            await pilot.press("p")
            await pilot.pause()
            check(app, text)
        assert run.commands[0] == Pause("B6_ultrachat")


def check(app: EaglegenApp, text: str) -> None:
    for canvas in app.screen_stack[0].query(Canvas):
        cells = canvas.content_size.width
        for y, line in enumerate(canvas.lines if canvas.display else ()):
            assert plain(line).isprintable(), text
            assert canvas.render_line(y).cell_length == cells, text
            assert cell_len(plain(line)) == cells, text
    assert "15,000 prompts" in text_of(app), text


def text_of(app: EaglegenApp) -> str:
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


@pytest.mark.parametrize("size", [(20, 5), (40, 12), (80, 24), (200, 60), (10, 3), (1, 1)])
async def test_every_size_is_drawn_and_the_screen_grows_back(size: tuple[int, int]) -> None:
    app = EaglegenApp(ScriptedRun(story()), clock=HandClock())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        before = text_of(app)
        await pilot.resize_terminal(*size)
        await pilot.pause()
        small = text_of(app)
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        assert text_of(app) == before
    if size[0] >= 20:
        assert "► RUNNING" in small
        assert "B6_" in small
        assert "15,000 prompts" in small or size[0] < 40


async def test_more_datasets_than_lines_scroll_and_say_what_is_hidden() -> None:
    app = EaglegenApp(ScriptedRun(many(40)), clock=HandClock())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*"j" * 25)
        await pilot.pause()
        text = text_of(app)
        assert "more above" in text
        assert "below" in text
        assert "set_28" in text


async def test_datasets_may_come_later() -> None:
    run = ScriptedRun(replace(story(), datasets=()))
    app = EaglegenApp(run, clock=HandClock())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        run.advance(story())
        app.poll()
        await pilot.pause()
        assert "B6_ultrachat · 15,000 prompts" in text_of(app)
