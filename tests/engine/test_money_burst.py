"""The story's opening burst over real HTTP: the engine against a client of fixed concurrency.

The same world in virtual time, with more providers and for hours, is in test_limits_world.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from money_burst import Burst, with_engine, with_fixed


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_opening_burst_costs_few_failures_and_no_throughput(tmp_path: Path) -> None:
    burst = Burst(capacity=40, ceiling=400, prompts=1400)
    fixed, ours = with_fixed(burst), with_engine(burst, tmp_path)
    assert ours.rows == fixed.rows == burst.prompts
    assert ours.failed < 0.05 * fixed.failed
    assert ours.steady_per_s > 0.95 * fixed.steady_per_s
