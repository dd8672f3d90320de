"""The key and the account's money as `/key` and `/credits` tell them, and what is wrong with them.

Sources: OpenRouter's GET /key (limit_remaining, expires_at, is_free_tier) and GET /credits
(total_credits - total_usage), which an ordinary key may not be allowed to read (403).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from engine.checks.findings import Finding, fail, ok, warn
from engine.checks.pages import Page, Pages
from engine.faults.families import FAMILIES
from engine.format import duration, money
from engine.preflight import AUTH_STATUS

_SOON_S = 7 * 86_400.0
_FOUND = 200


@dataclass(frozen=True, slots=True)
class Account:
    """USD; None where it is not known."""

    key_accepted: bool | None = None
    key_limit_usd: float | None = None
    key_left_usd: float | None = None
    key_limit_reset: str | None = None
    key_expires_at: str | None = None
    free_tier: bool = False
    credits_usd: float | None = None

    @property
    def balance_usd(self) -> float | None:
        """What can still be spent: the smaller of the key's rest and the account's credits."""
        known = [usd for usd in (self.key_left_usd, self.credits_usd) if usd is not None]
        return min(known, default=None)


def read_account(pages: Pages) -> Account:
    """What the two pages say; nothing is known of an endpoint that has no such pages."""
    if pages.api != "openrouter":
        return Account()
    key, credit = pages.key.data, pages.credits.data
    total, used = _number(credit.get("total_credits")), _number(credit.get("total_usage"))
    reset, expires = key.get("limit_reset"), key.get("expires_at")
    return Account(
        key_accepted=_accepted(pages.key),
        key_limit_usd=_number(key.get("limit")),
        key_left_usd=_number(key.get("limit_remaining")),
        key_limit_reset=reset if isinstance(reset, str) else None,
        key_expires_at=expires if isinstance(expires, str) else None,
        free_tier=key.get("is_free_tier") is True,
        credits_usd=None if total is None or used is None else total - used,
    )


def account_findings(
    account: Account, pages: Pages, *, key_given: bool, now: float
) -> Iterator[Finding]:
    """What is to be said of key and credits; `now` is epoch seconds."""
    if account.key_accepted is False or pages.models_status in AUTH_STATUS:
        yield _refused(pages, key_given=key_given)
        return
    if pages.api != "openrouter":
        return
    if account.key_accepted is None:
        status = "no answer" if pages.key.status is None else f"HTTP {pages.key.status}"
        yield warn("endpoint", "key", f"the key could not be checked ({status} on /key)")
    else:
        yield (
            _key(account)
            if key_given
            else ok("endpoint", "key", "no key is set, and the endpoint wants none")
        )
        yield from _expiry(account, now)
    if account.free_tier:
        text = "the account is on the free tier, which has a daily number of requests"
        yield warn("endpoint", "free_tier", text, "Buy credits before a large run.")
    yield _credits(account, pages)


def _refused(pages: Pages, *, key_given: bool) -> Finding:
    page = "/models" if pages.models_status in AUTH_STATUS else "/key"
    status = pages.models_status if page == "/models" else pages.key.status
    if key_given:
        text = f"the endpoint does not accept the key (HTTP {status} on {page})"
    else:
        text = f"the endpoint wants a key and none is set (HTTP {status} on {page})"
    return fail("endpoint", "key", text, FAMILIES["auth"].action)


def _key(account: Account) -> Finding:
    left, limit = account.key_left_usd, account.key_limit_usd
    if left is None:
        return ok("endpoint", "key", "the key is accepted and has no limit of its own")
    every = f", reset {account.key_limit_reset}" if account.key_limit_reset else ""
    text = f"the key is accepted; {money(left)} of its limit {money(limit)} is left{every}"
    if left > 0:
        return ok("endpoint", "key", text)
    return fail(
        "endpoint", "key", f"the key's limit is used up: {text}", "Raise the limit of the key."
    )


def _expiry(account: Account, now: float) -> Iterator[Finding]:
    ends = epoch(account.key_expires_at)
    if ends is None:
        return
    if ends <= now:
        text = f"the key expired at {account.key_expires_at}"
        yield fail("endpoint", "key_expiry", text, "Make a new key.")
    elif ends - now < _SOON_S:
        text = f"the key expires in {duration(ends - now)}, at {account.key_expires_at}"
        yield warn("endpoint", "key_expiry", text, "Make a new key before a long run.")


def _credits(account: Account, pages: Pages) -> Finding:
    usd = account.credits_usd
    if usd is not None and usd > 0:
        return ok("endpoint", "credits", f"the account holds {money(usd)}")
    if usd is not None:
        text = f"the account's credits are used up ({money(usd)})"
        return fail("endpoint", "credits", text, "Top up the account.")
    status = "no answer" if pages.credits.status is None else f"HTTP {pages.credits.status}"
    rest = (
        "only the key's limit is known"
        if account.key_left_usd is not None
        else ("the run cannot wait before they run out")
    )
    text = f"the account's credits cannot be read with this key ({status} on /credits): {rest}"
    return warn("endpoint", "credits", text, "Look at the balance in the provider's console.")


def epoch(text: str | None) -> float | None:
    """Epoch seconds of an ISO 8601 date or time (UTC where it names no zone), or None."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _accepted(page: Page) -> bool | None:
    if page.status in AUTH_STATUS:
        return False
    return True if page.status == _FOUND else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
