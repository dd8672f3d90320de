"""What is remembered of requests that were sent and may be sent again, so that none is paid twice.

OpenRouter's response cache answers a resend for free once the first request has finished, if the
body is the same to the byte (facts/openrouter.md §1): the same hosts left out, and not too soon.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.faults.fault import Fault
from engine.pace.deadline import deadline_s
from engine.view.series import Quantiles

KNOWN_AFTER = 20
SLOWEST = 2.0
"""After this many times the slowest reply known, the first request has surely finished."""
_SUCCESS = range(200, 300)


def may_be_billed(status: int | None, cost: float | None, *, sent: bool) -> bool:
    """Whether an attempt without a row may have been billed in full without our knowing.

    So it may where no reply was seen (a timeout, a reset, a kill), and where one with status 200
    broke off; errors are not billed (facts/openrouter.md §2).
    """
    return sent and cost is None and (status is None or status in _SUCCESS)


def unseen(fault: Fault) -> bool:
    """`may_be_billed` of a fault."""
    return may_be_billed(fault.status, fault.cost, sent=fault.sent)


def resend_after_s(request_timeout_s: float, latency: Quantiles, generated: Quantiles) -> float:
    """Seconds after its start at which a request that we lost sight of has surely finished.

    `latency` is that of all sessions' rows, `generated` without what came from the cache.
    """
    longest = deadline_s(request_timeout_s, latency)
    slowest = generated.quantile(1.0) if generated.count >= KNOWN_AFTER else None
    return longest if slowest is None else min(longest, SLOWEST * slowest)


@dataclass(slots=True)
class _Trace:
    """One generation that is in flight, or of which an attempt may have been billed unseen."""

    ignore: tuple[str, ...] = ()
    unseen: int = 0
    repeat: bool = False
    spoilt: bool = False


class Traces:
    """Per id of a generation how it was asked; what has its row is forgotten."""

    def __init__(self, *, caches: bool) -> None:
        self._caches = caches
        self._traces: dict[str, _Trace] = {}
        self._told = False

    def restore(self, identifier: str, ignore: Iterable[str], count: int) -> None:
        """An earlier session left `count` attempts that may have been billed unseen."""
        self._traces[identifier] = _Trace(tuple(ignore), count, repeat=self._caches)

    def repeats(self, identifier: str) -> bool:
        """Whether the next request has to be the same as the last one, to the byte."""
        trace = self._traces.get(identifier)
        return trace is not None and trace.repeat

    def ask(self, identifier: str, ignore: Iterable[str]) -> None:
        """The request that is about to leave asks the router to leave these hosts out."""
        self._of(identifier).ignore = tuple(sorted(ignore))

    def ignore(self, identifier: str) -> tuple[str, ...]:
        """Slugs of the hosts that the request asks the router to leave out."""
        trace = self._traces.get(identifier)
        return () if trace is None else trace.ignore

    def spoilt(self, identifier: str) -> None:
        """The reply came whole and is no answer: the cache may hold it."""
        self._of(identifier).spoilt = self._caches

    def clears(self, identifier: str) -> bool:
        """Whether this request tells the cache to forget its reply first; the next one does not."""
        trace = self._of(identifier)
        clears, trace.spoilt = trace.spoilt, False
        return clears

    def failed(self, identifier: str, fault: Fault) -> None:
        """An attempt ended without a row."""
        trace = self._of(identifier)
        lost = unseen(fault)
        trace.unseen += lost
        answered = fault.provider is not None and not lost
        if trace.spoilt or answered or fault.family == "route_ignored":
            trace.repeat = False  # the cache has nothing, or nothing good
        elif lost:
            trace.repeat = self._caches

    def unseen(self, identifier: str) -> int:
        """Earlier attempts of the generation that may have been billed unseen."""
        trace = self._traces.get(identifier)
        return 0 if trace is None else trace.unseen

    def settle(self, identifier: str) -> None:
        """The generation has its row, or its prompt was given up."""
        self._traces.pop(identifier, None)

    def tell_once(self) -> bool:
        """True when first asked: why such a request waits is explained once in a session."""
        told, self._told = self._told, True
        return not told

    def _of(self, identifier: str) -> _Trace:
        return self._traces.setdefault(identifier, _Trace())
