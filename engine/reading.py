"""How a reply becomes token IDs: the interface the engine uses, and the reader for text only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from engine.feed.prompts import Message
from engine.schedule import Job
from engine.tokens.template import with_declared_tools
from engine.wire.reply import Reply


@dataclass(frozen=True, slots=True)
class Reading:
    """Token IDs of one generation and how sure they are (DESIGN §6, `exactness`)."""

    prompt_ids: list[int] | None = None
    completion_ids: list[int] | None = None
    exactness: str = "unverified"


@dataclass(frozen=True, slots=True)
class ProviderWords:
    """What the screens say of a provider's text."""

    profile: str = ""
    prompt_delta: str = ""


class Reader(Protocol):
    """Reads replies of one run; holds what it learns of each provider."""

    def with_tools(self, messages: list[Message], tools: list[Any]) -> list[Message]:
        """The messages with the tools declared in the prompt text (tools_mode raw)."""
        ...

    def read(self, job: Job, messages: list[Message], reply: Reply) -> Reading:
        """The token IDs of a reply."""
        ...

    def as_served(self, row: dict[str, Any]) -> str:
        """Our own answer (a line of rows.jsonl) as it is given back in the next turn."""
        ...

    def words(self, provider: str) -> ProviderWords:
        """What is known of a provider's text so far."""
        ...


class TextReader:
    """`tokenizer = "none"`: rows carry text and no ids."""

    def with_tools(self, messages: list[Message], tools: list[Any]) -> list[Message]:
        """The messages with the tools declared in the prompt text (tools_mode raw)."""
        return with_declared_tools(messages, tools)

    def read(self, job: Job, messages: list[Message], reply: Reply) -> Reading:
        """No ids; ids that a server sent by itself are kept, but nothing vouches for them."""
        del job, messages
        return Reading(_list(reply.prompt_ids), _list(reply.completion_ids))

    def as_served(self, row: dict[str, Any]) -> str:
        """The content as it came."""
        content: str | None = row["content"]
        return content or ""

    def words(self, provider: str) -> ProviderWords:
        """Nothing is known."""
        del provider
        return ProviderWords()


def _list(ids: Any) -> list[int] | None:
    return None if ids is None else list(ids)
