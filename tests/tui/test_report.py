"""`report`: one page that stands alone, says whose each number is, and harms nobody."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from detailed_run import detailed
from e2e_desk import Desk, Result
from taped import MANIFEST, START, break_lines, ended, event, moving, write_run

from engine.disk.jsonlines import dump_line
from engine.disk.rundir import HISTORY, hold
from engine.errors import UsageError
from engine.past.tape import read_tape
from engine.view.snapshot import ErrorLine, ProviderView, Snapshot
from tui.report.markup import Outside, masked
from tui.report.page import host_of, render

KEY = "sk-or-v1-0123456789abcdef0123456789abcdef"
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \"quoted' & more "
    "</style></title>\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd "
    "\x1b[31mred\x1b[0m \x00 zero\u200bwidth \ud800 [bold]x[/]"
)
VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """A report as a browser reads it: every element closed, texts and attributes collected."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text("utf-8")
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(self.source)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path) as desk:
        yield desk


def reported(desk: Desk, *options: str, code: int = 0) -> Result:
    result = desk.run("report", "out", *options)
    assert result.code == code, result.err
    return result


def page_of(desk: Desk) -> Page:
    reported(desk)
    return Page(desk.folder / "out" / "report.html")


def story_run(folder: Path) -> Path:
    """Forty points, then the story's end with everything that a page may tell."""
    shown = detailed()
    moved = shown.heartbeat_at - START - 400
    last = replace(shown, heartbeat_at=shown.heartbeat_at - moved, pid=4712)
    return write_run(
        folder,
        moving(40),
        [ended(last)],
        events=[
            event(60, "command", "paused the run", command="pause"),
            event(61, "state", "run running → paused", state="paused"),
            event(90, "state", "run paused → running", state="running"),
            event(200, "verdict", "rate_limit from SiliconFlow is RESOLVED"),
        ],
    )


def test_a_page_that_stands_alone(desk: Desk) -> None:
    story_run(desk.files.folder)
    result = reported(desk)
    assert result.out == "out/report.html\n"
    assert "2 sessions, 41 points in time" in result.err
    page = Page(desk.folder / "out" / "report.html")
    assert len(page.source.encode()) < 300_000
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(page.tags)
    assert not [value for name, value in page.attributes if name in {"src", "href", "action"}]
    assert not re.search(r"url\(|@import|https?://(?!openrouter\.ai)", page.source)
    assert "prefers-color-scheme: dark" in page.source
    assert "@media print" in page.source
    assert page.tags.count("svg") > 5


def test_what_the_page_tells(desk: Desk) -> None:
    story_run(desk.files.folder)
    text = page_of(desk).text
    for told in (
        "kimi-k25-eagle3",
        "moonshotai/kimi-k2.5",
        "https://openrouter.ai/api/v1",
        "gpu-07",
        "temperature 1.0, top_p 0.95, max_tokens 8192",
        "B6_ultrachat · 15,000 prompts",
        "946 in 2m 48s, 939 of these prompts answered since, 7 wait",
        "RESOLVED",
        "every dataset is complete",
        "cap $86.00",
        "engine : ids from the server itself",
        "SiliconFlow",
        "paused the run",
        "the next session, 10s later",
    ):
        assert told in text, told


def test_every_dataset_row_has_its_name_and_total(desk: Desk) -> None:
    story_run(desk.files.folder)
    text = page_of(desk).text
    view = detailed().datasets[3]
    for kind, counts in (("grade", view.exactness), ("flag", view.flags)):
        assert counts
        for name, count in counts.items():
            assert f"{count:,} {name}" in text, kind
    for view in detailed().datasets:
        label = f"{view.name} · {view.prompts:,} prompts"
        assert text.count(label) >= 2, label


def hostile(snapshot: Snapshot) -> Snapshot:
    line = ErrorLine(HOSTILE, HOSTILE, 3, "ACTIVE", START, START + 1, HOSTILE, words=HOSTILE)
    view = replace(
        snapshot.datasets[0],
        reason=HOSTILE,
        errors=(line,),
        exactness={HOSTILE: 2},
        flags={HOSTILE: 1},
        finish_reasons={HOSTILE: 2},
        rows=2,
    )
    provider = ProviderView(HOSTILE, rows=1, profile=HOSTILE, state=HOSTILE)
    return replace(
        snapshot,
        run=HOSTILE,
        model=HOSTILE,
        host=HOSTILE,
        endpoint=HOSTILE,
        reason=HOSTILE,
        datasets=(view, *snapshot.datasets[1:]),
        providers=(provider,),
    )


def test_hostile_text_is_text(desk: Desk) -> None:
    points = [hostile(snapshot) for snapshot in moving(3)]
    events = [event(5, "command", HOSTILE, command=HOSTILE, dataset=HOSTILE)]
    events.append(event(6, HOSTILE, HOSTILE))
    run = {"manifest": {"endpoint": {"base_url": HOSTILE, "tokenizer": HOSTILE}}}
    folder = write_run(desk.files.folder, points, [hostile(moving(1)[0])], events=events, run=run)
    name = points[0].datasets[0].name
    (folder / name).mkdir()
    failure = {"id": HOSTILE, "family": HOSTILE, "message": HOSTILE, "attempts": 1}
    record = dump_line({**failure, "at": "2026-11-30T14:03:22Z"})
    (folder / name / "failures.jsonl").write_bytes(record)
    page = page_of(desk)
    assert not {"script", "img"} & set(page.tags)
    assert page.tags.count("style") == 1
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "<script>alert(1)</script>" in page.text
    assert "\\e[31mred" in page.text
    assert "\\u202e" in page.text
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", page.source
    )


