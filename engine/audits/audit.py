"""Checks one row against itself: do its ids decode to its text, does its count agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.audits.survey import Batch, Codes, Kit, rows_of
from engine.tokens.engine_ids import ids_decode_to_text
from engine.tokens.grades import Graded
from engine.tokens.layouts import Answer
from engine.tokens.template import PromptError, render_prompt

SURE = frozenset({"engine", "matched"})


@dataclass(slots=True)
class ProviderTally:
    """One provider's rows."""

    rows: int = 0
    sure: int = 0
    """Graded engine or matched."""
    other_prompt: int = 0
    """Rows whose ids from the server are not those of the template that we render."""
    miscounted: int = 0
    """Rows with ids from the server of which it counted another number."""


@dataclass(slots=True)
class Tally:
    """What some rows of a dataset add up to, and what is structurally wrong with them."""

    rows: int = 0
    completion_tokens: int = 0
    """As the servers counted them."""
    exportable_tokens: int = 0
    """Completion ids of rows that `export` takes by default."""
    grades: Counter[str] = field(default_factory=Counter)
    """Final grades: by what all rows together say of their providers."""
    flags: Counter[str] = field(default_factory=Counter)
    finish_reasons: Counter[str] = field(default_factory=Counter)
    providers: dict[str, ProviderTally] = field(default_factory=dict)
    faults: list[tuple[int, str]] = field(default_factory=list)
    """(position in the batch, what is wrong)."""


def audit(kit: Kit, batch: Batch) -> Tally:
    """Audit the rows of a batch."""
    tally = Tally()
    for position, (row, answer, graded) in enumerate(rows_of(kit, batch)):
        provider = tally.providers.setdefault(row["provider"] or "unnamed", ProviderTally())
        _count(tally, provider, row, answer, graded)
        if kit.codes is None:
            continue
        faults = _faults(kit, kit.codes, row, answer, provider)
        tally.faults += [(position, what) for what in faults]
    return tally


def _count(
    tally: Tally, provider: ProviderTally, row: dict[str, Any], answer: Answer, graded: Graded
) -> None:
    sure = graded.exactness in SURE
    tally.rows += 1
    tally.completion_tokens += answer.completion_tokens or 0
    if sure and not row["flags"] and not answer.cut:
        tally.exportable_tokens += len(graded.ids or ())
    tally.grades[graded.exactness] += 1
    tally.flags.update(row["flags"])
    tally.finish_reasons[row["finish_reason"]] += 1
    provider.rows += 1
    provider.sure += sure


def _faults(
    kit: Kit, codes: Codes, row: dict[str, Any], answer: Answer, provider: ProviderTally
) -> Iterator[str]:
    if row["prompt_ids"] is not None:
        yield from _prompt(kit, codes, row, provider)
    ids, grade = row["completion_ids"], row["exactness"]
    if ids is None:
        if grade in SURE:
            yield f"graded {grade}, but it has no completion_ids"
    elif grade != "mismatch":
        yield from _completion(kit, codes, row, answer, provider)


def _prompt(kit: Kit, codes: Codes, row: dict[str, Any], provider: ProviderTally) -> Iterator[str]:
    tools = row.get("tools") if kit.endpoint.tools_mode == "api" else None
    try:
        text = render_prompt(row["messages"], tools=tools, **kit.reading)
        decoded = codes.decode(row["prompt_ids"])
    except (PromptError, ValueError) as error:
        yield f"its prompt_ids cannot be checked: {error}"
        return
    if decoded == text:
        return
    if row["exactness"] == "engine":  # the server's own template may be another revision
        provider.other_prompt += 1
    else:
        yield "its prompt_ids do not decode to its messages"


def _completion(
    kit: Kit, codes: Codes, row: dict[str, Any], answer: Answer, provider: ProviderTally
) -> Iterator[str]:
    ids, grade = row["completion_ids"], row["exactness"]
    if not ids_decode_to_text(ids, answer, codes.decode, **kit.reading):
        yield "its completion_ids do not decode to its text"
    counted = answer.completion_tokens
    if grade not in SURE or counted in {None, 0, len(ids), len(ids) - 1}:
        return
    if grade == "engine":
        provider.miscounted += 1
    else:
        yield f"graded matched with {len(ids)} ids, but the server counted {counted}"
