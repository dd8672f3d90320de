"""What the simulated model sampled, before any host touches it."""

from __future__ import annotations

from dataclasses import dataclass

from engine.simulator.toolcalls import Call
from engine.simulator.writer import EMPTY, Text
from engine.tokens import kimi


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model sampled: reasoning, content, tool calls, and why it ended.

    `thought` says that `</think>` was sampled; `tools` is the raw tool section (one block).
    """

    reasoning: Text
    content: Text
    thought: bool
    finish: str = "stop"
    tools: Text = EMPTY
    calls: tuple[Call, ...] = ()

    @property
    def completion_tokens(self) -> int:
        """Tokens sampled, with `</think>` and the final `<|im_end|>`."""
        ended = self.finish != "length"
        return self.reasoning.count + self.content.count + self.tools.count + self.thought + ended

    @property
    def ids(self) -> list[int]:
        """The ids sampled, in order."""
        end_think = [kimi.END_THINK] if self.thought else []
        end = [] if self.finish == "length" else [kimi.IM_END]
        return [*self.reasoning.ids, *end_think, *self.content.ids, *self.tools.ids, *end]
