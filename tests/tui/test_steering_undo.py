"""Orders and what takes them back: the engine's words are the engine's tests."""

from __future__ import annotations

import pytest

from engine.commands import (
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
)
from tui import orders
from tui.control import parse
from tui.picture import story
from tui.steering import asked, inverse


@pytest.mark.parametrize(
    ("command", "back"),
    [
        (Pause("B6"), Resume("B6")),
        (Pause(), Resume()),
        (Skip("B6"), Unskip("B6")),
        (ExcludeProvider("Novita"), IncludeProvider("Novita")),
        (Throttle(500), Throttle(2000)),
    ],
)
def test_an_order_is_taken_back_and_given_again(command: Command, back: Command) -> None:
    assert inverse(command, 2000) == back
    assert inverse(back, getattr(command, "limit", 0)) == command


@pytest.mark.parametrize("command", [RetryFailed("B6"), Drain(), Stop()])
def test_what_has_been_sent_cannot_be_taken_back(command: Command) -> None:
    assert inverse(command, 2000) is None


def test_a_provider_is_let_in_again_by_a_line_and_by_a_script() -> None:
    assert orders.parse("incl silicon", story()) == IncludeProvider("SiliconFlow")
    assert parse("include-provider", "Novita") == IncludeProvider("Novita")
    assert asked(IncludeProvider("Novita")) == "letting Novita answer again"
