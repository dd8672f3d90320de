"""Runs one function over many tasks, in this process or in several, with results in order."""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

Context = TypeVar("Context")
Context_co = TypeVar("Context_co", covariant=True)
Task = TypeVar("Task")
Result = TypeVar("Result")

_AHEAD = 3
"""Tasks for each process that are under way or done and not yet taken: bounds the memory."""
_held: dict[str, Any] = {}


class Workers(Protocol[Context_co]):
    """Applies functions of (context, task); both must be picklable where there are processes."""

    def map(
        self, function: Callable[[Context_co, Task], Result], tasks: Iterable[Task]
    ) -> Iterator[Result]:
        """The results in the tasks' order."""
        ...


class Inline(Generic[Context]):
    """All work in this process."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def map(
        self, function: Callable[[Context, Task], Result], tasks: Iterable[Task]
    ) -> Iterator[Result]:
        """The results in the tasks' order."""
        return (function(self._context, task) for task in tasks)


class Pool(Generic[Context]):
    """Work shared by processes that have each made a context of their own."""

    def __init__(self, executor: ProcessPoolExecutor, processes: int) -> None:
        self._executor = executor
        self._ahead = _AHEAD * processes

    def map(
        self, function: Callable[[Context, Task], Result], tasks: Iterable[Task]
    ) -> Iterator[Result]:
        """The results in the tasks' order; tasks are taken as results are."""
        waiting: deque[Future[Result]] = deque()
        for task in tasks:
            waiting.append(self._executor.submit(_call, function, task))
            if len(waiting) >= self._ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


@contextmanager
def workers(make: Callable[[], Context], processes: int) -> Iterator[Workers[Context]]:
    """Workers for as long as the context lasts; `make` makes what their functions are given."""
    if processes <= 1:
        yield Inline(make())
        return
    # Spawned, because a fork of a process with threads (a live engine, a test) can hang.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn, initializer=_enter, initargs=(make,)) as executor:
        yield Pool(executor, processes)


def usable_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _enter(make: Callable[[], Any]) -> None:
    _held["context"] = make()


def _call(function: Callable[[Any, Any], Any], task: Any) -> Any:
    return function(_held["context"], task)
