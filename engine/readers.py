"""Chooses and loads the reader that a manifest's tokenizer asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.feed.prompts import Message
from engine.manifest import Endpoint, Manifest
from engine.reading import ProviderWords, Reader, Reading, TextReader
from engine.schedule import Job
from engine.settings import Settings
from engine.tokens.layouts import Answer, answer_of_row
from engine.tokens.reader import TokenReader
from engine.tokens.template import PromptError, with_declared_tools
from engine.wire.reply import Reply

if TYPE_CHECKING:
    from engine.tokens.vocabulary import Vocabulary


def reader_for(manifest: Manifest, settings: Settings) -> Callable[[], Reader]:
    """A function that loads the reader (about 0.2 s for a vocabulary); called off the loop."""
    endpoint = manifest.endpoint

    def load() -> Reader:
        vocabulary = vocabulary_of(manifest, settings)
        if vocabulary is None:
            return TextReader()
        tokens = TokenReader(vocabulary, thinking=endpoint.thinking, variant=endpoint.tokenizer)
        return KimiReader(tokens, endpoint)

    return load


def vocabulary_of(manifest: Manifest, settings: Settings) -> Vocabulary | None:
    """The manifest's vocabulary, None with `tokenizer = "none"`; raises VocabularyError."""
    endpoint = manifest.endpoint
    if endpoint.tokenizer == "none":
        return None
    from engine.tokens.vocabulary import load_vocabulary

    path = manifest.tokenizer_file or settings.tokenizer_path
    return load_vocabulary(endpoint.tokenizer, path=path, cache_dir=settings.cache_dir)


class KimiReader:
    """Token IDs of a Kimi model from what an endpoint returns (facts: Kimi-K2.5)."""

    def __init__(self, tokens: TokenReader, endpoint: Endpoint) -> None:
        self._tokens = tokens
        self._api_tools = endpoint.tools_mode == "api"
        self._variant = endpoint.tokenizer

    def with_tools(self, messages: list[Message], tools: list[Any]) -> list[Message]:
        """The messages with the tools declared in the prompt text (tools_mode raw)."""
        return with_declared_tools(messages, tools, variant=self._variant)

    def read(self, job: Job, messages: list[Message], reply: Reply) -> Reading:
        """Ids of prompt and completion, and the grade by what is known of the provider so far."""
        tools = job.prompt.tools if self._api_tools else None
        completion = self._tokens.completion(
            Answer(
                content=reply.content,
                reasoning=reply.reasoning,
                tool_calls=reply.tool_calls,
                finish_reason=reply.finish_reason,
                completion_tokens=reply.usage.completion_tokens,
            ),
            provider=reply.provider,
            messages=messages,
            server_ids=reply.completion_ids,
        )
        prompt_ids = self._prompt_ids(messages, tools, reply)
        return Reading(prompt_ids, completion.ids, completion.exactness)

    def as_served(self, row: dict[str, Any]) -> str:
        """Content only, without inline reasoning and without a spacing provider's spaces."""
        return self._tokens.as_served(answer_of_row(row), row["provider"])

    def words(self, provider: str) -> ProviderWords:
        """The profile learned so far, and a constant difference in prompt tokens."""
        known = self._tokens.text_of(provider)
        return ProviderWords(known.profile.name, known.prompt_words)

    def _prompt_ids(
        self, messages: list[Message], tools: list[Any] | None, reply: Reply
    ) -> list[int] | None:
        if reply.prompt_ids is not None:
            return reply.prompt_ids
        try:
            ids = self._tokens.prompt(messages, tools)
        except PromptError:
            return None
        self._tokens.check_prompt(
            reply.provider, messages, tools, ours=len(ids), counted=reply.usage.prompt_tokens
        )
        return ids
