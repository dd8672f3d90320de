"""Prompt ids against `usage.prompt_tokens`: what a provider adds to or drops from the prompt.

A host that injects a system prompt, serves another template revision or drops a message's name
shows as a constant difference; which rows it touches depends on their shape, so rows are tallied
by shape. Source of the named differences: facts of the K2.5 template, verified on its tokenizer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from engine.tokens import kimi

MIN_ROWS: Final = 10
CONSTANT_SHARE: Final = 0.95
_MAX_DISTINCT: Final = 64
"""Differences kept apart per shape; a provider with more has no constant one."""

OLD_SYSTEM_PROMPT: Final = 18
NAME_DROPPED: Final = -2


@dataclass(frozen=True, slots=True)
class Shape:
    """What decides whether a template peculiarity touches a prompt."""

    system: bool
    """The conversation begins with a system message."""
    tools: bool

    def __str__(self) -> str:
        tools = "tools" if self.tools else "no tools"
        return f"{tools} and {'a' if self.system else 'no'} system message"


@dataclass(frozen=True, slots=True)
class PromptDifference:
    """A difference that a provider shows on prompts of one shape."""

    shape: Shape
    tokens: int
    """Counted minus ours; 0 where there is no constant difference but rows differ."""
    rows: int
    """Rows of the shape whose count is known."""
    differing: int
    """Rows whose count differs at all."""
    words: str


def shape_of(messages: Sequence[Mapping[str, Any]], tools: Sequence[Any] | None) -> Shape:
    """The shape of a prompt as the template sees it, before tools are declared in its text."""
    declared = bool(messages) and messages[0].get("name") == "tool_declare"
    first = messages[1:2] if declared else messages[:1]
    return Shape(
        system=bool(first) and first[0].get("role") == "system",
        tools=bool(tools) or declared,
    )


@dataclass(slots=True)
class PromptTally:
    """Differences of one provider's rows; a fold whose sums do not depend on the rows' order."""

    thinking: bool = True
    counts: dict[Shape, Counter[int]] = field(default_factory=dict)
    totals: Counter[Shape] = field(default_factory=Counter)

    def fold(self, shape: Shape, ours: int, counted: int | None) -> None:
        """Count one row: our number of prompt ids and `usage.prompt_tokens`."""
        if type(counted) is not int or counted <= 0:
            return
        self.totals[shape] += 1
        differences = self.counts.setdefault(shape, Counter())
        difference = counted - ours
        if difference in differences or len(differences) < _MAX_DISTINCT:
            differences[difference] += 1

    def merge(self, other: PromptTally) -> None:
        """Add the rows of another tally."""
        self.totals.update(other.totals)
        for shape, counts in other.counts.items():
            self.counts.setdefault(shape, Counter()).update(counts)

    def findings(self) -> list[PromptDifference]:
        """What is to be said of the provider, one entry a shape that shows something."""
        found = [self._finding(shape) for shape in sorted(self.totals, key=str)]
        return [finding for finding in found if finding is not None]

    def words(self) -> str:
        """The findings on one line; empty where the counts agree."""
        return "; ".join(dict.fromkeys(finding.words for finding in self.findings()))

    def _finding(self, shape: Shape) -> PromptDifference | None:
        rows, counts = self.totals[shape], self.counts[shape]
        differing = rows - counts[0]
        if rows < MIN_ROWS or differing <= rows * (1 - CONSTANT_SHARE):
            return None
        tokens, agreeing = max(counts.items(), key=lambda item: (item[1], -abs(item[0])))
        if tokens and agreeing >= rows * CONSTANT_SHARE:
            words = self._explain(tokens, shape)
        else:
            tokens = 0
            words = f"counts other prompt tokens in {differing} of {rows} rows with {shape}"
        return PromptDifference(shape, tokens, rows, differing, words)

    def _explain(self, tokens: int, shape: Shape) -> str:
        verb = "adds" if tokens > 0 else "drops"
        number = abs(tokens)
        counted = f"{verb} {number} prompt token{'' if number == 1 else 's'}"
        return f"{counted}: {self._cause(tokens, shape)}"

    def _cause(self, tokens: int, shape: Shape) -> str:
        if tokens == OLD_SYSTEM_PROMPT and not shape.system:
            return "the old default system prompt"
        if tokens == -OLD_SYSTEM_PROMPT and not shape.system:
            return "the default system prompt of K2-Thinking"
        if tokens == 1 and self.thinking:
            return f"thinking is off there ({kimi.NAMED_SPECIALS[kimi.END_THINK]} ends the prompt)"
        if tokens == -1 and not self.thinking:
            return "thinking is on there"
        if tokens == NAME_DROPPED and shape.tools:
            return "the tool declaration's name, which makes it a system message"
        return f"another template or an injected text, on prompts with {shape}"
