"""Prompt files as they come: formats, compression, encodings, broken rows, short sources."""

from __future__ import annotations

import csv
import gzip
import importlib.util
import io
import json
from pathlib import Path
from typing import Any

import pytest
from engine_parts import HEAD, dataset_text, manifest_of

from engine.errors import ExitCode, SourceError, UsageError
from engine.feed.prompts import InvalidRow, Prompt
from engine.feed.sources import PromptFeed, count_rows, read_rows
from engine.plan import Options, Plan, make_plan

BOM = b"\xef\xbb\xbf"


def rows_of(path: Path) -> list[tuple[int, Any, str]]:
    return [(row.line, row.value, row.problem) for row in read_rows(path.name, path)]


def texts(path: Path) -> list[Any]:
    return [row.value["prompt"] for row in read_rows(path.name, path)]


def feed(path: Path, *, stop: int = 100, **more: Any) -> list[Prompt | InvalidRow]:
    text = HEAD + dataset_text("D", stop, **more).replace("D.jsonl", path.name)
    manifest = manifest_of(text, path.parent)
    source = PromptFeed(manifest, manifest.datasets[0], stop=stop)
    found: list[Prompt | InvalidRow] = []
    while batch := source.batch(2):
        found += batch
    return found


def csv_bytes(*rows: list[str]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


JSONL = b'{"prompt":"a"}\n{"prompt":"b"}\n{"prompt":"c"}\n'
JSON = b'[{"prompt":"a"},{"prompt":"b"},{"prompt":"c"}]'
CSV = b"prompt,other\na,1\nb,2\nc,3\n"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("p.jsonl", JSONL),
        ("p.ndjson", JSONL),
        ("p.JSONL", JSONL),
        ("p.json", JSON),
        ("p.json", b'{"version":1,"data":' + JSON + b"}"),
        ("p.csv", CSV),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("mark", [b"", BOM])
def test_every_format_plain_or_packed_with_or_without_a_byte_order_mark(
    tmp_path: Path, name: str, data: bytes, packed: bool, mark: bytes
) -> None:
    path = tmp_path / (name + ".gz" if packed else name)
    path.write_bytes(gzip.compress(mark + data, mtime=0) if packed else mark + data)
    assert texts(path) == ["a", "b", "c"]
    assert count_rows(path.name, path) == 3
    assert count_rows(path.name, path, enough=2) == 2


@pytest.mark.parametrize(
    "data",
    [
        JSONL.replace(b"\n", b"\r\n"),
        JSONL.rstrip(b"\n"),
        b"\n\n" + JSONL.replace(b"\n", b"\n\n  \n\r\n"),
        BOM + b"\n" + JSONL,
        b'  {"prompt": "a"}  \n\t{"prompt":"b"}\n{"prompt":"c"}\n\n\n',
    ],
)
def test_blank_lines_and_windows_line_ends_are_no_rows(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(data)
    assert texts(path) == ["a", "b", "c"]
    assert count_rows(path.name, path) == 3


def test_an_unreadable_line_is_counted_with_its_number_and_stops_nothing(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(
        b'{"prompt":"a"}\n\n{"prompt":\n{"prompt":"\xff"}\n"text"\n{"other":1}\n'
        + b"[" * 100_000
        + b'\n{"prompt":"z"}\n'
    )
    found = feed(path)
    bad = [item for item in found if isinstance(item, InvalidRow)]
    assert [(item.index, item.line) for item in bad] == [(1, 3), (2, 4), (3, 5), (4, 6), (5, 7)]
    assert [item.reason.split(":")[0] for item in bad] == [
        "not valid JSON",
        "not valid JSON",
        "the row is text, not an object",
        "none of messages, conversations, turns, prompt, question, instruction is in the row",
        "not valid JSON",
    ]
    assert [item.index for item in found if isinstance(item, Prompt)] == [0, 6]
    assert count_rows(path.name, path) == len(found) == 7


def test_lone_surrogates_and_nan_are_read_as_real_sets_hold_them(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"prompt":"a \\ud83d b"}\n{"prompt":"c","score":NaN}\n')
    assert texts(path) == ["a \ud83d b", "c"]


def test_a_csv_field_may_span_lines_and_is_named_by_its_first(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(
        csv_bytes(["prompt", "system"], ['a\nb, "c"\n', ""], ["d", "s\ns"])
        + b"\r\n"
        + csv_bytes(["e", "", "too many"], ["f"])
    )
    assert rows_of(path) == [
        (2, {"prompt": 'a\nb, "c"\n'}, ""),
        (5, {"prompt": "d", "system": "s\ns"}, ""),
        (8, None, "more fields than the header has"),
        (9, {"prompt": "f"}, ""),
    ]


def test_a_csv_holds_chats_as_json_in_its_fields(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    chat = json.dumps([{"role": "user", "content": "hö"}], ensure_ascii=False)
    path.write_bytes(csv_bytes(["messages", "turns"], [chat, ""], ["", '["a","b"]'], ["[{", ""]))
    good, turns, bad = feed(path)
    assert isinstance(good, Prompt)
    assert isinstance(turns, Prompt)
    assert isinstance(bad, InvalidRow)
    assert good.messages == ({"role": "user", "content": "hö"},)
    assert turns.turns == (0, 1)
    assert bad.reason.startswith("messages: not valid JSON")


def test_a_csv_row_that_is_not_utf8_is_invalid_as_in_jsonl(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(b"prompt\ngut\nsch\xf6n\nsch\xc3\xb6n\n")
    good, bad, also = feed(path)
    assert isinstance(bad, InvalidRow)
    assert (bad.index, bad.line, bad.reason) == (1, 3, "prompt is not valid UTF-8")
    assert isinstance(good, Prompt)
    assert isinstance(also, Prompt)
    assert also.messages[0]["content"] == "schön"


def test_a_very_long_csv_field_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(b"prompt\n" + b"x" * 300_000 + b"\n")
    assert len(texts(path)[0]) == 300_000


@pytest.mark.parametrize("name", ["p.jsonl", "p.json", "p.csv"])
def test_an_empty_source_holds_no_rows_or_says_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"")
    if name.endswith(".json"):
        with pytest.raises(SourceError, match="not valid JSON"):
            rows_of(path)
    else:
        assert rows_of(path) == []
        assert count_rows(name, path) == 0


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("p.json", b"{]", "not valid JSON"),
        ("p.json", b'{"a": 1}', "holds no list of rows"),
        ("p.json", b'"text"', "holds no list of rows"),
        ("p.json", b'["\xff"]', "not valid JSON"),
        ("p.txt", b"", "unknown format .txt"),
        ("p.jsonl.gz", b"no gzip", "cannot be read on"),
        ("p.jsonl.gz", gzip.compress(JSONL * 50, mtime=0)[:-20], "cannot be read on"),
        ("p.csv.gz", gzip.compress(CSV, mtime=0)[:-9], "cannot be read on"),
        ("p.jsonl.gz", gzip.compress(JSONL, mtime=0)[:10] + b"\xff" * 50, "cannot be read on"),
    ],
)
def test_a_source_that_is_broken_as_a_whole_is_a_usage_error(
    tmp_path: Path, name: str, data: bytes, words: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(SourceError, match=words) as caught:
        rows_of(path)
    assert str(path) in caught.value.message
    assert caught.value.exit_code is ExitCode.USAGE


def test_damage_inside_a_gzip_stream_is_a_usage_error_too(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl.gz"
    packed = bytearray(gzip.compress(b"".join(b'{"prompt":"%d"}\n' % i for i in range(5000))))
    packed[len(packed) // 2] ^= 0xFF
    packed[len(packed) // 2 + 1 : len(packed) // 2 + 9] = b"\xff" * 8
    path.write_bytes(packed)
    with pytest.raises(SourceError, match="cannot be read on"):
        count_rows(path.name, path)


def test_a_missing_source_and_a_folder_are_usage_errors(tmp_path: Path) -> None:
    (tmp_path / "d.jsonl").mkdir()
    for name in ("none.jsonl", "none.json", "d.jsonl"):
        with pytest.raises(SourceError, match="no such file"):
            count_rows(name, tmp_path / name)


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is not None, reason="the extra is here")
def test_parquet_and_hub_sources_name_the_extra_that_they_need(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    path.write_bytes(b"PAR1")
    for source in ("p.parquet", "hf:owner/name:train"):
        with pytest.raises(SourceError) as caught:
            next(iter(read_rows(source, path)))
        assert "eaglegen-tui[hf]" in caught.value.hint


# --- the first N ------------------------------------------------------------------------------


def test_only_the_first_rows_are_read_and_unreadable_ones_count_among_them(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(b'{"prompt":"a"}\nbroken\n{"prompt":"a"}\n{"prompt":"d"}\n')
    found = feed(path, stop=3)
    assert [type(item) for item in found] == [Prompt, InvalidRow, Prompt]
    assert [item.key[-2:] for item in found if isinstance(item, Prompt)] == [".0", ".1"]


def test_rows_are_read_lazily(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_bytes(JSONL * 2000)
    manifest = manifest_of(HEAD + dataset_text("p", 6000), tmp_path)
    source = PromptFeed(manifest, manifest.datasets[0], stop=6000)
    assert len(source.batch(2)) == 2
    path.write_bytes(b"")  # what was not read yet is gone, but for the file's read-ahead
    rest = 0
    while batch := source.batch(512):
        rest += len(batch)
    assert rest < 6000 - 2


def planned(tmp_path: Path, prompts: int, held: int, **options: Any) -> Plan:
    (tmp_path / "D.jsonl").write_bytes(b'{"prompt":"a"}\n' * held)
    manifest = manifest_of(HEAD + dataset_text("D", prompts), tmp_path)
    return make_plan(manifest, Options(**options))


def test_a_source_shorter_than_its_manifest_is_refused_with_both_numbers(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as caught:
        planned(tmp_path, prompts=15000, held=10)
    assert "15000" in caught.value.message
    assert "holds 10" in caught.value.message
    assert "D.jsonl" in caught.value.message
    assert "--allow-short" in caught.value.hint
    assert caught.value.exit_code is ExitCode.USAGE


def test_allow_short_takes_what_is_there_and_keeps_the_manifests_number(tmp_path: Path) -> None:
    (plan,) = planned(tmp_path, prompts=15000, held=10, allow_short=True).datasets
    assert (plan.prompts, plan.stop, plan.dataset.prompts) == (10, 10, 15000)


def test_a_pilot_reads_fewer_rows_but_keeps_the_total(tmp_path: Path) -> None:
    (plan,) = planned(tmp_path, prompts=8, held=10, limit=3).datasets
    assert (plan.prompts, plan.stop) == (8, 3)
    with pytest.raises(SourceError):
        planned(tmp_path, prompts=15, held=10, limit=3)


def test_unreadable_rows_count_towards_what_a_source_holds(tmp_path: Path) -> None:
    (tmp_path / "D.jsonl").write_bytes(b'{"prompt":"a"}\nbroken\n\n"x"\n')
    manifest = manifest_of(HEAD + dataset_text("D", 3), tmp_path)
    assert make_plan(manifest, Options()).datasets[0].prompts == 3


def test_an_unknown_dataset_in_only_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        planned(tmp_path, prompts=1, held=1, only=("E",))
    assert "E" in caught.value.message
    assert "D" in caught.value.hint
