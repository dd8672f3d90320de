"""What a person may set for the screen: keys, themes, rate, bandwidth; refused before a start."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from detailed_run import detailed
from e2e_desk import Desk
from e2e_provider import playing, slow
from life_terminal import Terminal, command
from scripted_run import HandClock, ScriptedRun
from textual.pilot import Pilot

import themes
from tui.app import EaglegenApp
from tui.draw.paint import plain
from tui.widgets.canvas import Canvas

PROMPTS = 400


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with playing(latency=slow(0.05)) as provider, Desk(tmp_path, provider.base_url) as desk:
        desk.asking(PROMPTS, endpoint={"api": "openai"}, limits={"concurrency": 2})
        yield desk


@pytest.fixture
def opened(desk: Desk) -> Iterator[Callable[..., Terminal]]:
    terminals: list[Terminal] = []

    def start(*arguments: object, **more: str) -> Terminal:
        terminals.append(command(desk, *arguments, **more))
        return terminals[-1]

    yield start
    for terminal in terminals:
        terminal.close()


def own(desk: Desk, name: str, text: str) -> Path:
    path = desk.folder / ".config" / "eaglegen-tui" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def like_dark(**changes: str) -> str:
    lines = (themes.HERE / "dark.toml").read_text("utf-8")
    for role, colour in changes.items():
        lines = re.sub(rf'^{role} = ".*"$', f'{role} = "{colour}"', lines, flags=re.MULTILINE)
    return lines


def test_keys_prints_a_keymap_to_start_from(desk: Desk) -> None:
    printed = desk.run("keys")
    assert printed.code == 0
    path = own(desk, "keys.toml", printed.out)
    assert printed.out.startswith(f"# {path}: ")
    assert desk.run("keys").out == printed.out
    own(desk, "keys.toml", 'pause = ["z", "ctrl+p"]\n')
    assert 'pause = ["z", "ctrl+p"]' in desk.run("keys").out


def test_keys_says_what_is_wrong_with_the_keymap(desk: Desk) -> None:
    path = own(desk, "keys.toml", '# mine\nskip = "p"\n')
    said = desk.run("keys")
    assert said.code == 2
    assert f"{path}:2: skip: 'p' is also pause's on the overview screen" in said.err


def test_a_broken_keymap_starts_nothing_in_a_terminal(
    desk: Desk, opened: Callable[..., Terminal]
) -> None:
    own(desk, "keys.toml", 'paus = "z"\n')
    terminal = opened("run", "manifest.toml")
    assert terminal.end() == 2
    assert b"keys.toml:1: paus: no such action; did you mean pause?" in terminal.sent
    assert not desk.files.folder.exists()


def test_a_broken_keymap_is_nothing_to_a_headless_run(desk: Desk) -> None:
    own(desk, "keys.toml", 'paus = "z"\n')
    assert desk.go("--headless", "--limit", "1").code == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--theme", "mine"), "theme: mine.toml: dim must be a colour as #rrggbb"),
        (("--fps", "0"), "'--fps'"),
        (("--fps", "11"), "'--fps'"),
        (("--bandwidth", "0"), "'--bandwidth'"),
    ],
)
def test_what_cannot_be_is_refused(desk: Desk, options: tuple[str, ...], reason: str) -> None:
    own(desk, "themes/mine.toml", like_dark(dim="grey"))
    said = desk.go(*options)
    assert said.code == 2
    assert reason in said.err
    assert not desk.files.folder.exists()


def test_keys_themes_and_the_line_s_cost_on_a_terminal(
    desk: Desk, opened: Callable[..., Terminal]
) -> None:
    own(desk, "keys.toml", 'pause_run = "z"\nhelp = "H"\n')
    own(desk, "themes/broken.toml", "[colors]\n")
    own(desk, "themes/mine.toml", like_dark(running="#0b16af"))
    options = ("--theme", "mine", "--fps", "5", "--bandwidth", "3.5", "--ascii")
    terminal = opened("run", "manifest.toml", *options)
    terminal.until("RUNNING", "z pause run", "H help")
    terminal.press("z")
    terminal.until("PAUSED")
    terminal.press("H")
    terminal.until("more below")
    terminal.press("G")
    terminal.until("KB/s now, at most 3.5 KB/s (--bandwidth)", "5 a second (--fps)", "more above")
    counted = re.search(r"([0-9.]+) KB since the screen began", terminal.text)
    assert counted is not None
    assert float(counted[1]) * 1000 == pytest.approx(len(terminal.sent), rel=0.2)
    assert b"38;2;11;22;175" in terminal.sent
    assert bytes(terminal.sent).decode().isascii()
    terminal.press("\x1b")
    terminal.until_gone("more above")
    terminal.press("q")
    terminal.until("Quit e2e?")
    terminal.press("x")
    assert terminal.end() == 130


@pytest.mark.slow
def test_a_narrow_line_is_not_flooded(desk: Desk, opened: Callable[..., Terminal]) -> None:
    """Ten frames a second of moving numbers, and a line for half a kilobyte."""
    terminal = opened("run", "manifest.toml", "--fps", "10", "--bandwidth", "0.5")
    terminal.until("RUNNING")

    def elapsed() -> float:
        return float(desk.files.status()["elapsed_s"])

    began = elapsed()
    terminal.read_until(lambda: elapsed() > began + 4)  # the first pictures are paid for
    before, start = len(terminal.sent), elapsed()
    terminal.read_until(lambda: elapsed() > start + 6)
    # the heartbeat is of the last second, and a burst of one second may be saved up
    assert 1000 < len(terminal.sent) - before < (6 + 3) * 500
    terminal.press("?G")
    terminal.until("left out to save bytes")
    left_out = re.search(r"([0-9,]+) left out", terminal.text)
    assert left_out is not None
    assert int(left_out[1].replace(",", "")) > 20


def dialog(pilot: Pilot[None]) -> str:
    canvases = pilot.app.screen.query(".dialog Canvas").results(Canvas)
    return "\n".join(plain(line) for canvas in canvases for line in canvas.lines)


async def test_the_picker_marks_a_broken_theme_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "eaglegen-tui" / "themes"
    folder.mkdir(parents=True)
    (folder / "a-broken.toml").write_text("[colors]\ndim = '[red]'\n", "utf-8")
    (folder / "mine.toml").write_text(like_dark(), "utf-8")
    app = EaglegenApp(ScriptedRun(detailed()), clock=HandClock())
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("t", "up", "up")
        await pilot.pause()
        shown = " ".join(dialog(pilot).split())
        assert "► a-broken a-broken.toml: background must be a colour" in shown
        assert app.theme == "eaglegen-mine", "the broken one leaves the last one seen"
        await pilot.press("enter")
        await pilot.pause()
        assert app.theme == "eaglegen-dark"
        assert "a-broken.toml" in app.helm.line(detailed())[1].text
        await pilot.press("t", "up", "enter")
        assert app.theme == "eaglegen-mine"
        await pilot.press("colon", *"theme a-broken", "enter")
        await pilot.pause()
        assert "background must be a colour" in app.helm.line(detailed())[1].text
        assert app.theme == "eaglegen-mine"
