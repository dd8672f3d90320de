"""Whether the money suffices: the estimate against the caps, the balance and the concurrency."""

from __future__ import annotations

from collections.abc import Iterator

from engine.checks.findings import Finding, fail, ok, warn
from engine.checks.money import (
    CONTENT_SHARE,
    HELD_SHARE,
    PLAIN_TOKENS,
    THINKING_TOKENS,
    TOKENS_PER_S,
    Cases,
    Estimate,
)
from engine.format import duration, money, percent, thousands

_ROOM = 1.1
"""A balance within this factor of the high case is called enough."""


def assumptions(reckoned: Estimate) -> list[str]:
    """What low and high stand on, a sentence each."""
    said = []
    open_needs = [need for need in reckoned.needs if need.left]
    guessed = [need for need in open_needs if not need.measured]
    if len(guessed) < len(open_needs):
        said.append(
            "Measured: an answer has the 10th percentile (low), the mean or the 90th "
            "percentile (high) of tokens and seconds of the rows on disk."
        )
    if guessed:
        thinking = guessed[0].thinking
        tokens = THINKING_TOKENS if thinking else PLAIN_TOKENS
        said.append(
            f"Assumed (~): an answer has {tokens.low:,.0f} (low) to {tokens.high:,.0f} (high) "
            f"tokens, at most max_tokens; a request gets {TOKENS_PER_S.high:.0f} (low) to "
            f"{TOKENS_PER_S.low:.0f} (high) tokens/s. `run --limit 20` measures it."
        )
    if any(need.carried for need in reckoned.needs):
        share = CONTENT_SHARE if reckoned.needs[0].thinking else 1.0
        said.append(
            f"Later turns carry our own answers: {share:.0%} of their tokens, or what was measured."
        )
    said.append(
        "Price: the cheapest (low) and the dearest host (high) that may answer, without cache "
        f"discounts. Time: {HELD_SHARE.low:.0%} (low) to {HELD_SHARE.high:.0%} (high) of the "
        "concurrency is taken, and nothing is refused."
    )
    return said


def money_findings(
    reckoned: Estimate,
    *,
    max_cost_usd: float | None,
    balance_usd: float | None,
    paid: bool,
    asked: bool = True,
) -> Iterator[Finding]:
    """What the estimate means; `paid`: the endpoint is one that bills, `asked`: not offline."""
    cost = reckoned.cost_usd
    if not any(need.left for need in reckoned.needs):
        if any(need.generations for need in reckoned.needs):
            yield ok("estimate", "price", "every generation has its row: nothing is left to ask")
        return
    yield _duration(reckoned)
    if not paid:
        yield ok("estimate", "price", "the endpoint names no prices: cost is unknown")
        return
    if cost is None:
        text = "the prices are not known, so neither is the cost; max_cost_usd cannot act on it"
        fix = "See the findings about the endpoint." if asked else "Check without --offline."
        yield warn("estimate", "price", text, fix)
        return
    yield ok("estimate", "price", _price(cost, reckoned))
    yield from _cap(reckoned, max_cost_usd)
    yield from _balance(cost, reckoned, balance_usd)
    yield from _flying(reckoned, balance_usd)


def span_words(cases: Cases, *, measured: bool) -> str:
    """`$31.20 to $210.00`, with the middle in front where it is measured."""
    low, middle, high = cases
    if money(low) == money(high):
        return money(low)
    wide = f"{money(low)} to {money(high)}"
    return f"about {money(middle)} ({wide})" if measured else wide


def _duration(reckoned: Estimate) -> Finding:
    low, _, high = reckoned.duration_s
    flying = thousands(reckoned.concurrency)
    text = f"takes {duration(low)} to {duration(high)} with up to {flying} in flight"
    return ok("estimate", "duration", text)


def _price(cost: Cases, reckoned: Estimate) -> str:
    spent = f"; {money(reckoned.spent_usd)} is spent already" if reckoned.spent_usd else ""
    ceiling = reckoned.ceiling_usd
    most = (
        ""
        if ceiling is None
        else (f"; {money(ceiling)} if every answer ran into max_tokens and no limit ended the run")
    )
    return f"what is left costs {span_words(cost, measured=reckoned.measured)}{spent}{most}"


def _cap(reckoned: Estimate, cap: float | None) -> Iterator[Finding]:
    if cap is None:
        text = "no max_cost_usd: nothing ends the run by its cost"
        yield warn("estimate", "cap", text, "Set max_cost_usd in [limits].")
        return
    each, spent = reckoned.reserve_each_usd, reckoned.spent_usd
    if each is not None and cap - spent < each:
        used = f", of which {money(spent)} is spent," if spent else ""
        text = f"max_cost_usd {money(cap)}{used} does not hold one request of up to {money(each)}"
        yield fail("manifest", "cap", text, "Raise max_cost_usd, or lower max_tokens.")
        return
    yield _capped(reckoned, cap)
    if each is not None and cap - spent < each * reckoned.concurrency:
        held = thousands(int((cap - spent) / each))
        text = f"max_cost_usd lets {held} be in flight until 50 rows tell what they cost"
        yield ok("estimate", "cap", text)


def _capped(reckoned: Estimate, cap: float) -> Finding:
    whole = sum(need.left for need in reckoned.needs)
    for case, words in (
        (reckoned.low, "even in the low case"),
        (reckoned.high, "in the high case"),
    ):
        if any(part.ends_by == "max_cost_usd" for part in case):
            done = percent(sum(part.generations for part in case), whole)
            text = f"max_cost_usd {money(cap)} ends the run {words}, after {done} of it"
            fix = "Raise it, or lower `prompts` or max_tokens."
            if case is reckoned.high and not reckoned.measured:
                fix = "A pilot (`run --limit 20`) narrows the estimate."
            return warn("estimate", "cap", text, fix)
    return ok("estimate", "cap", f"max_cost_usd {money(cap)} holds the high case")


def _balance(cost: Cases, reckoned: Estimate, balance: float | None) -> Iterator[Finding]:
    if balance is None or balance <= 0:  # the account's own finding says it
        return
    low, _, high = cost
    each = reckoned.reserve_each_usd or 0.0
    if balance < each:
        text = f"the balance of {money(balance)} does not hold one request of {money(each)}"
        yield fail("endpoint", "balance", text, "Top up, or lower max_tokens.")
    elif balance < low:
        text = f"the balance of {money(balance)} is below the low case by {money(low - balance)}"
        yield warn("estimate", "balance", text, "Top up; the run waits for it by itself.")
    elif balance < high:
        text = f"the balance of {money(balance)} lies within the estimate"
        yield warn("estimate", "balance", text, "Watch it; the run waits by itself before it ends.")
    else:
        text = f"the balance of {money(balance)} holds the high case"
        yield ok("estimate", "balance", text)


def _flying(reckoned: Estimate, balance: float | None) -> Iterator[Finding]:
    each, whole = reckoned.reserve_each_usd, reckoned.reserve_usd
    if each is None or whole is None or balance is None or balance < each:
        return
    flying = round(whole / each)
    text = f"{thousands(flying)} in flight reserve up to {money(whole)} ({money(each)} each)"
    if balance >= whole * _ROOM:
        yield ok("estimate", "concurrency", f"{text} of a balance of {money(balance)}")
        return
    held = int(balance / each)
    yield warn(
        "estimate",
        "concurrency",
        f"{text}; a balance of {money(balance)} holds {thousands(held)} at most, and a provider "
        "lets only a part of it be in flight (402 in_flight_budget)",
        f"Top up, lower max_tokens, or use --concurrency {max(1, held // 2)}.",
    )
