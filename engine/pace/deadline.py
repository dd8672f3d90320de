"""How long one attempt may take: the manifest's limit, or less once replies are known."""

from __future__ import annotations

from engine.view.series import Quantiles

FLOOR_S = 120.0
KNOWN_AFTER = 200
FACTOR = 4.0


def deadline_s(request_timeout_s: float, latency: Quantiles) -> float:
    """Wall-clock seconds for one attempt (DESIGN §7)."""
    if latency.count < KNOWN_AFTER:
        return request_timeout_s
    slow = latency.quantile(0.99) or request_timeout_s
    return min(request_timeout_s, max(FLOOR_S, FACTOR * slow))
