"""One function over many tasks: the same results in the same order, in one process or in two."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

import pytest

from engine.audits.workers import workers


def base(number: int) -> int:
    return number


def plus(extra: int, context: int, task: int) -> tuple[int, int]:
    return context + task + extra, os.getpid()


def fails(context: int, task: int) -> int:
    return context // task


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_order(processes: int) -> None:
    with workers(partial(base, 100), processes) as work:
        found = list(work.map(partial(plus, 5), range(50)))
    assert [value for value, _ in found] == [105 + task for task in range(50)]
    mine = {pid == os.getpid() for _, pid in found}
    assert mine == {processes == 1}


@pytest.mark.parametrize("processes", [1, 2])
def test_a_task_that_fails_raises_here(processes: int) -> None:
    with workers(partial(base, 1), processes) as work, pytest.raises(ZeroDivisionError):
        list(work.map(fails, [1, 0]))


def test_tasks_are_taken_as_results_are() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[int]:
        for task in range(100):
            taken.append(task)
            yield task

    with workers(partial(base, 0), 2) as work:
        results = work.map(partial(plus, 0), tasks())
        next(results)
        assert len(taken) <= 6
        next(results)
        assert len(taken) <= 7
        assert len(list(results)) == 98
