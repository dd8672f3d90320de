"""Commands on the wire: each survives it, and what is wrong with one is named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import commands
from engine.commands import (
    NAMES,
    Command,
    Drain,
    ExcludeProvider,
    IncludeProvider,
    Pause,
    Resume,
    RetryFailed,
    Skip,
    Stop,
    Throttle,
    Unskip,
    from_wire,
    name_of,
    to_wire,
)
from engine.errors import ExitCode, UsageError

ALL: list[Command] = [
    Pause(),
    Pause("B6"),
    Resume(),
    Resume("B6"),
    Throttle(500),
    Skip("B6"),
    Unskip("B6"),
    ExcludeProvider("Novita"),
    IncludeProvider("Novita"),
    RetryFailed(),
    RetryFailed("B6"),
    Drain(),
    Stop(),
]


@pytest.mark.parametrize("command", ALL, ids=repr)
def test_a_command_survives_the_wire(command: Command) -> None:
    assert from_wire(json.loads(json.dumps(to_wire(command)))) == command


def test_every_command_is_on_the_wire_under_the_contracts_name() -> None:
    assert {type(command) for command in ALL} == set(NAMES.values())
    contract = {
        "pause",
        "resume",
        "throttle",
        "skip",
        "unskip",
        "exclude_provider",
        "drain",
        "stop",
    }
    assert contract <= set(NAMES)
    assert to_wire(Pause()) == {"command": "pause", "dataset": None}
    assert to_wire(Throttle(500)) == {"command": "throttle", "limit": 500}
    assert [name_of(command) for command in (Drain(), Stop())] == ["drain", "stop"]


def test_a_field_that_may_be_left_out_may_be_left_out() -> None:
    assert from_wire({"command": "pause"}) == Pause()
    assert from_wire({"command": "resume", "dataset": "B6"}) == Resume("B6")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({}, "unknown command None"),
        ({"command": "explode"}, "unknown command 'explode'"),
        ({"command": ["stop"]}, "unknown command ['stop']"),
        ({"command": "throttle"}, "throttle needs limit"),
        ({"command": "skip"}, "skip needs dataset"),
        ({"command": "include_provider"}, "include_provider needs provider"),
        ({"command": "exclude_provider"}, "exclude_provider needs provider"),
        ({"command": "stop", "now": True}, "stop does not take now"),
        ({"command": "pause", "limit": 5}, "pause does not take limit"),
        ({"command": "throttle", "limit": 0}, "at least 1, not 0"),
        ({"command": "throttle", "limit": -5}, "at least 1, not -5"),
        ({"command": "throttle", "limit": 2.5}, "whole number of at least 1, not 2.5"),
        ({"command": "throttle", "limit": True}, "whole number of at least 1, not True"),
        ({"command": "throttle", "limit": "5"}, "whole number of at least 1, not '5'"),
        ({"command": "skip", "dataset": 5}, "dataset must be a name, not 5"),
        ({"command": "skip", "dataset": None}, "skip needs dataset"),
        ({"command": "throttle", "limit": None}, "throttle needs limit"),
        ({"command": "unskip", "dataset": None}, "unskip needs dataset"),
        ({"command": "exclude_provider", "provider": None}, "exclude_provider needs provider"),
    ],
)
def test_what_is_wrong_with_a_command_is_named(message: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        from_wire(message)
    assert words in caught.value.message
    assert caught.value.exit_code is ExitCode.USAGE


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers())


@given(
    st.dictionaries(
        st.sampled_from(["command", "dataset", "limit", "provider", "x"]),
        VALUES | st.sampled_from(sorted(NAMES)),
    )
)
def test_whatever_arrives_is_a_command_or_a_usage_error(message: dict[str, Any]) -> None:
    try:
        command = from_wire(message)
    except UsageError:
        return
    assert type(command) in NAMES.values()
    assert to_wire(command)["command"] == message["command"]


def test_the_module_lists_every_command_it_defines() -> None:
    assert set(NAMES.values()) == set(commands.Command.__args__)