def test_no_key_is_on_the_page(desk: Desk) -> None:
    desk.environment["EAGLEGEN_API_KEY"] = "planted/key+of==nobody"
    words = f"No such key {KEY}; Authorization: Bearer abcdef0123456789; planted/key+of==nobody"
    base = moving(1)[0]
    line = ErrorLine("auth", None, 1, "STRUCTURAL", START, START, words, words=words)
    view = replace(base.datasets[0], errors=(line,))
    shown = replace(base, datasets=(view, *base.datasets[1:]), reason=words)
    endpoint = {
        "base_url": f"https://me:{KEY}@host.example/v1?key={KEY}",
        "headers": {"authorization": KEY},
        "extra_body": {"api_key": KEY},
    }
    write_run(
        desk.files.folder,
        [shown],
        events=[event(1, "note", words)],
        run={"manifest": {"endpoint": endpoint}},
    )
    page = page_of(desk)
    assert KEY not in page.source
    assert "abcdef0123456789" not in page.source
    assert "planted/key" not in page.source
    assert "No such key ***" in page.text
    assert "https://host.example/v1" in page.text


def test_masking_leaves_plain_words_alone() -> None:
    for words in (
        "token budget reached",
        "the key is wrong",
        "ask-me",
        "desk-top",
        "risk-free-rate",
    ):
        assert masked(words) == words
    assert masked("api_key=abcdefgh1") == "***"
    assert masked("basic dXNlcjpwYXNz and") == "*** and"
    assert Outside(["sesame"]).text("open sesame") == "open ***"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1"),
        ("http://u:p@127.0.0.1:8000/v1?x=1#y", "http://127.0.0.1:8000/v1"),
        ("http://[::1", "?"),
    ],
)
def test_an_endpoint_is_shown_without_what_may_be_secret(url: str, shown: str) -> None:
    assert host_of(url) == shown


def test_a_file_that_is_no_report_stays(desk: Desk) -> None:
    write_run(desk.files.folder, moving(3))
    mine = desk.folder / "mine.html"
    mine.write_text("<p>my notes</p>")
    refused = reported(desk, "--out", "mine.html", code=2)
    assert "is there and no report of ours" in refused.err
    assert mine.read_text() == "<p>my notes</p>"
    assert reported(desk, "--out", "mine.html", "--force").out == "mine.html\n"
    reported(desk, "--out", "mine.html")
    assert "no/such" in reported(desk, "--out", "no/such/folder.html", code=2).err


@pytest.mark.parametrize("out", ["out/run.json", "out/A/rows.jsonl", "out/A/new.html", "out/a.txt"])
def test_the_run_s_own_files_stay_though_it_is_forced(desk: Desk, out: str) -> None:
    write_run(desk.files.folder, moving(3))
    rows = desk.folder / "out" / "A" / "rows.jsonl"
    rows.parent.mkdir(exist_ok=True)
    rows.write_text("paid for\n")
    before = (desk.folder / "out" / "run.json").read_bytes()
    assert "among the run's own files" in reported(desk, "--out", out, "--force", code=2).err
    assert rows.read_text() == "paid for\n"
    assert (desk.folder / "out" / "run.json").read_bytes() == before
    reported(desk, "--out", "out/second.html")


def test_a_live_run_is_called_live(desk: Desk) -> None:
    write_run(desk.files.folder, moving(5))
    with hold(desk.files.folder, "2026-11-30T14:03:22Z"):
        text = page_of(desk).text
    assert "under way when this page was made" in text
    assert "under way (running)" in text


def test_a_killed_run_is_called_that(desk: Desk) -> None:
    write_run(desk.files.folder, moving(5))
    text = page_of(desk).text
    assert "STOPPED" in text
    assert "without a word while running: its process was killed or lost" in text


def test_odd_lines_are_counted(desk: Desk) -> None:
    folder = write_run(desk.files.folder, moving(5))
    break_lines(folder / HISTORY, b"{", b"{}")
    assert "2 unreadable lines left out (history.jsonl)" in reported(desk).err
    assert "history.jsonl 2" in Page(folder / "report.html").text


def test_a_long_journal_is_cut_and_counted(desk: Desk) -> None:
    events = [event(n, "note", f"entry {n}") for n in range(1000)]
    write_run(desk.files.folder, moving(5), events=events)
    text = page_of(desk).text
    assert "The newest 300 of 1,000 entries, newest first; 700 earlier ones" in text
    assert "entry 999" in text
    assert "entry 699 " not in text


def test_a_run_of_days_stays_small(desk: Desk) -> None:
    write_run(desk.files.folder, moving(2000), moving(500, START + 90_000))
    assert len(page_of(desk).source.encode()) < 300_000


def test_a_run_without_history_is_refused(desk: Desk) -> None:
    write_run(desk.files.folder, [])
    assert "nothing has been recorded" in reported(desk, code=2).err
    with pytest.raises(UsageError):
        read_tape(desk.folder / "nowhere")


def test_one_point_is_enough(tmp_path: Path) -> None:
    tape = read_tape(write_run(tmp_path, moving(1), run=MANIFEST))
    assert b"B6_ultrachat" in render(tape, START, Outside())
