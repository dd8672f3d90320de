"""Checks one row against itself: do its ids decode to its text, does its count agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from engine.manifest import Endpoint
from engine.tokens.engine_ids import ids_decode_to_text
from engine.tokens.layouts import answer_of_row
from engine.tokens.pieces import Encoder
from engine.tokens.template import PromptError, render_prompt


class Codes(Encoder, Protocol):
    """A vocabulary: text to ids and back."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ids; raises ValueError on an id that it does not have."""
        ...


class Auditor:
    """Audits the rows of one run."""

    def __init__(self, endpoint: Endpoint, codes: Codes) -> None:
        self._endpoint = endpoint
        self._codes = codes

    def complaints(self, row: dict[str, Any]) -> Iterator[str]:
        """What is structurally wrong with a row's ids, a sentence each."""
        if row.get("prompt_ids") is not None:
            yield from self._prompt(row)
        ids, grade = row.get("completion_ids"), row.get("exactness")
        if ids is None:
            if grade in {"engine", "matched"}:
                yield f"graded {grade}, but it has no completion_ids"
        elif grade != "mismatch":
            yield from self._completion(row, ids, str(grade))

    def _prompt(self, row: dict[str, Any]) -> Iterator[str]:
        tools = row.get("tools") if self._endpoint.tools_mode == "api" else None
        try:
            text = render_prompt(
                row["messages"],
                tools=tools,
                thinking=self._endpoint.thinking,
                variant=self._endpoint.tokenizer,
            )
            decoded = self._codes.decode(row["prompt_ids"])
        except (PromptError, ValueError, KeyError) as error:
            yield f"its prompt_ids cannot be checked: {error}"
            return
        if decoded != text and row.get("exactness") != "engine":
            yield "its prompt_ids do not decode to its messages"

    def _completion(self, row: dict[str, Any], ids: list[int], grade: str) -> Iterator[str]:
        answer = answer_of_row(row)
        agrees = ids_decode_to_text(
            ids,
            answer,
            self._codes.decode,
            thinking=self._endpoint.thinking,
            variant=self._endpoint.tokenizer,
        )
        if not agrees:
            yield "its completion_ids do not decode to its text"
        counted = answer.completion_tokens
        if grade == "matched" and counted not in {None, len(ids), len(ids) - 1}:
            yield f"graded matched with {len(ids)} ids, but the server counted {counted}"
