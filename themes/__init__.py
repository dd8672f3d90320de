"""Colour themes as data: one TOML file each, loaded without any heavy import.

A theme gives one colour per meaning (see ROLES), never per widget. The screen says every state in
a word and a glyph as well, so that a theme may leave colour out altogether (`mono`).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROLES = (
    "background",
    "surface",
    "text",
    "dim",
    "border",
    "accent",
    "ok",
    "warn",
    "bad",
    "paused",
    "running",
    "bar",
    "track",
    "alarm_text",
    "alarm_info",
    "alarm_ok",
    "alarm_warn",
    "alarm_bad",
)
"""What a colour can mean.

`background` is the screen, `surface` the band of the run's header and of questions; `text` and
`dim` are the two weights of text; `bar` and `track` draw charts; `alarm_text` stands on the
other `alarm_*` colours; the rest are states.
"""


class ThemeError(ValueError):
    """A theme file that cannot be used; the message names the file and the key."""


@dataclass(frozen=True, slots=True)
class Theme:
    """One theme: `colors` maps each of ROLES to `#rrggbb`, or is empty for a theme without any."""

    name: str
    label: str
    dark: bool
    colors: dict[str, str]

    @property
    def mono(self) -> bool:
        """Whether this theme leaves the terminal's own colours alone."""
        return not self.colors


def names() -> list[str]:
    """The built-in themes, the default first."""
    found = sorted(path.stem for path in HERE.glob("*.toml"))
    return sorted(found, key=lambda name: name != "dark")


def load(name: str) -> Theme:
    """The built-in theme of that name; raises ThemeError naming the known ones."""
    path = HERE / f"{name}.toml"
    if name not in names():
        raise ThemeError(f"unknown theme {name!r}; known: {', '.join(names())}")
    return load_file(path)


def load_file(path: Path) -> Theme:
    """A theme from a file; raises ThemeError naming what is wrong, OSError if unreadable."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ThemeError(f"{path.name}: {error}") from error
    colors = data.get("colors", {})
    if not isinstance(colors, dict):
        raise ThemeError(f"{path.name}: [colors] must be a table")
    _check(path.name, colors)
    return Theme(
        name=path.stem,
        label=str(data.get("label", path.stem)),
        dark=bool(data.get("dark", True)),
        colors={str(role): str(value).lower() for role, value in colors.items()},
    )


def _check(file: str, colors: dict[str, object]) -> None:
    if not colors:
        return
    for role in colors:
        if role not in ROLES:
            raise ThemeError(f"{file}: unknown colour {role!r}; known: {', '.join(ROLES)}")
    for role in ROLES:
        if not _is_hex(colors.get(role)):
            raise ThemeError(f"{file}: {role} must be a colour as #rrggbb")


def _is_hex(value: object) -> bool:
    if not isinstance(value, str) or len(value) != len("#rrggbb") or value[0] != "#":
        return False
    return all(digit in "0123456789abcdefABCDEF" for digit in value[1:])


_LINEAR_UP_TO = 0.04045
"""Where the transfer function of sRGB turns from a line into a power (IEC 61966-2-1)."""


def contrast(first: str, second: str) -> float:
    """WCAG 2 contrast ratio of two `#rrggbb` colours: 1 (same) to 21 (black on white)."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (
        value / 12.92 if value <= _LINEAR_UP_TO else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
