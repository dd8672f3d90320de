"""Colour themes as data: one TOML file each, loaded without any heavy import.

People's own stand in `themes/` of their config folder, beside their keymap.

A theme gives one colour per meaning (see ROLES), never per widget. The screen says every state in
a word and a glyph as well, so that a theme may leave colour out altogether (`mono`).
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import platformdirs

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

TEXTS = ("text", "dim", "accent", "ok", "warn", "bad", "paused", "running")
"""Roles that text is written in, on each of GROUNDS."""
GROUNDS = ("background", "surface")
ALARMS = ("alarm_info", "alarm_ok", "alarm_warn", "alarm_bad")
READABLE = 4.5
"""Least contrast of text (WCAG 2.2, 1.4.3, level AA)."""
_KINDS: dict[type, str] = {str: "a text", bool: "true or false", dict: "a table"}
_KEYS: dict[str, type] = {"label": str, "dark": bool, "colors": dict}


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


class Listed(NamedTuple):
    """A theme to choose; `fault` says why it cannot be, and is empty where it can."""

    name: str
    label: str
    fault: str = ""


def own_folder() -> Path:
    """Where people put themes of their own; need not exist."""
    return platformdirs.user_config_path("eaglegen-tui", appauthor=False) / "themes"


def names() -> list[str]:
    """The built-in themes, the default first."""
    found = sorted(path.stem for path in HERE.glob("*.toml"))
    return sorted(found, key=lambda name: name != "dark")


def own_names() -> list[str]:
    """The themes in the person's folder, usable or not."""
    try:
        return sorted(path.stem for path in own_folder().glob("*.toml"))
    except OSError:
        return []


def listed() -> list[Listed]:
    """All themes to choose from: the built-in ones, then the person's own with their faults."""
    return [_listed(name, HERE / f"{name}.toml") for name in names()] + [
        _listed(name, own_folder() / f"{name}.toml") for name in own_names()
    ]


def load(name: str) -> Theme:
    """The theme of that name, a built-in one before the person's own.

    Raises ThemeError naming the known ones, or the file and the key that are wrong.
    """
    if name in names():
        return load_file(HERE / f"{name}.toml")
    if name not in own_names():
        known = ", ".join(dict.fromkeys([*names(), *own_names()]))
        raise ThemeError(f"unknown theme {name!r}; known: {known}")
    return _load_own(name)


def _load_own(name: str) -> Theme:
    path = own_folder() / f"{name}.toml"
    if name in names():
        raise ThemeError(f"{path.name}: {name} is a built-in theme; give yours another name")
    try:
        return load_file(path)
    except OSError as error:
        raise ThemeError(f"{path.name}: {error.strerror or error}") from None


def _listed(name: str, path: Path) -> Listed:
    try:
        theme = load_file(path) if path.parent == HERE else _load_own(name)
    except ThemeError as error:
        return Listed(name, name, str(error))
    weak = hard_to_read(theme)[:1]
    return Listed(name, theme.label + "".join(f" (hard to read: {pair})" for pair in weak))


def load_file(path: Path) -> Theme:
    """A theme from a file; raises ThemeError naming what is wrong, OSError if unreadable."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ThemeError(f"{path.name}: {error}") from error
    _check_keys(path.name, data)
    colors = data.get("colors", {})
    _check(path.name, colors)
    return Theme(
        name=path.stem,
        label=str(data.get("label", path.stem)),
        dark=bool(data.get("dark", True)),
        colors={str(role): str(value).lower() for role, value in colors.items()},
    )


def hard_to_read(theme: Theme) -> list[str]:
    """Texts with a contrast below READABLE, such as `dim on surface 3.1:1`; none in `mono`."""
    if theme.mono:
        return []
    pairs = [(role, ground) for role in TEXTS for ground in GROUNDS]
    pairs += [("alarm_text", alarm) for alarm in ALARMS]
    found = ((text, on, contrast(theme.colors[text], theme.colors[on])) for text, on in pairs)
    return [f"{text} on {on} {ratio:.1f}:1" for text, on, ratio in found if ratio < READABLE]


def _check_keys(file: str, data: dict[str, object]) -> None:
    for key, value in data.items():
        kind = _KEYS.get(key)
        if kind is None:
            raise ThemeError(f"{file}: unknown key {key!r}; known: {', '.join(_KEYS)}")
        if not isinstance(value, kind):
            shown = f"[{key}]" if kind is dict else key
            raise ThemeError(f"{file}: {shown} must be {_KINDS[kind]}")


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
