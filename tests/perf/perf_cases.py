"""What is measured: groups of cases that are compared with each other, and the table of them."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path

from perf_meter import Measured

_HERE = Path(__file__).parent
_HEADER = (
    f"{'':20} {'in flight':>9} {'rows/s':>7} {'CPU ms':>7} {'peak MB':>7} "
    f"{'lag p99':>7} {'max ms':>7}  {'rate /':>7} {'CPU /':>7}  {'rate /':>7} {'CPU /':>7}"
)


@dataclass(slots=True)
class Case:
    """One line of the table."""

    kind: str
    """A client of perf_client.py, or `engine`."""
    in_flight: int = 2000
    screen: bool = False
    once: bool = False
    """Slow and far from the others: one round tells enough."""
    runs: list[Measured] = field(default_factory=list)

    @property
    def name(self) -> str:
        """As the table shows it."""
        return f"{self.kind} and screen" if self.screen else self.kind

    def median(self, attribute: str) -> float:
        """Over the rounds."""
        return float(statistics.median(getattr(run, attribute) for run in self.runs))


@dataclass(frozen=True, slots=True)
class Group:
    """Cases against one scenario; each is divided by the `references` among them."""

    title: str
    scenario: str
    tokenizer: str
    references: tuple[str, ...]
    cases: tuple[Case, ...]

    def table(self) -> str:
        """A title, a header and a line for each case; rates and CPU are medians."""
        divisors = [self._case(kind) for kind in self.references]
        names = "  ".join(f"{kind:>15}" for kind in self.references)
        lines = [f"{self.title}{names:>{len(_HEADER) - len(self.title)}}", _HEADER]
        return "\n".join([*lines, *(_line(case, divisors) for case in self.cases if case.runs)])

    def _case(self, kind: str) -> Case:
        return next(case for case in self.cases if case.kind == kind)


def groups() -> list[Group]:
    """Everything that the benchmark measures, in this order."""
    return [
        Group(
            "text only, replies of 6.6 KB after 0.5 s",
            "bench",
            "none",
            ("aiohttp", "transport"),
            (Case("httpx", once=True), Case("aiohttp"), Case("transport"), *_engines()),
        ),
        Group(
            "Kimi ids, replies of 1,700 tokens after 0.5 s",
            str(_HERE / "kimi.toml"),
            "kimi-k2.5",
            ("aiohttp", "tokenizing"),
            (Case("aiohttp"), Case("tokenizing"), *_engines()),
        ),
        Group(
            "Kimi ids, 1,700 tokens, about 700 replies/s",
            str(_HERE / "paced.toml"),
            "kimi-k2.5",
            ("tokenizing",),
            (Case("tokenizing"), Case("engine"), Case("engine", screen=True)),
        ),
    ]


def _engines() -> list[Case]:
    return [*(Case("engine", number) for number in (64, 512, 2000)), Case("engine", screen=True)]


def _line(case: Case, divisors: list[Case]) -> str:
    lag = [run.lag_ms for run in case.runs if run.lag_ms]
    lags = [f"{statistics.median(values):7.0f}" for values in zip(*lag, strict=True)]
    ratios = "  ".join(
        f"{_ratio(case, divisor, 'rate')} {_ratio(case, divisor, 'cpu_ms')}" for divisor in divisors
    )
    return (
        f"{case.name:20} {case.in_flight:9} {case.median('rate'):7.0f} "
        f"{case.median('cpu_ms'):7.2f} {case.median('peak_mb'):7.0f} "
        f"{' '.join(lags or [' ' * 7] * 2)}  {ratios}"
    )


def _ratio(case: Case, divisor: Case, attribute: str) -> str:
    if not divisor.runs:
        return " " * 7
    return f"{case.median(attribute) / divisor.median(attribute):7.2f}"
