"""The row viewer: rows read from the end of a growing file, as text and token by token."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from detailed_run import detailed
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_run import HandClock, ScriptedRun
from textual.pilot import Pilot

from engine.disk.jsonlines import dump_line
from engine.disk.ledger import ROWS
from engine.disk.rundir import RUN
from engine.tokens.vocabulary import Vocabulary, load_vocabulary
from tui import rowfile
from tui.app import EaglegenApp
from tui.draw import row as drawn
from tui.draw.paint import line_width, plain
from tui.rowfile import Place
from tui.tokenview import Piece, pieces, vocabulary_of

NAME = "B6_ultrachat"


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load_vocabulary("kimi-k2.5")


def record(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": f"{NAME}/{number:016x}.0#0",
        "index": number,
        "turn": 0,
        "messages": [{"role": "user", "content": f"question {number}"}],
        "tools": None,
        "reasoning": "Let me think.",
        "content": f"answer {number}",
        "tool_calls": None,
        "prompt_ids": None,
        "completion_ids": None,
        "exactness": "matched",
        "flags": [],
        "finish_reason": "stop",
        "native_finish_reason": None,
        "model": "moonshotai/kimi-k2.5",
        "provider": "Novita",
        "usage": {"prompt_tokens": 9, "completion_tokens": 1234, "cost": 0.0036},
        "attempts": 2,
        "started_at": "2026-11-30T14:03:22.125Z",
        "latency_s": 61.0,
        **more,
    }


def file_of(folder: Path, rows: list[dict[str, Any]], end: bytes = b"") -> Path:
    path = folder / NAME / ROWS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(map(dump_line, rows)) + end)
    return path


# the file


@given(
    st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b" ")), max_size=30),
    st.binary(max_size=20).map(lambda b: b.replace(b"\n", b" ")),
    st.integers(1, 64),
)
@settings(max_examples=60)
def test_lines_come_backwards_whatever_the_block(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], torn: bytes, block: int
) -> None:  # fmt: skip
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in lines) + torn)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rowfile, "_BLOCK", block)
        places = list(rowfile.backwards(path))
    assert [rowfile.read_bytes(path, place) for place in places] == lines[::-1]
    for older, newer in zip(places[1:], places, strict=False):
        assert rowfile.after(path, older) == newer
        assert rowfile.before(path, newer) == older
    if places:
        assert rowfile.after(path, places[0]) is None
        assert rowfile.before(path, places[-1]) is None


def test_a_row_is_found_by_its_id_and_a_torn_end_is_left_out(tmp_path: Path) -> None:
    path = file_of(tmp_path, [record(n) for n in range(50)], b'{"id":"' + NAME.encode())
    place = rowfile.find(path, f"{NAME}/{7:016x}.0#0")
    assert place is not None
    assert rowfile.read(path, place)["content"] == "answer 7"
    assert rowfile.find(path, f"{NAME}/{7:016x}.0") is None
    assert [row["index"] for row in rowfile.tail(path, 3)] == [49, 48, 47]
    assert rowfile.tail(tmp_path / "none", 3) == []


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"[1]\nnot json\n")
    with pytest.raises(ValueError, match="holds no record"):
        rowfile.read(path, Place(0, 3))
    assert rowfile.tail(path, 5) == []


# tokens


@given(st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_pieces_are_the_text(vocabulary: Vocabulary, text: str) -> None:
    found = pieces(vocabulary, vocabulary.encode(text))
    assert "".join(piece.text for piece in found) == text


def test_special_tokens_stand_out_and_split_characters_stay_whole(vocabulary: Vocabulary) -> None:
    ids = vocabulary.encode("<|im_user|>user<|im_middle|>𠮷野家 🦜<|im_end|>")
    found = pieces(vocabulary, ids)
    assert [piece.text for piece in found if piece.special] == [
        "<|im_user|>",
        "<|im_middle|>",
        "<|im_end|>",
    ]
    assert "🦜" in "".join(piece.text for piece in found)
    assert all("\N{REPLACEMENT CHARACTER}" not in piece.text for piece in found)


def test_a_cut_character_is_shown_as_one(vocabulary: Vocabulary) -> None:
    whole = vocabulary.encode_plain("🦜")
    cut = [*whole[:-1], *vocabulary.encode("<|im_end|>")]
    found = pieces(vocabulary, cut)
    assert found[-1] == Piece("<|im_end|>", True)
    assert "\N{REPLACEMENT CHARACTER}" in found[0].text


def test_an_id_that_does_not_exist_is_an_error(vocabulary: Vocabulary) -> None:
    with pytest.raises(ValueError, match="not token ids"):
        pieces(vocabulary, [10**9])


@pytest.mark.parametrize(
    "run", [None, b"", b"[]", b'{"manifest": 3}', b'{"manifest": {"endpoint": []}}',
            b'{"manifest": {"endpoint": {"tokenizer": "none"}}}',
            b'{"manifest": {"endpoint": {"tokenizer": "gpt-9"}}}']
)  # fmt: skip
def test_a_run_without_a_vocabulary_has_none(tmp_path: Path, run: bytes | None) -> None:
    if run is not None:
        (tmp_path / RUN).write_bytes(run)
    assert vocabulary_of(str(tmp_path)) is None


# lines


@given(st.lists(st.tuples(st.text(max_size=30), st.booleans()), max_size=20), st.integers(4, 60))
def test_no_line_of_tokens_is_wider_than_the_screen(
    found: list[tuple[str, bool]], cells: int
) -> None:
    lines = drawn.flow([Piece(*each) for each in found], "text", cells)
    assert all(plain(line).isprintable() for line in lines)
    # a shown line break may stand beyond the last cell, where it is cut
    assert all(line_width(line) <= cells + 2 for line in lines)


def test_long_texts_are_shown_whole() -> None:
    text = "\n".join(("word " * 4000, "漢" * 3000, "", "end"))
    lines = list(drawn.paragraphs(text, 70))
    assert "".join(lines).count("word") == 4000
    assert "".join(lines).count("漢") == 3000
    assert lines[-2:] == ["", "end"]


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"messages": 3, "flags": "x", "usage": [], "tool_calls": {"a": 1}, "content": ["part"]},
        {"messages": [3, {"role": None, "content": None}, {"tool_calls": [{}]}], "usage": None},
        {"usage": {"cost": "much", "prompt_tokens": "x"}, "latency_s": "long", "exactness": None},
        {"content": "\x1b[2J[/]\udc80", "reasoning": "\u202e"},
    ],
)
def test_any_record_can_be_drawn(row: dict[str, Any]) -> None:
    for cells in (8, 40, 76):
        lines = [*drawn.as_text(row, cells), *drawn.as_tokens(row, (), (), cells)]
        assert all(plain(line).isprintable() for line in lines)


# the screen


async def settle(pilot: Pilot[None]) -> str:
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    strips = pilot.app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


async def press(pilot: Pilot[None], *keys: str) -> str:
    for key in keys:
        await pilot.press(key)
        shown = await settle(pilot)
    return shown


def app_on(folder: Path) -> EaglegenApp:
    snapshot = replace(detailed(), output=str(folder))
    views = list(snapshot.datasets)
    newest = replace(views[3].last_rows[0], id=f"{NAME}/{29:016x}.0#0")
    views[3] = replace(views[3], last_rows=(newest, *views[3].last_rows[1:]))
    return EaglegenApp(ScriptedRun(replace(snapshot, datasets=tuple(views))), clock=HandClock())


async def test_rows_are_read_older_newer_and_suspects_only(tmp_path: Path) -> None:
    rows = [record(n, exactness="mismatch" if n == 5 else "matched") for n in range(30)]
    rows[11]["flags"] = ["truncated"]
    path = await asyncio.to_thread(file_of, tmp_path, rows)
    app = app_on(tmp_path)
    async with app.run_test(size=(80, 36)) as pilot:
        shown = await press(pilot, "enter", "enter")
        for part in (
            "answer 29",
            "question 29",
            "Let me think.",
            "assistant reasoning",
            "Novita, model moonshotai/kimi-k2.5",
            "took 1m 01s, attempt 2, <$0.01",
            "9 prompt, 1,234 completion as the server counts; no ids here",
        ):
            assert part in shown, part
        assert "answer 27" in await press(pilot, "n", "right")
        assert "answer 28" in await press(pilot, "N")
        assert "answer 29" in await press(pilot, "left")
        assert "no newer row" in await press(pilot, "N")
        await asyncio.to_thread(append, path, record(30))
        assert "answer 30" in await press(pilot, "N")
        shown = await press(pilot, "w")
        assert "suspects only" in shown
        assert "answer 11" in shown
        assert "truncated" in shown
        assert "mismatch: no reading fits the count" in await press(pilot, "n")
        assert "no older suspect row" in await press(pilot, "n")
        await press(pilot, "w")
        assert "answer 4" in await press(pilot, "n")
        assert "no tokens here" in await press(pilot, "v")


def append(path: Path, row: dict[str, Any]) -> None:
    with path.open("ab") as file:
        file.write(dump_line(row))


async def test_tokens_and_text_of_a_row_with_ids(tmp_path: Path, vocabulary: Vocabulary) -> None:
    prompt = vocabulary.encode("<|im_user|>user<|im_middle|>Why?<|im_end|>")
    answer = vocabulary.encode("Because\nof this.<|im_end|>")
    rows = [record(29, prompt_ids=prompt, completion_ids=answer)]
    await asyncio.to_thread(file_of, tmp_path, rows)
    manifest = {"manifest": {"endpoint": {"tokenizer": "kimi-k2.5"}}}
    await asyncio.to_thread((tmp_path / RUN).write_bytes, orjson.dumps(manifest))
    app = app_on(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        shown = await press(pilot, "enter", "enter")
        assert "<|im_user|>user<|im_middle|>Why?<|im_end|>" in shown
        assert "Because\\n" in shown
        assert f"{len(prompt)} and {len(answer)} ids here" in shown
        assert "not supervised" in shown
        shown = await press(pilot, "v")
        assert "<|im_user|>" not in shown
        assert "question 29" in shown
        await pilot.resize_terminal(50, 24)
        assert "question 29" in await settle(pilot)


async def test_a_dataset_without_rows_says_so(tmp_path: Path) -> None:
    app = app_on(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        assert "no row has been written yet" in await press(pilot, "enter", "enter")
        assert "no row has been written yet" in await press(pilot, "n", "N", "w", "v")


async def test_a_row_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    path = await asyncio.to_thread(file_of, tmp_path, [])
    await asyncio.to_thread(path.write_bytes, b"not [json]\n")
    app = app_on(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        assert "the row cannot be read" in await press(pilot, "enter", "enter")
        assert app.is_running
