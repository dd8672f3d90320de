"""What the body of an error may name about the request that it answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Scene:
    """One refused or spoilt request, as far as error bodies speak of it."""

    request_id: str
    model: str
    provider: str
    """Display name of the host."""
    prompt_tokens: int
    max_tokens: int
    context_length: int
    retry_hint: str
    retry_after_s: float
    prompt_head: str
    """First 100 characters of the user's text: moderation quotes them."""
    now_ms: int
    affordable_tokens: int

    def headers(self) -> dict[str, str]:
        """Return the Retry-After header, if this hint is given there."""
        if self.retry_hint != "header":
            return {}
        return {"Retry-After": str(math.ceil(self.retry_after_s))}

    def hint(self) -> dict[str, Any]:
        """Return the metadata keys that carry the retry hint, if they are where it is given."""
        if self.retry_hint == "metadata":
            whole = math.ceil(self.retry_after_s)
            return {"retry_after_seconds": whole, "retry_after_seconds_raw": self.retry_after_s}
        if self.retry_hint == "metadata_headers":
            return {"headers": {"Retry-After": str(math.ceil(self.retry_after_s))}}
        return {}
