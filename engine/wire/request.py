"""The body and headers of one request, byte-identical whenever the same thing is asked again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.disk.jsonlines import dump
from engine.feed.prompts import Message, Prompt
from engine.manifest import Endpoint

CACHE_TTL_S = 86_400
_CHAT = "/chat/completions"


@dataclass(frozen=True, slots=True)
class Asking:
    """How this endpoint is asked; `api` and `token_ids` are resolved (no `auto` any more)."""

    endpoint: Endpoint
    api: str
    token_ids: bool = False

    @property
    def path(self) -> str:
        """Below the base URL."""
        return _CHAT

    @property
    def caches(self) -> bool:
        """Whether an identical resend is free once the first one finished."""
        return self.api == "openrouter" and self.endpoint.response_cache

    def headers(self) -> dict[str, str]:
        """Extra request headers: the manifest's own, and the response cache's switch."""
        headers = dict(self.endpoint.headers)
        if self.api == "openrouter":
            headers.setdefault("X-OpenRouter-Title", "eaglegen-tui")
        if self.caches:
            headers["X-OpenRouter-Cache"] = "true"
            headers["X-OpenRouter-Cache-TTL"] = str(CACHE_TTL_S)
        return headers

    def body(
        self,
        prompt: Prompt,
        messages: list[Message],
        sampling: Mapping[str, Any],
        ignore: Iterable[str] = (),
    ) -> bytes:
        """The JSON body. Key order is fixed: OpenRouter's cache hashes the bytes."""
        body: dict[str, Any] = {"model": self.endpoint.model, "messages": messages}
        body.update(sampling)
        body.update(self._switches())
        if self.endpoint.tools_mode == "api" and prompt.tools:
            body["tools"] = prompt.tools
        routing = self._routing(ignore)
        if routing:
            body["provider"] = routing
        if self.caches:
            # rows with the same served text want a sample each, not one cached answer between them
            row = f"{prompt.dataset}/{prompt.key}".encode()
            body["user"] = hashlib.sha256(row).hexdigest()[:32]
        body.update(self.endpoint.extra_body)
        return dump(body)

    def _switches(self) -> dict[str, Any]:
        thinking = self.endpoint.thinking
        if self.api == "openrouter":
            return {"reasoning": {"enabled": thinking}}
        if self.api in {"vllm", "sglang"}:
            switches: dict[str, Any] = {"chat_template_kwargs": {"thinking": thinking}}
            return {**switches, "return_token_ids": True} if self.token_ids else switches
        return {}

    def _routing(self, ignore: Iterable[str]) -> dict[str, Any]:
        routing = dict(self.endpoint.provider) if self.api == "openrouter" else {}
        avoided = [*routing.get("ignore", ()), *sorted(ignore)]
        if avoided and self.api == "openrouter":
            routing["ignore"] = list(dict.fromkeys(avoided))
        return routing
