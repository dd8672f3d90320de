"""An attempt's deadline: the manifest's, then four times what is slow, never below two minutes."""

from __future__ import annotations

import pytest

from engine.pace.deadline import FLOOR_S, KNOWN_AFTER, deadline_s
from engine.view.series import Quantiles


def known(count: int, latency_s: float) -> Quantiles:
    quantiles = Quantiles()
    for _ in range(count):
        quantiles.add(latency_s)
    return quantiles


@pytest.mark.parametrize(
    ("count", "latency_s", "limit_s", "deadline"),
    [
        (0, 0, 1800, 1800),
        (KNOWN_AFTER - 1, 50, 1800, 1800),
        (KNOWN_AFTER, 50, 1800, 200),
        (KNOWN_AFTER, 5, 1800, FLOOR_S),
        (KNOWN_AFTER, 1000, 1800, 1800),
        (KNOWN_AFTER, 50, 60, 60),
        (KNOWN_AFTER, 5, 60, 60),
    ],
)
def test_deadlines(count: int, latency_s: float, limit_s: float, deadline: float) -> None:
    assert deadline_s(limit_s, known(count, latency_s)) == pytest.approx(deadline, rel=0.03)


def test_the_slowest_hundredth_decides_and_not_the_mean() -> None:
    quantiles = known(980, 10.0)
    for _ in range(20):
        quantiles.add(300.0)
    assert deadline_s(1800, quantiles) == pytest.approx(1200, rel=0.03)
