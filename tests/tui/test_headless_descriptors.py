"""As many open files as the concurrency asks for: the soft limit is raised, a hard one is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e_desk import Desk, Result
from e2e_provider import arrived, playing, slow

from engine.simulator import Simulator

PLENTY = 4096


@pytest.fixture
def provider() -> Iterator[Simulator]:
    with playing(latency=slow(0.3)) as provider:
        yield provider


@pytest.fixture
def desk(tmp_path: Path, provider: Simulator) -> Iterator[Desk]:
    with Desk(tmp_path, provider.base_url) as desk:
        desk.asking(60, endpoint={"api": "openai"})
        yield desk


def limited(desk: Desk, soft: int, hard: int, concurrency: int) -> Result:
    """A run in a process that may open `soft` files, and may raise that to `hard`."""
    before = f"import resource as r; r.setrlimit(r.RLIMIT_NOFILE, ({soft}, {hard}))"
    return desk.begin("--concurrency", concurrency, before=before).wait()


def test_a_low_soft_limit_is_raised(desk: Desk, provider: Simulator) -> None:
    result = limited(desk, 40, PLENTY, 200)
    assert result.code == 0, result.err
    assert provider.ledger.max_in_flight > 40
    assert desk.files.all("attempts") == []


def test_a_low_hard_limit_is_refused_with_the_number_that_is_possible(
    desk: Desk, provider: Simulator
) -> None:
    result = limited(desk, 64, 300, 200)
    assert result.code == 2
    assert "200 requests in flight need" in result.err
    assert "this system allows 300" in result.err
    assert arrived(provider) == 0
    assert not desk.files.folder.exists()
    (possible,) = re.findall(r"--concurrency (\d+) or less", result.err)
    again = limited(desk, 64, 300, int(possible) + 1)
    assert again.code == 2
    assert limited(desk, 64, 300, int(possible)).code == 0
    assert len(desk.files.all("rows")) == 60


def test_where_not_even_one_is_possible_it_does_not_say_so(desk: Desk) -> None:
    result = limited(desk, 64, 100, 1)
    assert result.code == 2
    assert "--concurrency" not in result.err
    assert "ulimit" in result.err
