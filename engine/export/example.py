"""One generation as a training example: its ids, and its text as the model read and wrote it.

The text comes from the ids where they are known, so that no host's spaces are in it; a finished
conversation is never rendered again (facts/kimi-k2.5.md says why).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from engine.audits.survey import Codes, Kit
from engine.tokens import kimi
from engine.tokens.grades import Graded
from engine.tokens.layouts import CLOSE, END, OPEN, Answer, layouts
from engine.tokens.template import PromptError, render_prompt

_ENDS: Final = frozenset({kimi.IM_END, 163_585})


class LeftOutError(Exception):
    """A row that does not go out; the text is the reason's name."""


@dataclass(frozen=True, slots=True)
class Written:
    """What the model wrote, without the final `<|im_end|>`."""

    text: str
    """All of it, as it follows on the prompt."""
    reasoning: str
    """Without its tags; empty where there is none or where it has no end."""
    content: str
    """What follows the reasoning, with the raw tool section."""
    closed: bool
    """False where the reasoning never ended: a tool section inside it, or a cut."""

    @property
    def inline(self) -> str:
        """Content with the reasoning before it in tags; no tags where there is none."""
        if not self.closed:
            return OPEN + self.content
        return f"{OPEN}{self.reasoning}{CLOSE}{self.content}" if self.reasoning else self.content


class Example:
    """A row with its final ids and grade, ready for a format."""

    def __init__(self, kit: Kit, row: dict[str, Any], answer: Answer, graded: Graded) -> None:
        self.kit = kit
        self.row = row
        self.id: str = row["id"]
        self.messages: list[dict[str, Any]] = row["messages"]
        self.exactness = graded.exactness
        self.completion_ids = graded.ids
        self._answer = answer

    @property
    def tokens(self) -> int | None:
        """Number of ids of prompt and completion; None where they are unknown."""
        if self.prompt_ids is None or self.completion_ids is None:
            return None
        return len(self.prompt_ids) + len(self.completion_ids)

    @property
    def supervised(self) -> int:
        """Number of completion ids."""
        return len(self.completion_ids or ())

    @cached_property
    def prompt_ids(self) -> list[int] | None:
        """Ids of the prompt as served; rendered where the row has none, None if that fails."""
        ids: list[int] | None = self.row["prompt_ids"]
        if ids is not None or self.kit.codes is None:
            return ids
        try:
            return self.kit.codes.encode(rendered(self.kit, self.messages, self.tools))
        except (LeftOutError, ValueError):
            return None

    @property
    def tools(self) -> Sequence[Any] | None:
        """The tools that were sent as a parameter."""
        api = self.kit.endpoint.tools_mode == "api"
        return self.row.get("tools") if api else None

    @cached_property
    def prompt_text(self) -> str | None:
        """The prompt as served; None with `tokenizer = "none"`, whose template nobody knows."""
        if self.kit.codes is None:
            return None
        if self.prompt_ids is not None:
            return _decoded(self.kit.codes, self.prompt_ids)
        return rendered(self.kit, self.messages, self.tools)

    @cached_property
    def written(self) -> Written:
        """What the model wrote."""
        return written(self._completion_text(), self.kit)

    @cached_property
    def text(self) -> str | None:
        """Prompt and completion as the model read and wrote them; None as for `prompt_text`."""
        end = "" if self._answer.cut else END
        return None if self.prompt_text is None else self.prompt_text + self.written.text + end

    def resplit(self) -> bool:
        """Whether the text encodes to other ids than were sampled: what a text format loses.

        Other ids than a server's own are the canonical encoding already.
        """
        if self.kit.codes is None or self.exactness != "engine":
            return False
        ids = [*(self.prompt_ids or ()), *(self.completion_ids or ())]
        try:
            return self.text is not None and self.kit.codes.encode(self.text) != ids
        except (LeftOutError, ValueError):
            return True

    def _completion_text(self) -> str:
        ids, codes = self.completion_ids, self.kit.codes
        if ids is None or codes is None or self.exactness == "mismatch":
            return layouts(self._answer, **self.kit.reading)[0].text
        return _decoded(codes, ids[:-1] if ids and ids[-1] in _ENDS else ids)


def _decoded(codes: Codes, ids: Sequence[int]) -> str:
    try:
        return codes.decode(ids)
    except ValueError:
        raise LeftOutError("foreign_ids") from None


def written(text: str, kit: Kit) -> Written:
    """A completion's text taken apart at the end of its reasoning."""
    opens = kit.endpoint.tokenizer == kimi.KIMI_K2_THINKING
    if not (kit.endpoint.thinking or opens):
        return Written(text, "", text, closed=True)
    inner = text.removeprefix(OPEN) if opens else text
    reasoning, tag, content = inner.partition(CLOSE)
    if not tag:
        return Written(text, "", inner, closed=False)
    return Written(text, reasoning, content, closed=True)


def rendered(kit: Kit, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] | None) -> str:
    """A prompt as the model's template makes it; raises LeftOutError."""
    try:
        return render_prompt(messages, tools=tools, **kit.reading)
    except PromptError:
        raise LeftOutError("no_prompt") from None
