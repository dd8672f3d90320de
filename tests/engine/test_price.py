"""List prices: what a reply came to, and where that stays unknown."""

from __future__ import annotations

import pytest

from engine.money.price import Price, dearest
from engine.plan import EndpointFacts
from engine.wire.usage import Usage

USAGE = Usage(prompt_tokens=1000, completion_tokens=100)


@pytest.mark.parametrize(
    ("usage", "price", "usd"),
    [
        (USAGE, Price(1e-6, 1e-5), 0.002),
        (USAGE, Price(0.0, 1e-5), 0.001),
        (USAGE, Price(0.0, 0.0), 0.0),
        (USAGE, Price(None, 1e-5), None),
        (USAGE, Price(1e-6, None), None),
        (Usage(None, 100), Price(1e-6, 1e-5), None),
        (Usage(1000, None), Price(1e-6, 1e-5), None),
    ],
)
def test_what_is_unknown_makes_the_cost_unknown_and_never_smaller(
    usage: Usage, price: Price, usd: float | None
) -> None:
    assert price.of(usage) == (None if usd is None else pytest.approx(usd))


def test_the_host_that_answered_counts_and_else_the_dearest() -> None:
    facts = EndpointFacts(
        prompt_usd=4e-6, completion_usd=4e-5, prices={"Novita": Price(1e-6, 1e-5)}
    )
    assert facts.cost_of(USAGE, "Novita") == pytest.approx(0.002)
    assert facts.cost_of(USAGE, "Another") == pytest.approx(0.008)
    assert facts.cost_of(USAGE, None) == pytest.approx(0.008)
    assert EndpointFacts().cost_of(USAGE, None) is None


def test_the_dearest_of_several() -> None:
    assert dearest([Price(1.0, 5.0), Price(2.0, None)]) == Price(2.0, 5.0)
    assert dearest([]) == Price()
