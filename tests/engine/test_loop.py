"""The engine's loop hears timers and commands while thousands of sockets are ready."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest

from engine.loop import EVENTS, calm_collector, new_loop


@pytest.fixture
def pairs() -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    with ExitStack() as stack:
        made = [socket.socketpair() for _ in range(5 * EVENTS)]
        for pair in made:
            for end in pair:
                end.setblocking(False)
                stack.enter_context(closing(end))
        yield made


def test_a_turn_takes_few_events_and_every_socket_has_its_turn(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    turns: list[list[int]] = [[]]

    async def watch() -> None:
        loop = asyncio.get_running_loop()
        for number, (ours, theirs) in enumerate(pairs):
            theirs.send(b"x")
            loop.add_reader(ours, read, number)
        while sum(map(len, turns)) < len(pairs):
            await asyncio.sleep(0)
            turns.append([])
        for ours, _ in pairs:
            loop.remove_reader(ours)

    def read(number: int) -> None:
        pairs[number][0].recv(1)
        turns[-1].append(number)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(watch())
    assert max(map(len, turns)) <= EVENTS
    assert sorted(number for turn in turns for number in turn) == list(range(len(pairs)))


def test_sockets_that_are_always_ready_starve_nobody(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    heard: set[int] = set()

    async def watch() -> None:
        loop = asyncio.get_running_loop()
        all_heard = asyncio.Event()

        def hear(number: int) -> None:  # leaves the byte: ready for ever
            heard.add(number)
            if len(heard) == len(pairs):
                all_heard.set()

        for number, (ours, theirs) in enumerate(pairs):
            theirs.send(b"x")
            loop.add_reader(ours, hear, number)
        await asyncio.wait_for(all_heard.wait(), 60)
        for ours, _ in pairs:
            loop.remove_reader(ours)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(watch())


def test_an_event_of_a_socket_that_was_closed_meanwhile_reaches_nobody(
    pairs: list[tuple[socket.socket, socket.socket]],
) -> None:
    heard: list[int] = []

    async def watch() -> None:
        loop = asyncio.get_running_loop()

        def hear(number: int) -> None:
            heard.append(number)
            for other, (ours, _) in enumerate(pairs):
                if other != number:
                    loop.remove_reader(ours)
            pairs[number][0].recv(1)

        for number, (ours, theirs) in enumerate(pairs):
            theirs.send(b"x")
            loop.add_reader(ours, hear, number)
        for _ in range(20):
            await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(watch())
    assert len(heard) == 1


def test_the_collector_rests_but_still_runs() -> None:
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)  # an engine of an earlier test has calmed it already
    try:
        calm_collector()
        assert gc.isenabled()
        assert gc.get_threshold()[0] > 700
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
