"""What a chat request must look like, as far as the provider acts on it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Tokens = Annotated[int, Field(ge=1, strict=True)]


class _Wish(BaseModel):
    """OpenRouter's `provider` object: it takes no other keys (facts page, §1)."""

    model_config = ConfigDict(extra="forbid")

    order: list[str] | None = None
    only: list[str] | None = None
    ignore: list[str] | None = None
    allow_fallbacks: bool | None = None
    require_parameters: bool | None = None
    data_collection: str | None = None
    zdr: bool | None = None
    enforce_distillable_text: bool | None = None
    quantizations: list[str] | None = None
    sort: Any = None
    preferred_min_throughput: Any = None
    preferred_max_latency: Any = None
    max_price: dict[str, float] | None = None
    options: dict[str, Any] | None = None


class _Function(BaseModel):
    name: str
    parameters: dict[str, Any] | None = None


class _Tool(BaseModel):
    function: _Function


class _Request(BaseModel):
    model: str
    messages: list[dict[str, Any]] = Field(min_length=1)
    provider: _Wish | None = None
    tools: list[_Tool] | None = None
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None


def complaint(body: dict[str, Any]) -> str | None:
    """Return what is wrong with a request's body, or None."""
    if not body.get("messages"):
        return 'Input required: specify "prompt" or "messages"'
    try:
        _Request.model_validate(body)
    except ValidationError as exc:
        first = exc.errors()[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return None
