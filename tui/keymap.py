"""The person's own keys: `keys.toml` maps the names of actions to keys, and is checked whole.

    pause = "p"
    undo = ["u", "ctrl+z"]

What it does not name keeps its keys. `eaglegen-tui keys` prints all names with what they do.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from textual.binding import Binding
from textual.keys import Keys

from engine import format as fmt
from engine.errors import UsageError
from engine.tomlplace import line_of
from tui import keys
from tui.userfiles import config_folder

FILE = "keys.toml"
_MODIFIERS = frozenset({"ctrl", "alt", "shift", "super", "meta", "hyper"})
_PLAIN = frozenset(key.value for key in Keys if "+" not in key.value and "<" not in key.value)
_INTERRUPT = "ctrl+c"


def path() -> Path:
    """Where the person's keymap is, if there is one."""
    return config_folder() / FILE


def load(file: Path | None = None) -> dict[str, str]:
    """The keymap as Textual takes it: action names to keys; empty where there is no file.

    Raises UsageError that names the file, the line and the key.
    """
    file = file or path()
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from None
    try:
        entries = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}: {error}") from None
    return _checked(_File(file, text), entries)


@cache
def loaded() -> dict[str, str]:
    """The person's keymap, read once: a file that is changed later concerns the next start."""
    return load()


def as_toml(keymap: Mapping[str, str]) -> str:
    """Every action with its keys now and what it does, to start a keymap from."""
    actions = _actions(keymap)
    entries = {
        name: f"{name} = {_value([key for key, one in found if one == name])}"
        for found in actions.values()
        for _, name in found
        if name
    }
    width = max(map(len, entries.values()))
    told: dict[str | None, str] = {}
    for listed in keys.SCREENS.values():
        for binding in listed:
            told.setdefault(binding.id, keys.sentence(binding))
    lines = [f"{entry:<{width}}  # {told[name]}" for name, entry in entries.items()]
    return "\n".join(lines) + "\n"


class _File:
    """A keymap's text, for errors that say where."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text

    def error(self, name: str, what: str) -> UsageError:
        """An error about an entry, with its line."""
        line = line_of(self._text, (name,))
        where = f"{self._path}" if line is None else f"{self._path}:{line}"
        return UsageError(f"{where}: {fmt.safe_text(name, 40)}: {what}")


def _checked(file: _File, entries: Mapping[str, object]) -> dict[str, str]:
    known = {binding.id for all_ in keys.SCREENS.values() for binding in all_ if binding.id}
    keymap: dict[str, str] = {}
    for name, value in entries.items():
        if name not in known:
            near = _nearest(name, known)
            raise file.error(name, f"no such action; {near}`eaglegen-tui keys` lists them")
        wanted = [value] if isinstance(value, str) else value
        if not (isinstance(wanted, list) and wanted and all(isinstance(k, str) for k in wanted)):
            raise file.error(name, 'takes a key such as "p", or a list of keys')
        keymap[name] = ",".join(_key(file, name, key) for key in wanted)
    _refuse_doubles(file, keymap)
    return keymap


def _nearest(name: str, known: set[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]}? " if near else ""


def _key(file: _File, name: str, key: str) -> str:
    """A key's name in Textual's spelling."""
    shown = repr(fmt.safe_text(key, 40))
    *modifiers, plain = key.split("+") if len(key) > 1 else [key]
    if len(plain) == 1 and "shift" in modifiers:
        raise file.error(name, f"{shown}: terminals send a capital letter; write that instead")
    named = plain in _PLAIN or (len(plain) == 1 and plain.isprintable() and plain != " ")
    named = named or plain in _SPELLED.values()
    if not named or not _MODIFIERS.issuperset(modifiers):
        raise file.error(name, f'{shown} is no key; "p", "P", "?", "f5", "space", "ctrl+z" are')
    spelled = "+".join([*modifiers, _SPELLED.get(plain, plain)])
    if spelled == _INTERRUPT:
        raise file.error(name, f"{_INTERRUPT} always drains, and cannot be given away")
    return spelled


def _refuse_doubles(file: _File, keymap: Mapping[str, str]) -> None:
    for screen, found in _actions(keymap).items():
        taken: dict[str, str] = {}
        for key, name in found:
            other = taken.setdefault(key, name)
            if other != name or _twice(keymap, name, key):
                mapped = name if name in keymap else other
                against = other if mapped == name else name
                what = "is given twice" if other == name else f"is also {_what(against)}'s"
                raise file.error(mapped, f"{keys.shown(key)!r} {what} on the {screen} screen")


def _twice(keymap: Mapping[str, str], name: str, key: str) -> bool:
    return keymap.get(name, "").split(",").count(key) > 1


def _what(name: str) -> str:
    return name or "a dataset number"


def _actions(keymap: Mapping[str, str]) -> dict[str, list[tuple[str, str]]]:
    """For each screen the keys and the names of their actions; no name for the digits."""
    return {screen: list(_pairs(listed, keymap)) for screen, listed in keys.SCREENS.items()}


def _pairs(listed: list[Binding], keymap: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for binding in listed:
        name = binding.id or ""
        for key in keymap.get(name, binding.key).split(","):
            yield key, name


def _value(found: list[str]) -> str:
    """Keys as TOML, each once, in the spelling that people type."""
    typed = [f'"{_TYPED.get(key, key)}"' for key in dict.fromkeys(found)]
    return typed[0] if len(typed) == 1 else f"[{', '.join(typed)}]"


def _spelling() -> dict[str, str]:
    """Punctuation as people type it, and as Textual spells it."""
    from string import punctuation

    bindings = (
        (char, next(iter(Binding.make_bindings([Binding(char, "")]))))
        for char in punctuation
        if char != ","
    )
    return {char: binding.key for char, binding in bindings} | {",": "comma"}


_SPELLED = _spelling()
_TYPED = {spelled: char for char, spelled in _SPELLED.items() if char not in '"\\'}
