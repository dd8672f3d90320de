"""Themes are data: complete, readable, and refused with a reason where they are not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import themes

COLOURED = [name for name in themes.names() if not themes.load(name).mono]


def test_the_default_comes_first_and_the_promised_themes_are_there() -> None:
    assert themes.names()[0] == "dark"
    assert {"dark", "light", "high-contrast", "colorblind", "mono"} <= set(themes.names())


@pytest.mark.parametrize("name", COLOURED)
def test_every_text_stands_out_from_every_ground_it_is_written_on(name: str) -> None:
    assert themes.hard_to_read(themes.load(name)) == []


def test_every_role_is_a_ground_a_text_an_alarm_or_drawn() -> None:
    drawn = {"border", "bar", "track"}
    grounds, texts = {*themes.GROUNDS, *themes.ALARMS}, {*themes.TEXTS, "alarm_text"}
    assert grounds | texts | drawn == set(themes.ROLES)
    assert themes.READABLE == 4.5


@pytest.mark.parametrize("name", COLOURED)
def test_charts_stand_out(name: str) -> None:
    colors = themes.load(name).colors
    assert themes.contrast(colors["bar"], colors["background"]) >= 3
    assert themes.contrast(colors["bar"], colors["track"]) >= 1.5


def test_high_contrast_keeps_what_it_promises() -> None:
    colors = themes.load("high-contrast").colors
    assert min(themes.contrast(colors[role], colors["background"]) for role in themes.TEXTS) >= 7


def test_the_contrast_is_the_one_of_wcag() -> None:
    assert themes.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert themes.contrast("#777777", "#777777") == pytest.approx(1)
    assert themes.contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_an_unknown_theme_names_the_known_ones() -> None:
    with pytest.raises(themes.ThemeError, match="unknown theme 'drak'; known: dark, "):
        themes.load("drak")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[colors]\nbakground = '#000000'\n", "unknown colour 'bakground'"),
        ("[colors]\nbackground = '#000000'\n", "surface must be a colour as #rrggbb"),
        ("[colors]\nbackground = 'black'\n", "background must be a colour as #rrggbb"),
        ("colors = 3\n", r"\[colors\] must be a table"),
        ("[colors\n", "mine.toml"),
        (
            "[colours]\nbackground = '#000000'\n",
            "unknown key 'colours'; known: label, dark, colors",
        ),
        ("dark = 'yes'\n", "dark must be true or false"),
        ("label = 3\n", "label must be a text"),
    ],
)
def test_a_broken_theme_is_refused_with_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(themes.ThemeError, match=reason):
        themes.load_file(path)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The person's own folder, with a theme like the dark one."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "eaglegen-tui" / "themes"
    folder.mkdir(parents=True)
    dark = (themes.HERE / "dark.toml").read_text("utf-8").replace('"Dark"', '"My own"')
    (folder / "mine.toml").write_text(dark.replace("#7cb7ff", "#123abc"), "utf-8")
    return folder


@pytest.mark.usefixtures("own")
def test_a_theme_of_one_s_own_is_as_good_as_a_built_in_one() -> None:
    mine = themes.load("mine")
    assert (mine.name, mine.label, mine.colors["running"]) == ("mine", "My own", "#123abc")
    assert [entry.name for entry in themes.listed()] == [*themes.names(), "mine"]
    with pytest.raises(themes.ThemeError, match=r"known: dark, .*, mine$"):
        themes.load("drak")
    weak = next(entry for entry in themes.listed() if entry.name == "mine").label
    assert weak.startswith("My own (hard to read: accent on background 2.")


def test_a_broken_one_is_listed_with_its_fault_and_keeps_nobody_from_the_others(own: Path) -> None:
    (own / "broken.toml").write_text("[colors]\ndim = 'grey'\n", "utf-8")
    (own / "dark.toml").write_text("label = 'Mine'\n", "utf-8")
    (own / "folder.toml").mkdir()
    faults = {(entry.name, bool(entry.fault)): entry.fault for entry in themes.listed()}
    assert faults["broken", True] == "broken.toml: background must be a colour as #rrggbb"
    assert faults["dark", True] == "dark.toml: dark is a built-in theme; give yours another name"
    assert faults["dark", False] == faults["mine", False] == ""
    assert faults["folder", True].startswith("folder.toml: ")
    assert themes.load("dark").label == "Dark"
    for name in ("broken", "folder"):
        with pytest.raises(themes.ThemeError, match=f"{name}.toml: "):
            themes.load(name)


def test_loading_a_theme_imports_nothing_heavy() -> None:
    code = (
        "import sys, themes; themes.load('dark');"
        "print(sorted({'textual', 'rich', 'pydantic', 'asyncio'} & set(sys.modules)))"
    )
    root = Path(themes.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True
    )
    assert done.stdout.strip() == "[]"
