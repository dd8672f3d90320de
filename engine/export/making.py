"""Makes the records of a batch of rows: the part of an export that processes share."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import orjson

from engine.audits.survey import Batch, Kit, Woven, rows_of
from engine.export.catalogue import Format, format_named
from engine.export.example import Example, LeftOutError
from engine.export.selection import Selection


class Made(NamedTuple):
    """What became of a batch of rows."""

    lines: list[bytes]
    tokens: list[int]
    supervised: list[int]
    left_out: Counter[str]
    clipped: int
    """Rows cut to `max_length`."""
    resplit: int
    """Rows whose text encodes to other ids than were sampled."""


def make_lines(name: str, selection: Selection, kit: Kit, batch: Batch | Woven) -> Made:
    """The records of a batch as JSON, in its order."""
    form = format_named(name)
    made = Made([], [], [], Counter(), 0, 0)
    clipped = resplit = 0
    for row, answer, graded in rows_of(kit, batch):
        reason = selection.reason(row, graded.exactness, tokens=form.tokens)
        if reason is not None:
            made.left_out[reason] += 1
            continue
        example = Example(kit, row, answer, graded)
        try:
            record = form.make(example, selection.max_length)
            made.lines.append(orjson.dumps(record))
        except LeftOutError as left:
            made.left_out[str(left)] += 1
            continue
        except TypeError:  # orjson writes no lone surrogates, and a trainer would read none
            made.left_out["not_unicode"] += 1
            continue
        tokens, supervised = _sizes(form, example, record)
        made.tokens.append(tokens)
        made.supervised.append(supervised)
        clipped += form.tokens and tokens < (example.tokens or 0)
        resplit += form.replays and example.resplit()
    return made._replace(clipped=clipped, resplit=resplit)


def _sizes(form: Format, example: Example, record: dict[str, Any]) -> tuple[int, int]:
    if form.tokens:
        return len(record["input_ids"]), record["loss_mask"].count(1)
    return example.tokens or 0, example.supervised
