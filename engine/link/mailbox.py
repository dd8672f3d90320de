"""Orders that come before there is a session: they wait for it, or end the run before it begins."""

from __future__ import annotations

from concurrent.futures import Future
from typing import NamedTuple

from engine.commands import Command, Drain, Stop
from engine.errors import RunUnreachableError

LEFT_EARLY = "ended before anything was sent"


class Order(NamedTuple):
    """A command, who gave it, and where its answer goes."""

    command: Command
    origin: str
    answer: Future[str]


class Mailbox:
    """Not locked: whoever shares it between threads does that."""

    def __init__(self) -> None:
        self._orders: list[Order] = []

    def put(self, order: Order) -> None:
        """Keep an order."""
        self._orders.append(order)

    def ended_by(self) -> str:
        """Who has ordered the end; empty where nobody has."""
        return next((order.origin for order in self._orders if is_end(order.command)), "")

    def empty(self) -> list[Order]:
        """All orders in their order; they are nobody's any more."""
        orders, self._orders = self._orders, []
        return orders


def refuse(orders: list[Order], *, left_early: bool) -> None:
    """Answer orders of a run that never began; one to end was obeyed where that is why."""
    for order in orders:
        if left_early and is_end(order.command):
            order.answer.set_result(LEFT_EARLY)
        else:
            order.answer.set_exception(RunUnreachableError("the run ended before it began"))


def is_end(command: Command) -> bool:
    """Whether an order ends the run."""
    return isinstance(command, Drain | Stop)
