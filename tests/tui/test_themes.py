"""Themes are data: complete, readable, and refused with a reason where they are not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import themes

TEXTS = ("text", "dim", "accent", "ok", "warn", "bad", "paused", "running")
ALARMS = ("alarm_info", "alarm_ok", "alarm_warn", "alarm_bad")
COLOURED = [name for name in themes.names() if not themes.load(name).mono]


def test_the_default_comes_first_and_the_promised_themes_are_there() -> None:
    assert themes.names()[0] == "dark"
    assert {"dark", "light", "high-contrast", "colorblind", "mono"} <= set(themes.names())


@pytest.mark.parametrize("name", COLOURED)
@pytest.mark.parametrize("ground", ["background", "surface"])
def test_every_text_stands_out_from_its_ground(name: str, ground: str) -> None:
    colors = themes.load(name).colors
    weak = {
        role: ratio
        for role in TEXTS
        if (ratio := themes.contrast(colors[role], colors[ground])) < 4.5
    }
    assert weak == {}


@pytest.mark.parametrize("name", COLOURED)
def test_alarms_and_charts_stand_out(name: str) -> None:
    colors = themes.load(name).colors
    for alarm in ALARMS:
        assert themes.contrast(colors["alarm_text"], colors[alarm]) >= 4.5, alarm
    assert themes.contrast(colors["bar"], colors["background"]) >= 3
    assert themes.contrast(colors["bar"], colors["track"]) >= 1.5


def test_high_contrast_keeps_what_it_promises() -> None:
    colors = themes.load("high-contrast").colors
    assert min(themes.contrast(colors[role], colors["background"]) for role in TEXTS) >= 7


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
    ],
)
def test_a_broken_theme_is_refused_with_the_reason(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(themes.ThemeError, match=reason):
        themes.load_file(path)


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
