"""The money of whoever asks: keys, balance, and what requests in flight hold of it (USD)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.simulator.outgoing import json_reply
from engine.simulator.refusals import error

if TYPE_CHECKING:
    from engine.simulator.outgoing import Outgoing
    from engine.simulator.scenario import Account as Terms


_DUST = 1e-9
"""What sums of holds may leave behind when all have ended."""


class Account:
    """One prepaid account and its one key.

    A hold is the estimated cost of a request: it stands from the request's start until a short
    settlement window after its end (facts page, §0).
    """

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self.usage = terms.total_usage
        self.total_credits = terms.total_credits
        self.held = 0.0

    @property
    def balance(self) -> float:
        """Credits left."""
        return self.total_credits - self.usage

    def key_fault(self, authorization: str | None) -> str | None:
        """Return the fault of a request's key: `no_key`, `bad_key` or None."""
        if not self._terms.keys:
            return None
        if not authorization:
            return "no_key"
        key = authorization.removeprefix("Bearer ").strip()
        return None if key in self._terms.keys else "bad_key"

    def money_fault(self, hold: float) -> str | None:
        """Return why a request that would hold this much cannot be paid for, or None."""
        terms = self._terms
        if terms.limit is not None and self.usage >= terms.limit:
            return "key_limit_403"
        if self.balance <= 0:
            return "credits"
        if hold > self.balance:
            return "credits_afford"
        budget = terms.in_flight_budget
        if budget is not None and self.held + hold > budget:
            return "in_flight_budget" if self.held > _DUST else "credits_weight"
        return None

    def release(self, hold: float) -> None:
        """End a hold."""
        self.held -= hold

    def top_up(self, amount: float) -> None:
        """Add credits."""
        self.total_credits += amount

    def key(self) -> dict[str, Any]:
        """Return the body of `GET /key`."""
        limit = self._terms.limit
        return {
            "data": {
                "label": "sk-or-v1-sim...000",
                "limit": limit,
                "limit_remaining": None if limit is None else max(limit - self.usage, 0.0),
                "limit_reset": None,
                "usage": self.usage,
                "usage_daily": self.usage,
                "usage_weekly": self.usage,
                "usage_monthly": self.usage,
                "byok_usage": 0.0,
                "include_byok_in_limit": False,
                "is_free_tier": False,
                "is_management_key": False,
                "expires_at": None,
                "rate_limit": {"requests": -1, "interval": "10s", "note": "deprecated"},
            }
        }

    def credits_page(self) -> Outgoing:
        """Return the page `GET /credits`, which some keys may not read."""
        if self._terms.credits_forbidden:
            body = error(403, "Only management keys can read the credits of an account")
            return json_reply(body, 403)
        total = {"total_credits": self.total_credits, "total_usage": self.usage}
        return json_reply({"data": total})
