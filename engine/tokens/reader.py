"""What the engine uses while a run goes on: prompts and replies in, ids and grades out.

`TokenReader` learns each provider's profile on the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Protocol

from engine.tokens import kimi
from engine.tokens.engine_ids import ids_decode_to_text, with_final_end
from engine.tokens.grades import Exactness, grade
from engine.tokens.layouts import CLOSE, OPEN, Answer, count_calls
from engine.tokens.pieces import Encoder, split, unspaced
from engine.tokens.profiles import UNKNOWN, Profile, ProfileTally
from engine.tokens.prompt_check import PromptTally, shape_of
from engine.tokens.readings import NO_EVIDENCE, Evidence, Readings
from engine.tokens.template import Message, PromptError, declare_tools_message, render_prompt


class Codec(Encoder, Protocol):
    """A vocabulary: see `vocabulary.Vocabulary`."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; raises ValueError on an id that the vocabulary does not have."""
        ...


@dataclass(frozen=True, slots=True)
class Completion:
    """The ids of one generation, how sure they are, and what the row says of its provider."""

    ids: list[int] | None
    exactness: Exactness
    evidence: Evidence = NO_EVIDENCE


@dataclass(frozen=True, slots=True)
class ProviderText:
    """What is known of a provider's text."""

    profile: Profile = UNKNOWN
    prompt_words: str = ""
    """A constant difference to usage.prompt_tokens, in words."""


class TokenReader:
    """Turns prompts and replies into ids for one endpoint; large ones may come from a thread."""

    def __init__(
        self, vocabulary: Codec, *, thinking: bool = True, variant: str = kimi.KIMI_K25
    ) -> None:
        self._vocabulary = vocabulary
        self._thinking = thinking
        self._variant = variant
        self._tallies: dict[str | None, ProfileTally] = {}
        self._profiles: dict[str | None, Profile] = {}
        self._prompts: dict[str | None, PromptTally] = {}
        self._learning = Lock()

    def declaration(self, tools: Sequence[Any]) -> dict[str, Any]:
        """The message that declares tools in the prompt text (tools_mode raw)."""
        return declare_tools_message(tools, variant=self._variant)

    def prompt(self, messages: Sequence[Message], tools: Sequence[Any] | None = None) -> list[int]:
        """Ids of the prompt as served; `tools` are those sent as a parameter (tools_mode api).

        Raises `PromptError` for a conversation that cannot be served as text.
        """
        text = render_prompt(messages, tools=tools, thinking=self._thinking, variant=self._variant)
        try:
            return self._vocabulary.encode(text)
        except ValueError as error:
            raise PromptError(f"the prompt is no Unicode text: {error}") from error

    def check_prompt(
        self,
        provider: str | None,
        messages: Sequence[Message],
        tools: Sequence[Any] | None,
        *,
        ours: int,
        counted: int | None,
    ) -> None:
        """Tally our number of prompt ids beside `usage.prompt_tokens`."""
        with self._learning:
            tally = self._prompts.setdefault(provider, PromptTally(self._thinking))
            tally.fold(shape_of(messages, tools), ours, counted)

    def completion(
        self,
        answer: Answer,
        *,
        provider: str | None = None,
        messages: Sequence[Message] = (),
        server_ids: Sequence[int] | None = None,
    ) -> Completion:
        """Ids and grade of one reply, by what is known of its provider so far.

        `messages` are those of the prompt: tool calls in them number those of the answer.
        """
        answer = replace(answer, earlier_calls=count_calls(messages))
        if server_ids is not None:
            return self._given(answer, server_ids)
        readings = Readings(
            answer, self._vocabulary, thinking=self._thinking, variant=self._variant
        )
        graded = grade(readings, self.profile(provider))
        self._learn(provider, readings.evidence)
        return Completion(graded.ids, graded.exactness, readings.evidence)

    def profile(self, provider: str | None) -> Profile:
        """What is known of a provider's text so far."""
        return self._profiles.get(provider, UNKNOWN)

    def profiles(self) -> dict[str | None, ProviderText]:
        """Every provider met so far, for the snapshot."""
        names = dict.fromkeys((*self._tallies, *self._prompts))
        return {name: self.text_of(name) for name in names}

    def text_of(self, provider: str | None) -> ProviderText:
        """One provider, for the snapshot."""
        tally = self._prompts.get(provider)
        return ProviderText(self.profile(provider), tally.words() if tally else "")

    def as_served(self, answer: Answer, provider: str | None = None) -> str:
        """Our own answer as it is given back in the next turn.

        Content only, without inline reasoning and without a spacing provider's spaces.
        """
        content = answer.content or ""
        inline = not answer.reasoning and CLOSE in content
        text = content.lstrip().removeprefix(OPEN) if inline else content
        parts = split(text)
        if self.profile(provider).reading == "spaced":
            parts = unspaced(parts)
        if inline:
            parts = parts[parts.index(CLOSE) + 1 :]
        return "".join(parts)

    def _given(self, answer: Answer, server_ids: Sequence[int]) -> Completion:
        exact = ids_decode_to_text(
            server_ids,
            answer,
            self._vocabulary.decode,
            thinking=self._thinking,
            variant=self._variant,
        )
        if not exact:
            return Completion(list(server_ids), "mismatch")
        return Completion(with_final_end(server_ids, answer), "engine")

    def _learn(self, provider: str | None, evidence: Evidence) -> None:
        with self._learning:
            tally = self._tallies.setdefault(provider, ProfileTally())
            if tally.fold(evidence) or evidence.counted:
                self._profiles[provider] = tally.profile()
