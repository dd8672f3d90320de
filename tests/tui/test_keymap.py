"""The person's own keys: what they map does what it says, and what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted_run import HandClock, ScriptedRun
from textual.pilot import Pilot

from engine.commands import Pause, Throttle
from engine.errors import ExitCode, UsageError
from tui import keymap, keys
from tui.app import EaglegenApp
from tui.draw.paint import plain
from tui.picture import story
from tui.widgets.canvas import Canvas


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.toml"


def mapped(file: Path, text: str) -> dict[str, str]:
    file.write_text(text, "utf-8")
    return keymap.load(file)


def shown(pilot: Pilot[None]) -> str:
    canvases = [canvas for screen in pilot.app.screen_stack for canvas in screen.query(Canvas)]
    return "\n".join(plain(line) for canvas in canvases for line in canvas.lines)


def test_without_a_file_nothing_is_mapped(file: Path) -> None:
    assert keymap.load(file) == {}


def test_keys_are_spelled_as_people_type_them(file: Path) -> None:
    text = 'pause = "z"\nundo = ["u", "ctrl+z"]\nhelp = ["?", ","]\nfreeze = "F5"\n'
    with pytest.raises(UsageError, match="'F5' is no key"):
        mapped(file, text)
    assert mapped(file, text.lower()) == {
        "pause": "z",
        "undo": "u,ctrl+z",
        "help": "question_mark,comma",
        "freeze": "f5",
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('pause = "z"\npaus = "x"\n', r"keys.toml:2: paus: no such action; did you mean pause\?"),
        ('zzz = "x"\n', "keys.toml:1: zzz: no such action; `eaglegen-tui keys` lists them"),
        ('\n\nskip = "p"\n', "keys.toml:3: skip: 'p' is also pause's on the overview screen"),
        ('skip = "3"\n', "keys.toml:1: skip: '3' is also a dataset number's on the overview"),
        ('pause = "z"\nskip = "z"\n', "keys.toml:2: skip: 'z' is also pause's on the overview"),
        ('skip = ["z", "z"]\n', "keys.toml:1: skip: 'z' is given twice on the overview screen"),
        ('skip = "?"\n', r"keys.toml:1: skip: '\?' is also help's"),
        ('tokens = "w"\n', "keys.toml:1: tokens: 'w' is also suspects's on the rows screen"),
        ('pause = "hello"\n', "keys.toml:1: pause: 'hello' is no key"),
        ('pause = ""\n', "keys.toml:1: pause: '' is no key"),
        ('pause = "ctrl+"\n', "keys.toml:1: pause: 'ctrl.' is no key"),
        ('pause = "hyperspace+x"\n', "keys.toml:1: pause: 'hyperspace.x' is no key"),
        ('pause = "shift+z"\n', "keys.toml:1: pause: 'shift.z': terminals send a capital letter"),
        ('pause = "ctrl+c"\n', "keys.toml:1: pause: ctrl.c always drains"),
        ("pause = 3\n", 'keys.toml:1: pause: takes a key such as "p", or a list of keys'),
        ("pause = []\n", 'keys.toml:1: pause: takes a key such as "p", or a list of keys'),
        ("pause = [[]]\n", 'keys.toml:1: pause: takes a key such as "p", or a list of keys'),
        ("[pause]\n", "keys.toml:1: pause: takes a key"),
        ('pause = "a"\npause = "b"\n', "keys.toml: Cannot overwrite a value .at line 2"),
        ("pause = \n", "keys.toml: Invalid value .at line 1"),
        ('"\\u001b[2J" = "p"\n', "no such action"),
    ],
)
def test_what_is_wrong_is_named(file: Path, text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        mapped(file, text)
    assert caught.value.exit_code is ExitCode.USAGE
    assert str(caught.value).startswith(str(file))
    assert "\x1b" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused(file: Path) -> None:
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match=r"keys\.toml: cannot be read"):
        keymap.load(file)


def test_a_key_may_mean_different_things_on_different_screens(file: Path) -> None:
    assert mapped(file, 'open = "v"\n') == {"open": "v"}


def test_two_keys_may_change_places(file: Path) -> None:
    assert mapped(file, 'pause = "s"\nskip = "p"\n') == {"pause": "s", "skip": "p"}


def test_the_printed_keymap_is_one_and_changes_nothing(file: Path) -> None:
    printed = keymap.as_toml({})
    again = mapped(file, printed)
    assert keymap.as_toml(again) == printed
    for listed in keys.SCREENS.values():
        for binding in listed:
            assert again.get(binding.id or "", binding.key) == binding.key
    assert 'pause = "p"' in printed
    assert keymap.as_toml({"pause": "z"}).count('"z"') == 1


def test_every_action_but_the_digits_has_a_name_and_a_sentence() -> None:
    for listed in keys.SCREENS.values():
        for binding in listed:
            assert binding.id or binding.key.isdigit()
            assert keys.sentence(binding), binding


async def test_mapped_keys_act_and_stand_in_footer_and_help(file: Path) -> None:
    mapping = mapped(file, 'pause = ["z", "ctrl+z"]\nskip = "p"\nthrottle_up = "i"\n')
    run = ScriptedRun(story())
    app = EaglegenApp(run, clock=HandClock(), keymap=mapping)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        assert "z pause  P pause run" in shown(pilot)
        assert "p skip" in shown(pilot)
        assert "i - throttle" in shown(pilot)
        await pilot.press("z", "i", "plus", "s")
        assert run.commands == [Pause("B6_ultrachat"), Throttle(2200)]
        await pilot.press("p")
        await pilot.pause()
        assert "will not be asked" in shown(pilot)
        await pilot.press("escape", "question_mark")
        await pilot.pause()
        assert "z ctrl+z" in shown(pilot)
        await pilot.press("escape", "enter")
        await pilot.pause()
        assert "z pause" in shown(pilot)


async def test_keys_that_changed_places_do_each_other_s_work() -> None:
    run = ScriptedRun(story())
    app = EaglegenApp(run, clock=HandClock(), keymap={"pause": "s", "skip": "p"})
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("s")
        assert run.commands == [Pause("B6_ultrachat")]
        await pilot.press("p")
        await pilot.pause()
        assert "will not be asked" in shown(pilot)
